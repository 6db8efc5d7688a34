"""Whatever happens to a replica: as long as its database is another one, `level` says no."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from resource import RLIMIT_FSIZE, prlimit

import pytest
from kafka import KafkaAdminClient, TopicPartition
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from streaming.cli.main import main
from streaming.core.intake.liveness import UnheardReason
from streaming.facts.consumers.level import HubLevel
from tests.connectors.postgres.scratch_server import ScratchServer
from tests.harness.agents_of_kinds import (
    agents,
    at_work,
    back_up,
    create,
    execute,
    execute_each,
    place,
    put_back,
    rows,
)
from tests.harness.hub_process import wait_until
from tests.harness.level_watch import LevelWatch, watched
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import kill

TIMEOUT_S = 12
"""After how much silence a killed agent counts as unheard here."""

ACK_TIMEOUT_S = 3
"""After how much silence a consumer counts as away in the story of one."""


@pytest.fixture
def at(
    tmp_path: Path, broker: Broker, topic_prefix: str, own_server: ScratchServer | None
) -> Iterator[Site]:
    """A hub with two replicas, whose databases are there and empty; a is of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        text = made.file.read_text()
        timeout = "heartbeat_timeout_s = "
        made.file.write_text(text.replace(f"{timeout}3600", f"{timeout}{TIMEOUT_S}"))
        create(made, "a", server=own_server.conninfo if own_server else None)
        create(made, "b")
        yield made


ROWS = 20


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with three replicas; a has rows, b and c are empty and of any kind."""
    limits = {"resync_page_rows": 8, "resync_pages": 1}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", limits) as made:
        create(made, "a")
        for name in "bc":
            create(made, name, server=server)
        values = [(f"{number:03}", "there before") for number in range(ROWS)]
        execute_each(made, "a", "INSERT INTO t VALUES (?, ?)", values)
        yield made


def told(at: Site, *words: str) -> int:
    """The exit code of a command."""
    return main([*words, "--config", str(at.file)])


def without(at: Site, name: str) -> str:
    """Take the last replica and its agreement out of the configuration; what it was."""
    text = at.file.read_text()
    at.file.write_text(text[: text.index(f'[[replicas]]\nname = "{name}"')])
    return text


def is_stopped(name: str, status: str, found: HubLevel) -> bool:
    """Whether the answer is that this replica is stopped so."""
    return found.stopped.get(name, "").startswith(status) and not found.level


def write(watch: LevelWatch, name: str, key: str) -> None:
    """Write a row beside agents at work, and wait until every file has it."""
    with watch.turn:
        execute(watch.at, name, "INSERT INTO t VALUES (?, ?)", key, f"of {name}")
        wait_until(lambda: all(key in rows(watch.at, one) for one in watch.names), lambda: key)


def is_unheard(name: str, why: UnheardReason, found: HubLevel) -> bool:
    """Whether the answer is that it cannot be said, for this reason."""
    return (name, why) in [(one.replica, one.why) for one in found.unheard] and not found.level


def test_an_agent_that_ends_takes_the_yes_with_it(
    at: Site, spark: SparkSession, own_server: ScratchServer | None
) -> None:
    """Its database is put back and written to; no answer is yes until it has everything again."""
    with at.running(spark), watched(at, "ab") as watch, agents(at, "b"):
        with agents(at, "a"):
            write(watch, "a", "k1")
            backup = back_up(at, "a", own_server)
            write(watch, "b", "k2")
            watch.awaits_yes()
        ended = watch.ask()
        with watch.turn:
            put_back(at, "a", backup, own_server)
            execute(at, "a", "INSERT INTO t VALUES ('k3', 'before its agent')")
        watch.awaits(lambda found: is_unheard("a", UnheardReason.ENDED, found), "a has ended")
        with agents(at, "a"):
            watch.awaits_yes()

            assert rows(at, "a") == rows(at, "b")
            assert set(rows(at, "a")) == {"k1", "k2", "k3"}
    assert not ended.level


@pytest.mark.slow
def test_an_agent_that_is_killed_takes_the_yes_with_it_when_its_heartbeats_are_missed(
    at: Site, spark: SparkSession, own_server: ScratchServer | None
) -> None:
    """It says no goodbye; its successor says it, and the hello comes when the topic is read."""
    with at.running(spark), watched(at, "ab") as watch, agents(at, "b"):
        with at_work(at, "a") as first:
            write(watch, "b", "k1")
            backup = back_up(at, "a", own_server)
            write(watch, "b", "k2")
            watch.awaits_yes()
            kill(first)
            watch.awaits(lambda found: is_unheard("a", UnheardReason.SILENT, found), "a is silent")
        with watch.turn:
            put_back(at, "a", backup, own_server)
        with agents(at, "a"):
            watch.awaits_yes()

            assert rows(at, "a") == rows(at, "b") == {"k1": "of b", "k2": "of b"}


@pytest.mark.more
def test_a_replica_that_cannot_apply_takes_the_yes_with_it(
    at: Site,
    spark: SparkSession,
    own_server: ScratchServer | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is silent by `ack_timeout_s`, its database takes no byte, and it is emptied.

    What is in the way is a file that may not grow, or a server that is stopped.
    """
    monkeypatch.chdir(at.folder)  # where the rows of a server are saved
    text = at.file.read_text()
    at.file.write_text(text.replace("[hub]", f"[hub]\nack_timeout_s = {ACK_TIMEOUT_S}"))
    with at.running(spark), watched(at, "ab") as watch, agents(at, "b"):
        with at_work(at, "a") as one:
            write(watch, "b", "k1")
            watch.awaits_yes()
            is_silent_and_back(watch, one)
            if own_server is None:
                has_no_space(watch, one)
            else:
                has_no_server(watch, one, own_server)
        with agents(at, "a"):
            watch.awaits_yes()
        command = ("reinit", "a", "--database", place(at, "a"))
        with watch.turn:
            assert told(at, *command) == 0
            assert rows(at, "a") == {}
            execute(at, "b", "INSERT INTO t VALUES ('k4', 'while a was empty')")
        with agents(at, "a"):
            watch.awaits_yes()

            assert rows(at, "a") == rows(at, "b")
            assert set(rows(at, "a")) == {"k1", "k2", "k3", "k4"}


def is_silent_and_back(watch: LevelWatch, one: "subprocess.Popen[str]") -> None:
    """Stop the process of a until it counts as away, write what it lacks, and let it go on."""
    with watch.turn:
        one.send_signal(signal.SIGSTOP)
        execute(watch.at, "b", "INSERT INTO t VALUES ('k2', 'while a was silent')")
        watch.awaits(lambda found: not found.level, "a lacks a row")
    watch.awaits(lambda found: [*found.resyncs] and not found.level, "a counts as away")
    one.send_signal(signal.SIGCONT)
    watch.awaits_yes()
    assert "k2" in rows(watch.at, "a")


def has_no_space(watch: LevelWatch, one: "subprocess.Popen[str]") -> None:
    """Let the agent of a write not one byte more, to no file, and write what it lacks."""
    with watch.turn:
        prlimit(one.pid, RLIMIT_FSIZE, (0, 0))
        execute(watch.at, "b", "INSERT INTO t VALUES ('k3', 'without space at a')")
        watch.awaits(lambda found: not found.level, "a lacks a row")
    _, said = one.communicate(timeout=60)
    assert one.returncode == 1
    assert "the database file cannot be read or written" in said
    watch.awaits(lambda found: found.unheard and not found.level, "a is not heard")


def has_no_server(watch: LevelWatch, one: "subprocess.Popen[str]", server: ScratchServer) -> None:
    """Stop the server of a, write what it lacks, and start it again: its agent goes on."""
    with watch.turn:
        server.stop()
        execute(watch.at, "b", "INSERT INTO t VALUES ('k3', 'without a server at a')")
        watch.awaits(lambda found: not found.level, "a lacks a row")
    server.start()
    watch.awaits_yes()
    assert "k3" in rows(watch.at, "a")
    one.terminate()
    _, said = one.communicate(timeout=60)
    assert one.returncode == 0, said


@pytest.mark.more
def test_what_an_operator_does_takes_the_yes_with_it(three: Site, spark: SparkSession) -> None:
    """A snapshot, a pause, a resync, a restored hub, a new replica, lost input, and a retirement.

    Each of them begins with files that differ, or ends with some that do.
    """
    backup = three.folder / "backup"
    text = without(three, "c")
    three.run_available(spark)
    with watched(three, "ab") as watch:
        with three.running(spark), agents(three, "b"):
            watch.awaits(lambda found: is_unheard("a", UnheardReason.NEVER, found), "a is new")
            with at_work(three, "a", "--snapshot"):
                watch.awaits_yes()
                assert len(rows(three, "b")) == ROWS
            with agents(three, "a"):
                paused_and_resynced(watch)
                assert told(three, "backup", str(backup)) == 0
                write(watch, "b", "behind the backup")
        with watch.turn:
            shutil.rmtree(three.state)
            assert told(three, "restore", str(backup)) == 0
            three.file.write_text(text)
        with agents(three, "ab"):
            with three.running(spark):
                joined(watch)
            loses_what_is_unread(watch)
            with three.running(spark):
                recovered_and_retired(watch)
    assert watch.yes > 0


def paused_and_resynced(watch: LevelWatch) -> None:
    """Pause b, write what it lacks, and resync it page by page."""
    at = watch.at
    assert told(at, "pause", "b") == 0
    watch.awaits(lambda found: found.resyncs and not found.level, "b is away")
    with watch.turn:
        execute(at, "a", "UPDATE t SET v = 'while b was away'")
    published = partial(at.ends.read, at.replicas["a"].changes)
    wait_until(
        lambda: b"while b was away" in b"".join(v for _, v in published()), lambda: "it is there"
    )
    assert told(at, "resync", "b") == 0
    watch.awaits_yes()
    assert {*rows(at, "b").values()} == {"while b was away"}


def joined(watch: LevelWatch) -> None:
    """Start c, which the restored hub finds in its configuration."""
    at = watch.at
    watch.awaits(lambda found: is_unheard("c", UnheardReason.NEVER, found), "c is new")
    with agents(at, "c"):
        watch.awaits_yes()
        with watch.turn:
            watch.names = "abc"
            assert rows(at, "a") == rows(at, "b") == rows(at, "c")
        write(watch, "c", "of the new one")
    assert "behind the backup" in rows(at, "c")


def loses_what_is_unread(watch: LevelWatch) -> None:
    """While no hub runs c writes a row, and its topic loses the record."""
    at = watch.at
    topic = at.replicas["c"].changes
    with agents(at, "c"):
        with watch.turn:
            execute(at, "c", "INSERT INTO t VALUES ('gone', 'of c')")
            watch.awaits(lambda found: not found.level, "no for what no hub reads")
        published = partial(at.ends.read, topic)
        wait_until(lambda: b'"gone"' in b"".join(v for _, v in published()), lambda: "it is there")
    admin = KafkaAdminClient(bootstrap_servers=at.ends.bootstrap)
    admin.delete_records({TopicPartition(topic, 0): at.ends.end(topic)})
    admin.close()


def recovered_and_retired(watch: LevelWatch) -> None:
    """Give up what c lost, let it start anew, and retire it when its file goes its own way."""
    at = watch.at
    watch.awaits(lambda found: is_stopped("c", "input_lost", found), "c has lost input")
    assert told(at, "recover", "c") == 0
    watch.awaits(lambda found: is_stopped("c", "recovered", found), "c is recovered")
    with agents(at, "c"):
        watch.awaits_yes()
        assert "gone" not in rows(at, "c")
        write(watch, "c", "after its loss")
    watch.awaits(lambda found: is_unheard("c", UnheardReason.ENDED, found), "c has ended")
    with watch.turn:
        execute(at, "c", "INSERT INTO t VALUES ('own way', 'of c')")
    with watch.turn:
        watch.names = "ab"
        assert told(at, "retire", "c", "--yes") == 0
    watch.awaits_yes()
    assert "own way" not in rows(at, "a")
