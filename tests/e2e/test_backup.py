"""`slackwater backup` beside a hub at work, and `restore` below replicas that are ahead of it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.maintenance.backup import MANIFEST
from checkpoints.tables import SCHEMAS, TableName
from connectors.kafka.embedded.broker import Broker
from connectors.wire import decode_answer
from streaming.cli.main import main
from streaming.core.records.record import Update
from tests.harness import verdict
from tests.harness.site import Site, site


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A site of two replicas."""
    with site(tmp_path / "site", broker.bootstrap_servers, topic_prefix, "ab") as at:
        yield at


def told(at: Site, *words: str) -> int:
    """The exit code of a command."""
    return main([*words, "--config", str(at.file)])


def generations(at: Site, name: str) -> set[int]:
    """The generations of what a consumer was sent."""
    sent = [decode_answer(value) for _, value in at.updates(name)]
    return {one.generation for one in sent if isinstance(one, Update)}


def write_some(at: Site) -> None:
    """Something for every table of the state: a conflict, a bad record, an open transaction."""
    a, b = at.replicas.values()
    for one in (a, b):
        one.write("k", f"of {one.name} before the backup")
    b.send_bytes(b"no JSON")
    a.write("open", "before the backup", inside="open")


def rows(at: Site) -> dict[tuple[str, str], str]:
    """The rows that the hub has."""
    return verdict.rows_of_changelog(at)


def test_a_backup_is_restored_under_replicas_that_are_ahead(
    pair: Site, tmp_path: Path, spark: SparkSession
) -> None:
    """What came behind it stands in the topics, and nothing of it is missing in the end."""
    a, b = pair.replicas.values()
    backup = tmp_path / "backup"
    for one in (a, b):
        one.hello()
    with pair.running(spark) as hub:
        hub.brings(a, b)
        write_some(pair)
        hub.takes(a, b)
        hub.brings(a, b)
        assert told(pair, "backup", str(backup)) == 0
        a.write("k", "behind the backup")
        b.write("j", "of b behind the backup")
        a.commit("open")
        hub.takes(a, b)
        hub.brings(a, b)
    before = rows(pair)
    shutil.rmtree(pair.state)

    assert told(pair, "restore", str(backup)) == 0
    with pair.running(spark) as hub:
        hub.brings(a, b)
        b.write("k", "written since")
        hub.takes(a, b)
        hub.brings(a, b)

    after = rows(pair)
    assert {*before} <= {*after}
    assert "written since" in str(after["t", '{"k":"k"}'])
    assert a.rows == b.rows == after
    assert generations(pair, "a") == generations(pair, "b") == {1, 2}
    assert told(pair, "verify") == 0


def test_a_backup_is_a_state_with_its_history(
    pair: Site, tmp_path: Path, spark: SparkSession
) -> None:
    """Row by row what the commit that it names left; if nothing was sent since, all goes on."""
    a, b = pair.replicas.values()
    for one in (a, b):
        one.hello()
    pair.run_available(spark)
    write_some(pair)
    pair.run_available(spark)
    wanted = {name: verdict.rows_of(pair.state, name) for name in SCHEMAS}
    backup = tmp_path / "backup"

    assert told(pair, "backup", str(backup)) == 0
    shutil.rmtree(pair.state)
    assert told(pair, "restore", str(backup)) == 0

    for name in SCHEMAS:
        found = verdict.rows_of(pair.state, name)
        if name is TableName.CONFIG:
            assert [row["command"] for row in found if row["command"]] == ["recover_hub"]
            found = [row for row in found if not row["command"]]
        for row in (*found, *wanted[name]):
            row.pop("versions", None)
        assert sorted(found, key=str) == sorted(wanted[name], key=str)
    for one in (a, b):
        one.catch_up()
    a.commit("open")
    pair.run_available(spark)
    for one in (a, b):
        one.catch_up()
    assert a.rows == b.rows == rows(pair)
    assert generations(pair, "a") == {1}


def test_what_is_no_place_for_it_is_refused(
    pair: Site, tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """A state is never overwritten, and half a backup is none."""
    pair.replicas["a"].hello()
    pair.run_available(spark)
    backup = tmp_path / "backup"
    assert told(pair, "backup", str(backup)) == 0

    (tmp_path / "file").write_text("of somebody")
    for place, why in (
        (backup, "is not empty"),
        (pair.state / "inside", "is inside of the state"),
        (tmp_path / "file", "nothing can be written to"),
        (tmp_path / "file" / "inside", "nothing can be written to"),
    ):
        assert told(pair, "backup", str(place)) == 1
        assert why in capsys.readouterr().err
    assert told(pair, "backup", "s3a://bucket/hub") == 2
    assert "s3a://bucket/hub: give the path of a folder, or s3://" in capsys.readouterr().err
    assert told(pair, "restore", str(backup)) == 1
    assert "there is a state in" in capsys.readouterr().err

    shutil.rmtree(pair.state)
    manifest = (backup / MANIFEST).read_text()
    (backup / MANIFEST).unlink()
    assert told(pair, "restore", str(backup)) == 1
    assert f"no whole backup in {backup}" in capsys.readouterr().err

    newer = {**json.loads(manifest), "format": 99}
    (backup / MANIFEST).write_text(json.dumps(newer))
    assert told(pair, "restore", str(backup)) == 1
    assert "restore it with the version that made it" in capsys.readouterr().err

    fewer = {**json.loads(manifest), "rows": {"changelog": 1}}
    (backup / MANIFEST).write_text(json.dumps(fewer))
    assert told(pair, "restore", str(backup)) == 1
    assert "was changed after it was made" in capsys.readouterr().err
