"""Claims about `config`."""

from pathlib import Path

import pytest

from checkpoints.tables import TableName
from streaming.cli.start.config import fields
from streaming.config.config import Config
from streaming.config.sources.load import load
from tests.checkpoints.written_state import WrittenState
from tests.harness.served_hub import free_port
from tests.streaming.cli.conftest import Slackwater

SAMPLE = Path(__file__).parents[3] / "deploy" / "hub.toml"


def test_a_valid_configuration_is_exit_code_0(slackwater: Slackwater) -> None:
    """A deployment checks before it restarts."""
    answer = slackwater("config", "check")

    assert answer.code == 0
    assert "is valid: 2 replicas, 1 table, 2 agreements" in answer.out


def test_check_shows_what_holds_without_secrets(slackwater: Slackwater, config_file: Path) -> None:
    """Defaults and environment included."""
    text = config_file.read_text("utf-8") + '[kafka.options]\n"sasl.password" = "tell-nobody"\n'
    config_file.write_text(text, encoding="utf-8")

    answer = slackwater("config", "check", "--json")

    assert answer.facts["limits"]["page_items"] == 50_000
    assert answer.facts["kafka"]["options"] == {"sasl.password": "***"}
    assert "tell-nobody" not in answer.out


def test_check_imports_the_functions_of_the_tables(
    slackwater: Slackwater, config_file: Path
) -> None:
    """All that are wrong are named: a hub would end with the first at its start."""
    modules = '[functions]\nmodules = ["tests.harness.user_functions", "no_such_module"]\n'
    text = config_file.read_text("utf-8") + modules
    tables = "".join(
        f'[[tables]]\nname = "{name}"\nkey = ["k"]\ncolumns = {{ k = "text" }}\n'
        f'function = "{function}"\n'
        for name, function in [
            ("good", "tests.harness.user_functions:merge"),
            ("module", "no_such_module:decide"),
            ("name", "tests.harness.user_functions:no_such_name"),
            ("foreign", "os:system"),
        ]
    )
    config_file.write_text(text + tables, encoding="utf-8")

    answer = slackwater("config", "check")

    assert answer.code == 2
    lines = answer.err.splitlines()
    assert len(lines) == 3
    assert "function no_such_module:decide of table module cannot be loaded" in lines[0]
    assert "of table name cannot be loaded: AttributeError" in lines[1]
    assert "os:system of table foreign: functions.modules does not name its module" in lines[2]


COMPLAINTS = [
    (
        'kafka.options."security.protcol": Kafka does not know this option: did you mean'
        " security.protocol?"
    ),
    (
        'spark."driver.memory": Spark ignores an option that does not begin with "spark.": did you'
        " mean spark.driver.memory?"
    ),
    (
        'spark."spark.drvier.memory": Spark does not know this option: did you mean'
        " spark.driver.memory?"
    ),
    "spark.\"spark.executor.memory\" = 'lots': give a number with a unit, such as 2g or 512m",
    (
        "spark.\"spark.master\" = 'spark://host': give spark://HOST:PORT of a cluster, k8s://URL,"
        " yarn, or local[2] for Spark in the hub's own process"
    ),
]


def test_check_names_options_that_nobody_knows(slackwater: Slackwater, config_file: Path) -> None:
    """Spark and Kafka ignore them in silence, and the user believes that they are in force."""
    text = config_file.read_text("utf-8")
    text += """
    [kafka.options]
    "security.protcol" = "SSL"
    "client.id" = "hub"
    "sasl.username" = "hub"
    "sasl.password" = "hush"
    [spark]
    "spark.drvier.memory" = "4g"
    "spark.executor.memory" = "lots"
    "spark.master" = "spark://host"
    "spark.sql.adaptive.enabled" = true
    "spark.sql.session.timeZone" = "UTC"
    "spark.databricks.delta.snapshotPartitions" = 2
    "spark.hadoop.fs.s3a.endpoint" = "s3.example.com"
    "driver.memory" = "4g"
    """
    config_file.write_text(text, encoding="utf-8")

    answer = slackwater("config", "check")

    assert answer.code == 0
    assert "is valid" in answer.out
    assert sorted(line.removeprefix("slackwater: ") for line in answer.err.splitlines()) == [
        f"warning: {complaint}" for complaint in COMPLAINTS
    ]


def test_check_does_not_need_the_state(
    slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration is also checked where it is kept, and its bucket is out of reach there."""
    monkeypatch.setenv("SLACKWATER_HUB__STATE", "s3://bucket/prefix")
    monkeypatch.setenv("SLACKWATER_S3__ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("SLACKWATER_S3__ACCESS_KEY_ID", "key")
    monkeypatch.setenv("SLACKWATER_S3__SECRET_ACCESS_KEY", "secret")

    answer = slackwater("config", "check")

    assert answer.code == 0
    assert "not compared with what a hub has: the table s3://bucket/prefix/config" in answer.err
    assert "check its bucket (address, keys, rights)" in answer.err
    assert "\x1b" not in answer.err


@pytest.fixture
def started_once(config_file: Path, state: WrittenState) -> Path:
    """The file of a hub that has stored its configuration, as it does at every start."""
    row = {"number": 1, "kind": "config", "document": load(config_file).document()}
    state.append(TableName.CONFIG, row)
    return config_file


def test_check_warns_of_what_a_hub_would_retire(slackwater: Slackwater, started_once: Path) -> None:
    """A line that was deleted by mistake would stop a replica without an error."""
    assert slackwater("config", "check").err == ""
    text = started_once.read_text("utf-8")
    text = text.replace('[[replicas]]\nname = "b"\nrid = 2\n', "").replace('"t"', '"other"')
    text = text.replace('[[agreements]]\nname = "to-b"\nconsumer = "b"\n', "")
    started_once.write_text(text, encoding="utf-8")

    answer = slackwater("config", "check")

    assert answer.code == 0
    assert [line.partition(" is in the state")[0] for line in answer.err.splitlines()] == [
        "slackwater: warning: replica b",
        "slackwater: warning: agreement to-b",
        "slackwater: warning: table t",
    ]


def test_check_refuses_a_changed_rid(slackwater: Slackwater, started_once: Path) -> None:
    """A hub would not start with it."""
    text = started_once.read_text("utf-8").replace("rid = 2", "rid = 3")
    started_once.write_text(text, encoding="utf-8")

    answer = slackwater("config", "check")

    assert answer.code == 2
    assert "replicas[1].rid = 3: the state knows replica b by rid 2" in answer.err


def test_a_hub_refuses_a_changed_rid_before_it_looks_for_java(
    slackwater: Slackwater, started_once: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody should wait for Spark, a broker and a JVM to learn of a wrong digit."""
    text = started_once.read_text("utf-8").replace("rid = 2", "rid = 3")
    started_once.write_text(text, encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(started_once.parent / "no-java"))

    answer = slackwater("run")

    assert answer.code == 2
    (line,) = answer.err.splitlines()
    assert "replicas[1].rid = 3: the state knows replica b by rid 2" in line


def test_another_type_is_refused_by_check_and_by_a_hub_with_the_same_words(
    slackwater: Slackwater, started_once: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every row in the state has values of the old type: each later write would be quarantined."""
    before = started_once.read_text("utf-8")
    changed = before.replace('id = "int64"', 'id = "int32"')
    assert changed != before
    started_once.write_text(changed, encoding="utf-8")
    monkeypatch.setenv("JAVA_HOME", str(started_once.parent / "no-java"))

    check, hub = slackwater("config", "check"), slackwater("run")

    assert (check.code, hub.code) == (2, 2)
    said = (
        "tables[0].columns.id = 'int32': the state has the rows of table t with column id as int64"
    )
    assert said in check.err
    assert said in hub.err


def test_sample_is_a_valid_configuration(slackwater: Slackwater, config_file: Path) -> None:
    """An installed package has no checkout beside it to copy the sample from."""
    printed = slackwater("config", "sample")
    config_file.write_text(printed.out, encoding="utf-8")

    answer = slackwater("config", "check")

    assert printed.out == SAMPLE.read_text(encoding="utf-8")
    assert answer.code == 0


def test_schema_documents_every_field(slackwater: Slackwater) -> None:
    """Type, default and meaning; nothing is without words."""
    facts = slackwater("config", "schema", "--json").facts

    assert all(field["type"] and field["meaning"] for field in facts)
    by_path = {field["path"]: field for field in facts}
    assert by_path["hub.rid"]["default"] == "65534"
    assert by_path["replicas[].rid"]["default"] is None
    assert "timestamp" in by_path["tables[].columns"]["type"]
    assert by_path["tables[].function"]["default"] == '"EPOCH"'
    assert {path.split(".")[0].removesuffix("[]") for path in by_path} == set(Config.model_fields)


def test_schema_needs_no_configuration(slackwater: Slackwater, config_file: Path) -> None:
    """It is read before there is one."""
    config_file.unlink()

    answer = slackwater("config", "schema")

    assert answer.code == 0
    assert len(answer.out.splitlines()) == len(list(fields())) + 2


def test_the_keys_of_a_bucket_are_not_printed(
    slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address was taken, and a warning that the bucket is out of reach named it in full."""
    monkeypatch.setenv("SLACKWATER_HUB__STATE", "s3://ak:topsecret99@b/x")

    answer = slackwater("config", "check")

    assert answer.code == 2
    assert "hub.state = 's3://***@b/x'" in answer.err
    assert "topsecret99" not in answer.out + answer.err


def test_names_of_tables_that_an_agent_or_a_command_refuses_are_warnings(
    slackwater: Slackwater, config_file: Path
) -> None:
    """The hub starts, so a running one is not refused; the agent said it first."""
    names = ("u", "U", "_Slackwater_x", "sqlite_x", "hub_rows", "Hub_lag_by_hour", "hub_mine")
    tables = (f'[[tables]]\nname = "{n}"\nkey = ["k"]\ncolumns = {{ k = "text" }}\n' for n in names)
    config_file.write_text(config_file.read_text("utf-8") + "".join(tables), encoding="utf-8")

    answer = slackwater("config", "check")

    assert answer.code == 0
    refused, hidden = (
        "the agent of a SQLite replica refuses",
        "in `slackwater sql` the hub has a table",
    )
    expected = (
        (2, "U", f"'u' differs only in case, which SQLite ignores: {refused} both; remove one"),
        (3, "_Slackwater_x", f"names with this prefix are reserved: {refused} it; give"),
        (4, "sqlite_x", f"names with this prefix are reserved: {refused} it; give"),
        (
            5,
            "hub_rows",
            f"{hidden} of this name, which cannot be read together with this one; give",
        ),
        (
            6,
            "Hub_lag_by_hour",
            f"{hidden} of this name, which cannot be read together with this one; give",
        ),
    )
    lines = answer.err.splitlines()
    for (place, name, text), line in zip(expected, lines, strict=True):
        assert line.startswith(f"slackwater: warning: tables[{place}].name = {name!r}: {text}")


def test_options_are_checked_beside_other_mistakes(
    slackwater: Slackwater, config_file: Path
) -> None:
    """Otherwise each check finds one more."""
    options = """
[kafka.options]
"bootstrap.servers" = "u:topsecret99@b:1"
"sasl.mechanisms" = "PLAIN"
[spark]
"spark.masters" = "topsecret99"
"""
    config_file.write_text(config_file.read_text("utf-8") + options, encoding="utf-8")

    answer = slackwater("config", "check")

    assert answer.code == 2
    assert "give the brokers as kafka.bootstrap_servers" in answer.err
    assert 'warning: kafka.options."sasl.mechanisms": Kafka does not know this option' in answer.err
    assert 'warning: spark."spark.masters": Spark does not know this option' in answer.err
    assert "topsecret99" not in answer.err
