"""A replica whose file was deleted or put back: stopped, told so, and made anew."""

import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.reader import open_state
from connectors.kafka.broker import Broker
from streaming.cli.main import main
from tests.harness.hub_process import TIMEOUT_S, wait_until
from tests.harness.site import Site, site

CREATE = "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT)"


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose databases are there and empty."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        for name in "ab":
            create(made, name)
        yield made


def database(at: Site, name: str) -> Path:
    """A replica's file."""
    return at.folder / f"{name}.db"


def create(at: Site, name: str) -> None:
    """A new file with its table."""
    with closing(sqlite3.connect(database(at, name))) as client:
        client.execute(CREATE)


def write(at: Site, name: str, key: str, value: str) -> None:
    """Write a row as any client would."""
    with closing(sqlite3.connect(database(at, name), timeout=60)) as client, client:
        client.execute("INSERT OR REPLACE INTO t VALUES (?, ?)", (key, value))


def rows(at: Site, name: str) -> dict[str, str]:
    """What a file holds."""
    with closing(sqlite3.connect(database(at, name), timeout=60)) as client:
        return dict(client.execute("SELECT k, v FROM t"))


def agent(at: Site, name: str) -> "subprocess.Popen[str]":
    """Start a replica's agent."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "streaming.cli.main", "agent", "--config", str(at.file)),
            *("--replica", name, "--database", str(database(at, name))),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )


def captures(at: Site, name: str) -> bool:
    """Whether what is written to a file is captured."""
    trigger = "SELECT 1 FROM sqlite_schema WHERE name = '_slackwater_after_insert_t'"
    with closing(sqlite3.connect(database(at, name), timeout=60)) as client:
        return client.execute(trigger).fetchone() is not None


@contextmanager
def agents(at: Site, names: str) -> Iterator[None]:
    """Agents at work; they end in order with the block."""
    started = {name: agent(at, name) for name in names}
    try:
        for name, one in started.items():
            wait_until(lambda: captures(at, name) or one.poll() is not None, lambda: name)  # noqa: B023
        yield
    finally:
        for one in started.values():
            one.terminate()
        ended = [one.communicate(timeout=TIMEOUT_S) for one in started.values()]
    assert [one.returncode for one in started.values()] == [0] * len(started), ended


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
