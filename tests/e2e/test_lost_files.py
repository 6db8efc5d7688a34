"""A replica whose file or topic was deleted or put back: stopped, told so, and made anew."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from checkpoints.reader import open_state
from connectors.kafka.broker import Broker
from streaming.cli.main import main
from tests.harness.hub_process import TIMEOUT_S, wait_until
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agent, agents, captures, create, database, execute, rows


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose databases are there and empty."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        for name in "ab":
            create(made, name)
        yield made


def write(at: Site, name: str, key: str, value: str) -> None:
    """Write a row as any client would."""
    execute(at, name, "INSERT OR REPLACE INTO t VALUES (?, ?)", key, value)


def hold(at: Site, expected: dict[str, str]) -> None:
    """Wait until both files have these rows."""
    wait_until(
        lambda: all(rows(at, name) == expected for name in "ab"),
        lambda: f"{[rows(at, name) for name in 'ab']} is not {expected}",
    )


def is_told(at: Site, name: str) -> str:
    """Start an agent that the hub stopped; what it says at its end."""
    one = agent(at, name)
    try:
        _, said = one.communicate(timeout=TIMEOUT_S)
    finally:
        one.kill()
    assert one.returncode == 1, said
    return said


def reinit(at: Site, name: str) -> int:
    """Run `slackwater reinit`."""
    return main(["reinit", name, "--config", str(at.file), "--database", str(database(at, name))])


def saved(at: Site) -> list[dict[str, object]]:
    """The rows in the files that reinit wrote."""
    files = at.folder.glob("a.db.reinit-*.jsonl")
    return [json.loads(line)["row"] for file in files for line in file.read_text().splitlines()]


def judged(at: Site) -> list[str]:
    """Every CSN in the changelog."""
    changes = open_state(at.state).changelog({"kind": "change"}, columns=["csn"])
    return [str(csn) for csn in changes["csn"].to_pylist()]


def test_a_deleted_file_comes_back_whole(at: Site, spark: SparkSession) -> None:
    """Its own changes included, and what it writes then has CSNs that were never given."""
    with at.running(spark):
        with agents(at, "ab"):
            write(at, "a", "k1", "of a")
            write(at, "b", "k2", "of b")
            hold(at, {"k1": "of a", "k2": "of b"})
        for file in at.folder.glob("a.db*"):
            file.unlink()
        create(at, "a")
        assert "unsupported: hello with lost" in is_told(at, "a")
        assert "slackwater reinit" in is_told(at, "a")  # also the next one, which reports no loss

        assert reinit(at, "a") == 0

        with agents(at, "ab"):
            hold(at, {"k1": "of a", "k2": "of b"})
            write(at, "a", "k1", "again")
            hold(at, {"k1": "again", "k2": "of b"})
    assert saved(at) == []
    assert len(judged(at)) == len(set(judged(at))) == 3
    assert at.replica_states() == {"a": "live", "b": "live"}


def test_an_old_copy_of_a_file_is_made_anew(
    at: Site, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """What only the copy has is in a file; what it lost comes back; nothing else is touched."""
    with at.running(spark):
        with agents(at, "ab"):
            write(at, "a", "k1", "old")
            hold(at, {"k1": "old"})
        shutil.copy(database(at, "a"), at.folder / "copy")
        with agents(at, "ab"):
            write(at, "a", "k1", "new")
            write(at, "a", "k2", "lost")
            hold(at, {"k1": "new", "k2": "lost"})
        for file in at.folder.glob("a.db-*"):
            file.unlink()
        shutil.copy(at.folder / "copy", database(at, "a"))
        write(at, "a", "k3", "only here")
        assert "unsupported: hello with lost" in is_told(at, "a")
        capsys.readouterr()
        assert main(["status", "--config", str(at.file)]) == 1
        assert "slackwater reinit" in capsys.readouterr().out

        assert reinit(at, "a") == 0

        with agents(at, "ab"):
            hold(at, {"k1": "new", "k2": "lost"})
            write(at, "b", "k3", "later")
            hold(at, {"k1": "new", "k2": "lost", "k3": "later"})
    assert saved(at) == [{"k": "k1", "v": "old"}, {"k": "k3", "v": "only here"}]
    assert len(judged(at)) == len(set(judged(at))) == 4


def test_a_deleted_topic_brings_its_agent_to_an_end(at: Site, spark: SparkSession) -> None:
    """Its agent says why and what to do, however often it is started; nothing is lost silently."""
    state = "input_lost: its topic was deleted and created again"
    with at.running(spark):
        first = agent(at, "a")
        try:
            with agents(at, "b"):
                write_once_captured(at, "a", "k1", "of a")
                hold(at, {"k1": "of a"})
                client = KafkaAdminClient(bootstrap_servers=at.ends.bootstrap)
                client.delete_topics([at.replicas["a"].changes])
                client.close()
                write(at, "a", "k2", "only here")
                _, said = first.communicate(timeout=TIMEOUT_S)
                assert (first.returncode, state in said) == (1, True), said
        finally:
            first.kill()
        assert state in is_told(at, "a")
        assert main(["recover", "a", "--config", str(at.file)]) == 0
        wait_until(lambda: at.replica_states()["a"] == "recovered", lambda: "it is recovered")
        assert "slackwater reinit" in is_told(at, "a")

        assert reinit(at, "a") == 0

        with agents(at, "ab"):
            write(at, "b", "k3", "of b")
            hold(at, {"k1": "of a", "k3": "of b"})
            write(at, "a", "k2", "again")
            hold(at, {"k1": "of a", "k2": "again", "k3": "of b"})
    assert saved(at) == [{"k": "k2", "v": "only here"}]
    assert at.replica_states() == {"a": "live", "b": "live"}


def write_once_captured(at: Site, name: str, key: str, value: str) -> None:
    """Write a row as soon as its agent captures."""
    wait_until(lambda: captures(at, name), lambda: name)
    write(at, name, key, value)
