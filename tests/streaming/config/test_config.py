"""Claims about the configuration: what is accepted, what is refused and how, what is shown."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from streaming.config.access import access_faults
from streaming.config.applied import taken_over
from streaming.config.config import Config
from streaming.config.errors import check, section
from streaming.config.sources.load import load
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import ConfigError
from streaming.core.model.function import COLUMN_RULES, ConflictRule
from streaming.core.model.table import ColumnType, Table

SAMPLE = Path(__file__).parents[3] / "deploy" / "hub.toml"

GOOD = """
[kafka]
bootstrap_servers = "localhost:9092"
[kafka.options]
"sasl.password" = "tell-nobody"
sasl.mechanism = "PLAIN"
[[replicas]]
name = "a"
rid = 1
[[replicas]]
name = "b"
rid = 2
[[tables]]
name = "t"
key = ["id"]
columns = { z = "text", id = "int64" }
[[tables]]
name = "u"
key = ["id"]
columns = { id = "int64" }
[[agreements]]
name = "to-a"
consumer = "a"
[[agreements]]
name = "to-b"
consumer = "b"
tables = ["u"]
[spark]
spark.ui.enabled = false
"spark.hadoop.fs.s3a.secret.key" = "tell-nobody"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A good configuration."""
    path = tmp_path / "hub.toml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def complaint(path: Path, text: str) -> str:
    """What `load` says of a configuration that it refuses."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as refused:
        load(path)
    return str(refused.value)


def uncommented() -> dict[str, Any]:
    """The sample with every field that it mentions."""
    text = SAMPLE.read_text(encoding="utf-8")
    return tomllib.loads(re.sub(r'^#("?[\w.]+"? = )', r"\1", text, flags=re.MULTILINE))


def test_the_sample_can_be_loaded() -> None:
    """A user starts by copying it."""
    config = load(SAMPLE)

    assert [replica.name for replica in config.replicas] == ["berlin", "lisbon", "oslo"]
    assert config.table_map()["notes"].key == ("account_id", "number")


def test_the_sample_mentions_every_field_with_its_default() -> None:
    """A field that the sample does not show is not found by those who need it."""
    sample = uncommented()

    assert set(sample) == set(Config.model_fields)
    for name in Config.model_fields:
        inner = section(Config, name)
        if inner is None:
            continue
        entries = sample[name] if isinstance(sample[name], list) else [sample[name]]
        assert {key for entry in entries for key in entry} == set(inner.model_fields), name


def test_commented_fields_of_the_sample_show_their_defaults() -> None:
    """A commented field documents what holds without it."""
    sample = uncommented()

    config = load(SAMPLE).model_dump(mode="json")

    assert sample["hub"] | {"state": config["hub"]["state"]} == config["hub"]
    assert sample["limits"] == config["limits"]
    unset = {"packets": None, "compare": None, "hours": None}
    assert sample["agreements"][0] | unset == config["agreements"][0]
    assert sample["tables"][0]["function"] == config["tables"][0]["function"]


def test_tables_become_values_of_the_core(file: Path) -> None:
    """Everybody below the configuration knows tables only so; columns keep their order."""
    columns = {"z": ColumnType.TEXT, "id": ColumnType.INT64}

    tables = load(file).table_map()

    assert tables["t"] == Table("t", ("id",), columns)
    assert list(tables["t"].columns) == ["z", "id"]


def test_an_agreement_sends_all_tables_unless_it_names_some(file: Path) -> None:
    """A new table should not be forgotten in an agreement."""
    config = load(file)

    sent = [config.tables_of(agreement) for agreement in config.agreements]

    assert sent == [{"t", "u"}, {"u"}]


def test_a_pattern_chooses_tables_also_of_those_that_may_be_written(file: Path) -> None:
    """Whoever has a table for each tenant does not list them, and forgets no new one."""
    text = GOOD.replace('tables = ["u"]', 'tables = ["*u"]')
    file.write_text(text.replace('name = "a"', 'name = "a"\nwrites = ["t*"]'), encoding="utf-8")

    config = load(file)

    assert config.tables_of(config.agreements[1]) == {"u"}
    assert [config.writes_of(one) for one in config.replicas] == [{"t"}, {"u"}]


def test_the_core_asks_the_conditions_of_an_agreement(file: Path) -> None:
    """Also of tables that a pattern names; the others have none."""
    text = GOOD.replace('consumer = "a"', 'consumer = "a"\nrows."u*" = "id > 1"')
    file.write_text(text, encoding="utf-8")
    config = load(file)

    one, other = map(config.subscription, config.agreements)

    assert one.rows.keys() == {"u"}
    assert one.rows["u"].shown(['{"id":"1"}', '{"id":"2"}']) == [False, True]
    assert one.unfiltered == {"t"}
    assert not other.rows
    assert Config.from_document(config.document()).subscription(config.agreements[0]) == one


def test_the_core_and_the_agent_know_the_columns_of_an_agreement(file: Path) -> None:
    """Also of tables that a pattern names; where all are sent there is no filter."""
    text = GOOD.replace('consumer = "a"', 'consumer = "a"\ncolumns."*" = ["id"]')
    file.write_text(text, encoding="utf-8")
    config = load(file)

    one, other = map(config.subscription, config.agreements)

    assert one.columns == {"t": ColumnFilter(frozenset({"id"}))}
    assert one.has_filters
    assert not other.columns
    assert config.hidden_columns == {("a", "t"): frozenset({"z"})}
    assert [*config.tables_at("a")["t"].columns] == ["id"]
    assert [*config.tables_at("b")["t"].columns] == ["z", "id"]
    assert Config.from_document(config.document()).subscription(config.agreements[0]) == one


def test_who_may_not_write_a_table_may_lack_what_its_function_compares(file: Path) -> None:
    """No change of it is judged."""
    text = GOOD.replace("columns = { z", 'function = "MAX(z)"\ncolumns = { z')
    text = text.replace('name = "a"', 'name = "a"\nwrites = ["u"]', 1)
    file.write_text(text.replace('consumer = "a"', 'consumer = "a"\ncolumns.t = ["id"]'))

    assert load(file).hidden_columns
    said = complaint(file, file.read_text().replace('writes = ["u"]', 'writes = ["*"]'))
    assert "agreements[0].columns: z of table t is compared by its function MAX(z)" in said


MASKED = GOOD.replace('consumer = "a"', 'consumer = "a"\nmasks.t = { z = "hash" }\nmasks."*" = {}')


def test_a_replica_may_not_write_what_it_is_sent_masked(file: Path) -> None:
    """Not by default either; the hub needs the key, and nobody else."""
    file.write_text(MASKED, encoding="utf-8")
    config = load(file)

    (one, _) = map(config.subscription, config.agreements)

    assert [*one.columns["t"].masks] == ["z"]
    assert config.writes_of(config.replicas[0]) == {"u"}
    assert [*config.tables_at("a")["t"].columns] == ["z", "id"]
    assert not config.hidden_columns
    assert "masking.hash_secret" in " ".join(config.masking_faults())
    with pytest.raises(ConfigError, match=r"masking\.hash_secret"):
        one.columns["t"].shown('{"z":"a","id":"1"}')


def test_the_key_of_hashes_comes_from_a_secret_and_is_not_shown(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither is it stored; a hub that takes a stored configuration over keeps its own."""
    file.write_text(MASKED, encoding="utf-8")
    monkeypatch.setenv("SLACKWATER_MASKING__HASH_SECRET", "tell-nobody of this")
    config = load(file)
    stored = Config.from_document(config.document())

    own = taken_over(config, stored)

    assert not [*config.masking_faults()]
    assert "tell-nobody" not in repr(config) + config.document()
    assert own.masking == config.masking
    hashed = own.column_filters(own.agreements[0])["t"].shown('{"z":"a","id":"1"}')
    assert hashed == config.column_filters(config.agreements[0])["t"].shown('{"z":"a","id":"1"}')


@pytest.mark.parametrize(
    ("masks", "writes", "says"),
    [
        ('{ z = "hash" }', '["*"]', "masks: table t is sent masked, so its consumer may not write"),
        ('{ id = "null" }', '["u"]', "masks: id of table t is a key column"),
        ('{ y = "null" }', '["u"]', "masks: table t has no column 'y'"),
        ('{ z = "rot13" }', '["u"]', "masks: z of table t = 'rot13': write"),
        ('{ n = "hash" }', '["u"]', "masks: n of table t is of type int32: only text and bytes"),
        ('{ n = "constant:x" }', '["u"]', "masks: n of table t: 'x' is no int32"),
        ('{ z = "null" }\ncolumns.t = ["id"]', '["u"]', "masks: z of table t is masked and not"),
    ],
)
def test_a_mask_that_cannot_be_is_refused(file: Path, masks: str, writes: str, says: str) -> None:
    """Whoever relies on it must not find out by what was sent."""
    text = GOOD.replace('id = "int64" }', 'id = "int64", n = "int32" }', 1)
    text = text.replace('name = "a"', f'name = "a"\nwrites = {writes}', 1)

    said = complaint(file, text.replace('consumer = "a"', f'consumer = "a"\nmasks.t = {masks}', 1))

    assert f"agreements[0].{says}" in said


def test_a_constant_is_of_the_column(file: Path) -> None:
    """As the wire writes it."""
    text = GOOD.replace('id = "int64" }', 'id = "int64", n = "int32" }', 1)
    masks = 'masks.t = { z = "constant:***", n = "constant:-1" }'
    file.write_text(text.replace('consumer = "a"', f'consumer = "a"\n{masks}', 1))
    config = load(file)

    known = config.column_filters(config.agreements[0])["t"]

    assert known.shown('{"z":"a","id":"1","n":5}') == '{"z":"***","id":"1","n":-1}'


def test_a_table_is_of_the_default_data_set_unless_it_names_one(file: Path) -> None:
    """One data set is what most have."""
    file.write_text(in_two_datasets(GOOD), encoding="utf-8")

    config = load(file)

    assert {name: table.dataset for name, table in config.table_map().items()} == {
        "t": "default",
        "u": "other",
    }
    assert [config.dataset_of(one) for one in config.agreements] == ["default", "other"]


def in_two_datasets(text: str) -> str:
    """The text with table u in a data set of its own, and to-a served the other one."""
    other = text.replace('name = "u"', 'name = "u"\ndataset = "other"')
    return other.replace('consumer = "a"', 'consumer = "a"\ntables = ["t"]')


@pytest.mark.parametrize("tables", ['["*"]', '["t", "u"]'])
def test_an_agreement_of_several_data_sets_is_refused(file: Path, tables: str) -> None:
    """Its consumer has one RUV: it could not say of which data set it speaks."""
    text = in_two_datasets(GOOD).replace('tables = ["t"]', f"tables = {tables}")

    assert (
        "agreements[0].tables: an agreement serves one data set, and these tables are of several"
        " (t of 'default'; u of 'other'): name the tables of one"
    ) in complaint(file, text)


def test_topics_are_named_by_replica_and_agreement(file: Path) -> None:
    """Agents and the hub meet in these names."""
    config = load(file)

    assert config.changes_topic("a") == "slackwater.changes.a"
    assert config.updates_topic("to-a") == "slackwater.updates.to-a"


def test_the_state_folder_is_relative_to_the_file(file: Path) -> None:
    """The same hub is found from any working directory."""
    assert load(file).hub.state == file.parent / "state"


def test_a_service_keeps_relative_states_in_a_folder_of_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a file in /etc nothing may be written; another place that is named is meant so."""
    monkeypatch.setenv("SLACKWATER_STATE_FOLDER", "/var/lib/slackwater")
    assert load(file).hub.state == Path("/var/lib/slackwater/state")

    monkeypatch.setenv("SLACKWATER_HUB__STATE", "/elsewhere")
    assert load(file).hub.state == Path("/elsewhere")

    monkeypatch.setenv("SLACKWATER_HUB__STATE", "s3://bucket/prefix")
    assert str(load(file).hub.state) == "s3://bucket/prefix"

    monkeypatch.delenv("SLACKWATER_HUB__STATE")
    monkeypatch.setenv("SLACKWATER_STATE_FOLDER", "s3://bucket/prefix")
    with pytest.raises(ConfigError, match="SLACKWATER_STATE_FOLDER=s3://bucket/prefix: give the"):
        load(file)


@pytest.mark.parametrize("place", ["s3a://bucket/p", "file:///var/state"])
def test_an_address_that_is_no_bucket_is_not_taken_for_a_folder(
    file: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The hub would run, with its state in a folder `s3a:` of a disk that nobody keeps."""
    monkeypatch.setenv("SLACKWATER_HUB__STATE", place)

    with pytest.raises(ConfigError, match="give the path of a folder, or s3://bucket/prefix"):
        load(file)


def test_bare_dotted_names_are_options_too(file: Path) -> None:
    """TOML reads `sasl.mechanism = ...` as a table in a table; people mean an option."""
    config = load(file)

    assert config.kafka.options == {"sasl.password": "tell-nobody", "sasl.mechanism": "PLAIN"}
    assert config.spark["spark.ui.enabled"] == "false"


def test_the_environment_overrides_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container sets a few fields and takes the rest from a file."""
    monkeypatch.setenv("SLACKWATER_HUB__TRIGGER_MS", "250")
    monkeypatch.setenv("SLACKWATER_HUB__STATE", "/elsewhere")
    monkeypatch.setenv("SLACKWATER_KAFKA__OPTIONS__SASL__PASSWORD", "other")
    monkeypatch.setenv("SLACKWATER_SPARK", '{"spark.x": "1"}')

    config = load(file)

    assert (config.hub.trigger_ms, config.hub.state) == (250, Path("/elsewhere"))
    assert config.kafka.options == {"sasl.password": "other", "sasl.mechanism": "PLAIN"}
    assert config.spark["spark.x"] == "1"
    assert config.spark["spark.ui.enabled"] == "false"


@pytest.mark.parametrize(
    ("variable", "value", "received"),
    [
        ("SLACKWATER_HUB__RID", "70000", "hub.rid = '70000'.*from SLACKWATER_HUB__RID"),
        ("SLACKWATER_HUB__RIT", "1", "hub.rit is not a field: did you mean rid"),
        ("SLACKWATER_HUBB__RID", "1", "SLACKWATER_HUBB__RID: the configuration has no such"),
        ("SLACKWATER_KAFKA__OPTIONS", '{"password": "tell-', "give JSON"),
    ],
)
def test_a_bad_variable_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, received: str
) -> None:
    """A misspelt override that is ignored is worse than one that fails."""
    monkeypatch.setenv(variable, value)

    with pytest.raises(ConfigError, match=received) as refused:
        load(file)

    assert "tell-" not in str(refused.value)


def test_a_secret_file_stands_for_a_variable(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Kubernetes mounts a secret as links into a hidden folder, editors end a line; both work."""
    versions = tmp_path / "secrets" / "..2026_11_24"
    versions.mkdir(parents=True)
    (versions / "SLACKWATER_KAFKA__OPTIONS__SASL__PASSWORD").write_text("of the file\n")
    (versions / "SLACKWATER_HUB__TRIGGER_MS").write_text("250")
    (versions / "ca.crt").write_text("for an option of its own")
    for each in versions.iterdir():
        (tmp_path / "secrets" / each.name).symlink_to(f"..2026_11_24/{each.name}")
    monkeypatch.setenv("SLACKWATER_SECRETS", str(tmp_path / "secrets"))
    monkeypatch.setenv("SLACKWATER_HUB__TRIGGER_MS", "300")

    config = load(file)

    assert config.kafka.options == {"sasl.password": "of the file", "sasl.mechanism": "PLAIN"}
    assert config.hub.trigger_ms == 300


@pytest.mark.parametrize(
    ("name", "value", "received"),
    [
        ("SLACKWATER_HUBB__RID", "1", "SLACKWATER_HUBB__RID: the configuration has no such"),
        ("SLACKWATER_HUB__RID", "70000", "hub.rid = '70000'.*from SLACKWATER_HUB__RID"),
        ("SLACKWATER_KAFKA__OPTIONS", '{"password": "tell-', "give JSON"),
    ],
)
def test_a_bad_secret_file_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str, received: str
) -> None:
    """A misspelt key of a secret must not look like one that is in force."""
    secrets = file.parent / "secrets"
    secrets.mkdir()
    (secrets / name).write_text(value)
    monkeypatch.setenv("SLACKWATER_SECRETS", str(secrets))

    with pytest.raises(ConfigError, match=received) as refused:
        load(file)

    assert "tell-" not in str(refused.value)


def test_a_folder_of_secrets_that_is_not_there_is_refused(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its password a hub would fail at the broker, with an error about the broker."""
    monkeypatch.setenv("SLACKWATER_SECRETS", str(file.parent / "absent"))

    with pytest.raises(ConfigError, match=r"SLACKWATER_SECRETS=.*absent: .*name a folder"):
        load(file)


REPLICA_A, TABLE_T = '[[replicas]]\nname = "a"', '[[tables]]\nname = "t"'


@pytest.mark.parametrize(
    ("old", "new", "received"),
    [
        ("[kafka]", "[kafka", "is not TOML"),
        (
            "[kafka]",
            '[traces]\nendpoint = "localhost:4318"\n[kafka]',
            "traces.endpoint = 'localhost:4318': give an address with its scheme, as http://",
        ),
        ('name = "a"', "name = a", "is not TOML: Invalid value (at line"),
        ('name = "a"', "name = a", ': write text in quotes, as name = "..."'),
        ("[kafka]", "[kafcka]", "kafcka is not a field: did you mean kafka?"),
        ('bootstrap_servers = "localhost:9092"', "", "kafka.bootstrap_servers is missing"),
        ("localhost:9092", "localhost", "kafka.bootstrap_servers = 'localhost': give host:port"),
        ("sasl.mechanism", '"bootstrap.servers"', "give the brokers as kafka.bootstrap_servers"),
        ('"PLAIN"', "[1]", "kafka.options.sasl.mechanism"),
        ('name = "a"', 'name = "A b"', "replicas[0].name = 'A b': should match"),
        ('name = "b"', 'name = "a"', "replicas[1].name = 'a': replicas[0] has it too"),
        ('name = "b"', 'name = "hub"', "replicas[1].name = 'hub': this is hub.name"),
        ("rid = 2", "rid = 1", "replicas[1].rid = 1: replicas[0] has it too"),
        ("rid = 2", "rid = 65534", "replicas[1].rid = 65534: should be less than 65534"),
        ("rid = 2", "rid = 0", "replicas[1].rid = 0: should be greater than or equal to 1"),
        ("rid = 2", "rid = 2\nrdi = 3", "replicas[1].rdi is not a field: did you mean rid"),
        ('name = "u"', 'name = "t"', "tables[1].name = 't': tables[0] has it too"),
        ('key = ["id"]', 'key = ["no"]', "tables[0]: key column 'no' of table 't' is not"),
        ('key = ["id"]', 'key = ["id", "id"]', "tables[0]: a key column appears twice"),
        ('key = ["id"]', "key = []", "tables[0].key"),
        ('z = "text"', 'z = "varchar"', "tables[0].columns.z = 'varchar': should be 'bool'"),
        ('consumer = "b"', 'consumer = "c"', "agreements[1].consumer = 'c': there is no such"),
        ('consumer = "b"', 'consumer = "a"', "agreements[1].consumer = 'a': agreements[0]"),
        ('name = "to-b"', 'name = "to-a"', "agreements[1].name = 'to-a': agreements[0] has it"),
        (
            'tables = ["u"]',
            'tables = ["v"]',
            "agreements[1].tables: 'v' is no table: use some of t, u",
        ),
        (
            'name = "a"',
            'name = "a"\nwrites = ["v"]',
            "replicas[0].writes: 'v' is no table: use some of t, u",
        ),
        (
            'tables = ["u"]',
            'tables = ["u"]\nrows.t = "z = \'a\'"',
            "agreement to-b: agreements[1].rows: 't' is not sent by this agreement: name it in",
        ),
        (
            'tables = ["u"]',
            'tables = ["u"]\nrows."u*" = "nothing = 1"',
            "agreements[1].rows.u: 'nothing' is no column of table u: use one of",
        ),
        (
            'tables = ["u"]',
            'tables = ["t", "u"]\nrows.t = "k ="\nrows.u = "nothing = 1"',
            "; rows.u: 'nothing' is no column of table u: use one of",
        ),
        ('tables = ["u"]', 'tables = ["u"]\nrows = "x"', "agreements[1].rows"),
        (
            'tables = ["u"]',
            'tables = ["u"]\ncolumns.t = ["id"]',
            "agreements[1].columns: 't' is not sent by this agreement: name it in tables",
        ),
        (
            'consumer = "a"',
            'consumer = "a"\ncolumns.t = ["id", "zz"]',
            "agreements[0].columns: 'zz' is no column of table t: use some of z",
        ),
        (
            'consumer = "a"',
            'consumer = "a"\ncolumns.t = ["z"]',
            "agreements[0].columns: id is a key column of table t, so it is sent with every row",
        ),
        ("[spark]", "[limits]\nskew_s = 0\n[spark]", "limits.skew_s = 0: should be greater than 0"),
        (
            "[spark]",
            "[limits]\ndriver_batch_records = -1\n[spark]",
            'limits.driver_batch_records = -1: give a number from 0 on, or "auto"',
        ),
    ],
)
def test_a_mistake_is_told_with_field_value_and_advice(
    file: Path, old: str, new: str, received: str
) -> None:
    """Each line stands for one mistake; nobody should have to read this code to mend it."""
    assert old in GOOD

    text = complaint(file, GOOD.replace(old, new, 1))

    assert received in text
    assert all(line.startswith(str(file)) for line in text.splitlines())


def test_all_mistakes_are_told_at_once(file: Path) -> None:
    """Mending one after the other costs a start each."""
    text = complaint(file, GOOD.replace("rid = 2", "rid = 0").replace('z = "text"', 'z = "x"'))

    assert len(text.splitlines()) == 2


def test_what_refers_to_another_part_is_told_beside_all_else(file: Path) -> None:
    """A misspelt consumer is found at once, not when all the rest is right."""
    wrong = GOOD.replace('consumer = "a"', 'consumer = "z"').replace('name = "b"', 'name = "a"')
    wrong = wrong.replace('columns = { id = "int64" }', 'columns = { id = "int65" }')
    wrong = wrong.replace('tables = ["u"]', 'tables = ["v"]').replace("rid = 1", 'rid = "one"')

    said = complaint(file, wrong)

    assert "replicas[0].rid = 'one'" in said
    assert "tables[1].columns.id = 'int65'" in said
    assert "replicas[1].name = 'a': replicas[0] has it too" in said
    assert "agreements[0].consumer = 'z': there is no such replica: use one of a, a" in said
    assert "agreements[1].consumer = 'b': there is no such replica" in said
    assert "agreements[1].tables: 'v' is no table" in said
    assert len(said.splitlines()) == len(set(said.splitlines()))


def test_a_mistake_of_a_part_is_told_once(file: Path) -> None:
    """The parts are looked at whether the fields are right or not."""
    said = complaint(file, GOOD.replace('consumer = "a"', 'consumer = "z"'))

    assert said.count("there is no such replica") == 1


def test_a_part_that_is_missing_makes_no_further_complaints(file: Path) -> None:
    """One mistake is one line: what refers to the missing part may be right."""
    said = complaint(file, GOOD.replace("[[replicas]]", "[[replica]]"))

    assert "replicas is missing: add it" in said
    assert "no such replica" not in said


def test_every_key_column_that_is_missing_is_told(file: Path) -> None:
    """With a function's column, all of one table."""
    wrong = GOOD.replace(
        'key = ["id"]\ncolumns = { id', 'function = "MAX(n)"\nkey = ["x", "y"]\ncolumns = { id'
    )

    said = complaint(file, wrong)

    assert "tables[1]: key column 'x' of table 'u' is not in its columns: add it there" in said
    assert "tables[1]: key column 'y' of table 'u' is not in its columns: add it there" in said
    assert "tables[1]: function MAX(n) of table 'u' compares a column that the table lacks" in said


def test_a_byte_order_mark_before_the_configuration_is_ignored(file: Path) -> None:
    """Windows' editors write one, and nobody sees it."""
    file.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())

    assert [one.name for one in load(file).replicas] == ["a", "b"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le"])
def test_a_configuration_in_utf_16_is_refused_by_name(file: Path, encoding: str) -> None:
    """A complaint about TOML would send its writer to the wrong place."""
    file.write_bytes(GOOD.encode(encoding))

    with pytest.raises(ConfigError, match=f"{file.name} .*UTF-16.*: save it as UTF-8"):
        load(file)


def test_a_secret_file_with_a_byte_order_mark_holds_the_secret_alone(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark would be part of the password, and the broker would refuse it."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    secret = folder / "SLACKWATER_S3__SECRET_ACCESS_KEY"
    secret.write_bytes(b"\xef\xbb\xbfhush\n")
    monkeypatch.setenv("SLACKWATER_SECRETS", str(folder))

    assert load(file).s3.secret_access_key == "hush"

    secret.write_bytes("hush".encode("utf-16"))
    with pytest.raises(ConfigError, match="SECRET_ACCESS_KEY is in UTF-16: save it as UTF-8"):
        load(file)


def test_a_hub_without_replicas_is_refused(file: Path) -> None:
    """It would run and do nothing."""
    text = complaint(file, 'replicas = []\ntables = []\n[kafka]\nbootstrap_servers = "h:1"')

    assert "replicas: give at least one" in text
    assert "tables: give at least one" in text


ARGUMENTS = {
    ConflictRule.EPOCH: "(4)",
    ConflictRule.PRIMARY: "(a)",
    **dict.fromkeys(COLUMN_RULES, "(z)"),
}
FUNCTIONS = [
    "m:f" if rule is ConflictRule.USER else f"{rule}{ARGUMENTS.get(rule, '')}"
    for rule in ConflictRule
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_can_be_configured(file: Path, name: str) -> None:
    """As the table's own word says it."""
    file.write_text(GOOD.replace(TABLE_T, f'{TABLE_T}\nfunction = "{name}"'))

    function = load(file).table_map()["t"].function

    assert str(function) == name
    assert function.replica == (1 if name == "PRIMARY(a)" else None)


BAD_FUNCTIONS = {
    "NEWEST": "tables[0].function = 'NEWEST': there is no such conflict function: use one of EPOCH",
    "MAX": "it lacks its column: write MAX(column)",
    "PRIMARY": "it lacks its replica: write PRIMARY(replica)",
    "CSN(z)": "write CSN: it takes no argument",
    "EPOCH(32)": "bits are 0 to 31",
    "EPOCH(x)": "bits are 0 to 31",
    "MAX(q)": "function MAX(q) of table 't' compares a column that the table lacks",
    "PRIMARY(q)": "tables[0].function = 'PRIMARY(q)': there is no such replica: use one of a, b",
}


@pytest.mark.parametrize("name", BAD_FUNCTIONS)
def test_a_function_that_cannot_be_is_refused(file: Path, name: str) -> None:
    """It must not be taken for EPOCH; the answer says how it is written."""
    text = complaint(file, GOOD.replace(TABLE_T, f'{TABLE_T}\nfunction = "{name}"'))

    assert BAD_FUNCTIONS[name] in text


def test_filters_are_refused_as_such(file: Path) -> None:
    """A filter that is ignored would send rows to somebody who must not have them."""
    text = complaint(file, GOOD.replace('consumer = "a"', 'consumer = "a"\nfilters = ["z = 1"]'))

    assert "agreements[0]: 'filters' is not supported by this version yet" in text


def test_a_missing_file_says_where_to_name_one(tmp_path: Path) -> None:
    """It is the first thing that happens to a new user."""
    with pytest.raises(ConfigError, match="SLACKWATER_CONFIG"):
        load(tmp_path / "hub.toml")


def test_secrets_are_shown_nowhere(file: Path) -> None:
    """Configuration goes into logs, into the state, and into bug reports."""
    config = load(file)

    assert config.kafka.options["sasl.password"] == "tell-nobody"
    for text in (repr(config), str(config), config.document(), repr(config.kafka)):
        assert "tell-nobody" not in text
        assert "***" in text


@pytest.mark.parametrize("value", ['["tell-nobody"]', '{ a = ["tell-nobody"] }'])
def test_a_mistake_in_a_secret_does_not_tell_it(file: Path, value: str) -> None:
    """An error message goes where the secret may not."""
    text = complaint(file, GOOD.replace('"tell-nobody"', value, 1))

    assert "kafka.options.sasl.password" in text
    assert "tell-nobody" not in text


def test_a_stored_document_can_be_read_back(file: Path) -> None:
    """A batch is judged again by the configuration of its time."""
    config = load(file)

    stored = Config.from_document(config.document())

    assert stored.document() == config.document()
    assert stored.table_map() == config.table_map()
    assert list(stored.table_map()["t"].columns) == ["z", "id"]


def test_the_order_of_options_makes_no_new_version(file: Path) -> None:
    """The document is compared to see whether the configuration changed."""
    before = load(file).document()
    one, two = '"sasl.password" = "tell-nobody"\n', 'sasl.mechanism = "PLAIN"\n'

    file.write_text(GOOD.replace(one + two, two + one), encoding="utf-8")

    assert load(file).document() == before


def test_a_configuration_cannot_be_changed(file: Path) -> None:
    """What a batch was planned with is what it is judged by."""
    config: Any = load(file)

    with pytest.raises(ValidationError):
        config.hub.rid = 7


@pytest.mark.parametrize(
    ("section", "line", "shown", "remedy"),
    [
        ("hub", 'state = "s3://ak:topsecret99@b/x"', "s3://***@b/x", "SECRET_ACCESS_KEY"),
        ("hub", 'state = "s3://ak:top/secret99@b/x"', "s3://***@b/x", "SECRET_ACCESS_KEY"),
        ("hub", 'state = "https://ak:topsecret99@b/x"', "https://***@b/x", "s3://bucket/prefix"),
        ("s3", 'endpoint = "http://ak:topsecret99@b:9000"', "http://***@b:9000", "no password"),
        ("traces", 'endpoint = "http://u:topsecret99@b"', "http://***@b", "without a password"),
        ("lineage", 'url = "http://u:topsecret99@b"', "http://***@b", "without a password"),
        ("lineage", 'url = "http://u:top/secret99@b"', "http://***@b", "without a password"),
        ("http", 'port = "u:topsecret99@b"', "***@b", "integer"),
        ("http", 'host = "u:topsecret99@b"', "***@b", "http.token"),
    ],
)
def test_the_login_of_an_address_is_refused_and_not_shown(
    file: Path, section: str, line: str, shown: str, remedy: str
) -> None:
    """What a check prints is in the logs of a deployment."""
    file.write_text(f"{GOOD}\n[{section}]\n{line}\n", encoding="utf-8")

    with pytest.raises(ConfigError) as refused:
        check(access_faults(load(file).http))

    assert f"= {shown!r}" in str(refused.value)
    assert remedy in str(refused.value)
    assert "secret99" not in str(refused.value)


@pytest.mark.parametrize(
    "servers", ["u:topsecret99@b:1", "topsecret99@b:1", "a:1,u:topsecret99@b:1"]
)
def test_the_login_of_a_broker_is_refused_and_not_shown(file: Path, servers: str) -> None:
    """Kafka takes none there; it belongs in the options, which are masked."""
    text = complaint(file, GOOD.replace("localhost:9092", servers))

    assert "kafka.bootstrap_servers = '***@b:1': give host:port; a login belongs in" in text
    assert "topsecret99" not in text


def test_a_folder_for_the_state_is_named_without_a_login(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address in the variable is refused like one in the file."""
    monkeypatch.setenv("SLACKWATER_STATE_FOLDER", "s3://ak:topsecret99@b/x")

    text = complaint(file, GOOD)

    assert "SLACKWATER_STATE_FOLDER=s3://***@b/x" in text


@pytest.mark.parametrize(
    ("send", "sends_deletes"),
    [(["insert", "update"], False), (["delete", "update", "insert"], True)],
)
def test_an_agreement_may_leave_out_deletes(
    file: Path, send: list[str], *, sends_deletes: bool
) -> None:
    """In whatever order what is sent is named."""
    file.write_text(GOOD.replace('consumer = "a"', f'consumer = "a"\nsend = {send}'))
    config = load(file)

    one, other = map(config.subscription, config.agreements)

    assert (one.sends_deletes, other.sends_deletes) == (sends_deletes, True)


@pytest.mark.parametrize("send", ["[]", '["insert"]', '["update", "delete"]', '["truncate"]'])
def test_an_agreement_leaves_out_nothing_else(file: Path, send: str) -> None:
    """Without inserts or updates its rows would be those of no moment."""
    file.write_text(GOOD.replace('consumer = "a"', f'consumer = "a"\nsend = {send}'))

    with pytest.raises(ConfigError, match=r"agreements\[0\].send"):
        load(file)
