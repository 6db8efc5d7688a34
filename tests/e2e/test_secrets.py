"""No secret of a configuration is anywhere but where it was configured."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from connectors.kafka.embedded.broker import Broker
from tests.harness.command_lines import command_lines
from tests.harness.receiver import Receiver, receiver
from tests.harness.served_hub import Port, free_port
from tests.harness.site import Site, site

SECRET = "Planted"
"""What every secret here begins with."""

_SPARK = """[spark]
"spark.hadoop.fs.s3a.secret.key" = "Planted in S3A"
"spark.hadoop.myapp.dbpass" = "Planted by a name that nobody knows"
"spark.ui.enabled" = "true"
"spark.ui.port" = "{ui}"
"spark.eventLog.enabled" = "true"
"spark.eventLog.compress" = "false"
"spark.eventLog.dir" = "{events}"
"spark.driver.defaultJavaOptions" = "-Dmyapp.dbpass=Planted-in-options"
"""

TOKEN, NEW_TOKEN = "Planted-for-the-port", "Planted-while-it-is-served"
TOKEN_FILE = "SLACKWATER_HTTP__TOKEN"

_SECTIONS = """
[kafka.options]
"ssl.key.password" = "Planted for TLS"

[traces]
endpoint = "{address}/v1/traces"

[lineage]
url = "{address}"
"""

_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password='


@pytest.fixture
def told() -> Iterator[Receiver]:
    """Who is told of traces and lineage."""
    with receiver() as found:
        yield found


@pytest.fixture
def planted(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    told: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    """A site with a secret wherever one may be configured."""
    files, events = tmp_path / "secrets", tmp_path / "events"
    files.mkdir()
    events.mkdir()
    (files / "SLACKWATER_LINEAGE__ACCESS_TOKEN").write_text("Planted in a file")
    (files / "SLACKWATER_MASKING__HASH_SECRET").write_text("Planted to hash with")
    (files / TOKEN_FILE).write_text(TOKEN)
    monkeypatch.setenv("SLACKWATER_SECRETS", str(files))
    monkeypatch.setenv("SLACKWATER_S3__SECRET_ACCESS_KEY", "Planted in a variable")
    monkeypatch.setenv(
        "SLACKWATER_KAFKA__OPTIONS__SASL__JAAS__CONFIG", f'{_JAAS}"Planted in JAAS";'
    )
    with site(tmp_path / "site", broker.bootstrap_servers, topic_prefix) as made:
        spark = _SPARK.format(ui=free_port(), events=events.as_uri())
        sections = _SECTIONS.format(address=told.address)
        text = made.file.read_text().replace("[spark]\n", spark)
        made.file.write_text(text.replace("port = 0", f"port = {free_port()}") + sections)
        yield made


def files_below(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and bytes of each file."""
    for file in folder.rglob("*"):
        if file.is_file():
            yield str(file), file.read_bytes().decode(errors="replace")


def readable_by_others(folder: Path) -> list[Path]:
    """What the group or others may read: the folder itself, and files, of which none is theirs."""
    files = (one for one in folder.rglob("*") if one.is_file())
    return [one for one in (folder, *files) if one.stat().st_mode & 0o077]


def rows_below(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and rows of each table's files, in which they are compressed."""
    for table in folder.iterdir():
        rows = [pq.read_table(file).to_pylist() for file in table.glob("*.parquet")]
        yield f"rows of {table}", str(rows)


def test_no_secret_leaves_the_configuration(
    planted: Site, told: Receiver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Command lines are everybody's, and logs, tables, pages and backups go where a key may not."""
    config = planted.config()
    port, ui = Port(config.http.port, TOKEN), Port(int(config.spark["spark.ui.port"]))
    a = planted.replicas["a"]
    a.hello()
    a.write("k", "new")
    with ExitStack() as opened:
        lines = opened.enter_context(command_lines())
        hub = opened.enter_context(planted.hub())
        hub.waits_for(lambda: planted.state.exists() and bool(lines), "it has a state")
        hub.waits_for(lambda: "slackwater_hub_epoch" in _text(port, "/metrics"), "it serves")
        hub.waits_for(lambda: port.get("/readyz").code == 200, "it is ready")
        found = {path: _text(port, path) for path in ("/", "/metrics", "/status", "/conflicts")}
        with port.events() as events:
            found["/events"] = str(next(events))
        (application,) = ui.get("/api/v1/applications").document
        found["Spark's page"] = ui.get(f"/api/v1/applications/{application['id']}/environment").text
        for words in ("status", "config check", "doctor", f"backup {tmp_path / 'backup'}"):
            found[words] = str(planted.slackwater(*words.split()))
        (tmp_path / "secrets" / TOKEN_FILE).write_text(NEW_TOKEN)
        hub.waits_for(lambda: port.get("/metrics").code == 401, "it refuses the old token")
        found["/metrics again"] = _text(Port(config.http.port, NEW_TOKEN), "/metrics")
        hub.terminate()
        assert hub.ends() == 0
        found["log"] = hub.output
    found["command lines"] = str(lines)
    found["own output"] = str(capsys.readouterr())
    found["traces and lineage"] = str([one.body for one in told.requests])
    for folder in (planted.state, tmp_path / "backup"):
        found |= {**dict(files_below(folder)), **dict(rows_below(folder))}
    found |= dict(files_below(tmp_path / "events"))

    assert {where for where, text in found.items() if SECRET in text} == set()
    assert "slackwater_hub_epoch" in found["/metrics again"]
    assert readable_by_others(planted.state) == []
    # every place was looked into: it has what is no secret
    assert any(b"SparkSubmit" in line for line in lines)
    assert "spark.hadoop.myapp.dbpass" in found["Spark's page"]
    assert "spark.hadoop.myapp.dbpass" in found[f"rows of {planted.state / 'config'}"]
    assert "spark.hadoop.myapp.dbpass" in found[f"rows of {tmp_path / 'backup' / 'config'}"]
    assert any("spark.hadoop.myapp.dbpass" in text for _, text in files_below(tmp_path / "events"))
    assert told.requests


def _text(port: Port, path: str) -> str:
    try:
        return port.get(path).text
    except OSError:  # it does not listen yet
        return ""
