"""A replica whose database or topic was deleted or put back: it goes on, or is told what to do."""

import json
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from checkpoints.reading.reader import open_state
from connectors.kafka.embedded.broker import Broker
from streaming.cli.main import main
from tests.connectors.postgres.scratch_server import ScratchServer
from tests.harness import sqlite_agents
from tests.harness.agents_of_kinds import (
    agents,
    back_up,
    captures,
    copy_files,
    create,
    execute,
    lose,
    own_table,
    place,
    put_back,
    rows,
    select,
)
from tests.harness.hub_process import TIMEOUT_S, wait_until
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import database


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose databases are empty files."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        for name in "ab":
            create(made, name)
        yield made


@pytest.fixture
def of_kind(
    tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None
) -> Iterator[Site]:
    """The same with a of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        create(made, "a", server=server)
        create(made, "b")
        yield made


def write(at: Site, name: str, key: str, value: str) -> None:
    """Write a row as any client would."""
    statement = "INSERT INTO t VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
    execute(at, name, statement, key, value)


def agent(
    at: Site, name: str, file: Path | str | None = None, *arguments: str
) -> "subprocess.Popen[str]":
    """Start a replica's agent."""
    return sqlite_agents.agent(at, name, file or place(at, name), *arguments)


def hold(at: Site, expected: dict[str, str]) -> None:
    """Wait until all databases have these rows."""
    wait_until(
        lambda: all(rows(at, name) == expected for name in at.replicas),
        lambda: f"{[rows(at, name) for name in at.replicas]} is not {expected}",
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
    return main(["reinit", name, "--config", str(at.file), "--database", place(at, name)])


def saved(at: Site) -> list[dict[str, object]]:
    """The rows in the files that reinit wrote."""
    files = at.folder.glob("a*.reinit-*.jsonl")
    return [json.loads(line)["row"] for file in files for line in file.read_text().splitlines()]


def judged(at: Site) -> list[str]:
    """Every CSN in the changelog."""
    changes = open_state(at.state).changelog({"kind": "change"}, columns=["csn"])
    return [str(csn) for csn in changes["csn"].to_pylist()]


def test_a_deleted_database_comes_back_whole(of_kind: Site, spark: SparkSession) -> None:
    """Its own changes included, and what it writes then has CSNs that were never given."""
    at = of_kind
    with at.running(spark):
        with agents(at, "ab"):
            write(at, "a", "k1", "of a")
            write(at, "b", "k2", "of b")
            hold(at, {"k1": "of a", "k2": "of b"})
        lose(at, "a")

        with agents(at, "ab"):
            hold(at, {"k1": "of a", "k2": "of b"})
            write(at, "a", "k1", "again")
            hold(at, {"k1": "again", "k2": "of b"})
    assert len(judged(at)) == len(set(judged(at))) == 3
    assert at.replica_states() == {"a": "live", "b": "live"}


LOST = {f"lost{n}": f"of a {n}" for n in range(20)}
"""What a writes and publishes behind its backup, each row by itself."""


@pytest.mark.more
@pytest.mark.parametrize("is_live", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_database_that_is_put_back_gets_what_it_lost(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    spark: SparkSession,
    own_server: ScratchServer | None,
    *,
    is_live: bool,
) -> None:
    """By itself, through a kill, while others write; what it wrote without it is recorded.

    `is_live`: the backup is made by the database while the agent works; otherwise its files are
    copied. That of a server has no slot, so the agent tells all rows: a new one is lost to nobody.
    """
    told = {"k4": "before its agent"} if own_server and is_live else {}
    limits = {"page_items": 3}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", limits) as at:
        create(at, "a", server=own_server.conninfo if own_server else None)
        for name in "bc":
            create(at, name)
        with at.running(spark) as hub, agents(at, "bc"):
            with agents(at, "a"):
                write(at, "a", "k1", "old")
                hold(at, {"k1": "old"})
                backup = back_up(at, "a", own_server) if is_live else None
            if backup is None:
                backup = copy_files(at, "a", own_server)
            with agents(at, "a"):
                for key, value in LOST.items():
                    write(at, "a", key, value)
                write(at, "a", "k1", "new")
                hold(at, {"k1": "new", **LOST})
            write(at, "b", "lost1", "of b, who knew it")
            write(at, "c", "k3", "of c")
            put_back(at, "a", backup, own_server)
            write(at, "a", "k1", "without the new one")
            write(at, "a", "k4", "before its agent")
            said = is_killed_in_catch_up(at)
            write(at, "b", "k5", "of b")

            with agents(at, "a"):
                expected = {"k1": "new", **LOST, "lost1": "of b, who knew it"}
                expected |= {"k3": "of c", "k5": "of b", **told}
                hold(at, expected)
                wait_until(lambda: at.slackwater("level")["level"], lambda: "level")
                write(at, "a", "k4", "after all")
                hold(at, {**expected, "k4": "after all"})
            assert not hub.work.done()
        lost = {row["key"]: row for row in open_state(at.state).conflicts({}).to_pylist()}
        states = at.replica_states()
    assert said.count("the database lacks 21 changes that it published") == 1
    assert len(judged(at)) == len(set(judged(at)))
    if not told:
        assert {key: (row["cause"], row["lost"]) for key, row in lost.items()} == {
            '{"k":"k1"}': ("floor", "change"),
            '{"k":"k4"}': ("floor", "change"),
        }
    assert json.loads(lost['{"k":"k1"}']["after"])["v"] == "without the new one"
    assert set(states.values()) == {"live"}


@pytest.mark.slow
def test_a_backup_that_is_put_back_twice_is_filled_twice(at: Site, spark: SparkSession) -> None:
    """The second hello reports no loss; the hub still knows what the first one lacked."""
    with at.running(spark), agents(at, "b"):
        with agents(at, "a"):
            write(at, "a", "k1", "old")
            hold(at, {"k1": "old"})
        backup = copy_files(at, "a", None)
        with agents(at, "a"):
            write(at, "a", "k1", "new")
            write(at, "a", "k2", "lost")
            hold(at, {"k1": "new", "k2": "lost"})
        for _ in range(2):
            put_back(at, "a", backup, None)
            assert rows(at, "a") == {"k1": "old"}
            with agents(at, "a"):
                hold(at, {"k1": "new", "k2": "lost"})
    assert len(judged(at)) == len(set(judged(at))) == 3
    assert at.slackwater("conflicts", "list") == []


def is_killed_in_catch_up(at: Site) -> str:
    """Start a's agent and kill it when it has applied a part; what it said."""
    before, one = covers(at), agent(at, "a")
    try:
        wait_until(lambda: covers(at) > before or one.poll() is not None, lambda: "it catches up")
    finally:
        one.kill()
        _, said = one.communicate(timeout=TIMEOUT_S)
    assert one.returncode == -9, said
    return said


def covers(at: Site) -> int:
    """The hub epoch up to which a is complete."""
    ((found,),) = select(at, "a", f"SELECT covers FROM {own_table(at, 'a', 'position')}")
    return int(found)


@pytest.mark.more
@pytest.mark.parametrize(
    "with_reinit",
    [pytest.param(False, id="start", marks=pytest.mark.slow), pytest.param(True, id="reinit")],
)
def test_a_deleted_topic_brings_its_agent_to_an_end(
    of_kind: Site, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, with_reinit: bool
) -> None:
    """Its agent says why and what to do; a full copy follows, `reinit` saves rows before it."""
    at = of_kind
    monkeypatch.chdir(at.folder)  # where the rows of a server are saved
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
        wait_until(lambda: at.replica_states()["a"] != state, lambda: "its loss is given up")

        if with_reinit:
            assert reinit(at, "a") == 0

        with agents(at, "ab"):
            write(at, "b", "k3", "of b")
            hold(at, {"k1": "of a", "k3": "of b"})
            write(at, "a", "k2", "again")
            hold(at, {"k1": "of a", "k2": "again", "k3": "of b"})
    assert saved(at) == ([{"k": "k2", "v": "only here"}] if with_reinit else [])
    assert at.replica_states() == {"a": "live", "b": "live"}


@pytest.mark.more
def test_the_agent_of_a_copy_ends_the_first_one_and_nothing_is_lost(
    at: Site, spark: SparkSession
) -> None:
    """What the first one published behind the other's hello is published again at its start.

    SQLite's alone: of a server's database a second agent waits for the first one.
    """
    written = {f"k{n}": f"of a {n}" for n in range(60)}
    with at.running(spark), agents(at, "b"):
        first = agent(at, "a")
        write_once_captured(at, "a", "k", "of a")
        hold(at, {"k": "of a"})
        copy = at.folder / "copy.db"
        with closing(sqlite3.connect(database(at, "a"))) as source:
            source.execute("VACUUM INTO ?", (str(copy),))
        second = agent(at, "a", copy)
        try:
            assert second.stderr is not None
            assert " starts: covers " in second.stderr.readline()
            for key, value in written.items():
                write(at, "a", key, value)
                time.sleep(0.05)
            _, said = first.communicate(timeout=TIMEOUT_S)
        finally:
            first.kill()
            second.terminate()
            second.communicate(timeout=TIMEOUT_S)
        kept = at.slackwater("quarantine", "list")
        between = at.slackwater("level", "--max-age", "60")

        with agents(at, "a"):
            hold(at, {"k": "of a", **written})
            wait_until(lambda: at.slackwater("level")["level"], lambda: at.slackwater("level"))
    assert first.returncode == 1
    assert "another agent runs under the name of this replica" in said
    assert {one["reason"] for one in kept} == {"session"}
    assert any(one["csn"] for one in kept)
    assert not between["level"]
    assert len(judged(at)) == len(set(judged(at))) == len(written) + 1


def write_once_captured(at: Site, name: str, key: str, value: str) -> None:
    """Write a row as soon as its agent captures."""
    wait_until(lambda: captures(at, name), lambda: name)
    write(at, name, key, value)
