"""Whatever happens to a replica: as long as its file is another one, `level` says no."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.broker import Broker
from streaming.core.intake.heard import UnheardReason
from streaming.facts.level import HubLevel
from tests.harness.hub_process import wait_until
from tests.harness.level_watch import LevelWatch, watched
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agents, at_work, create, database, execute, kill, rows

TIMEOUT_S = 12
"""After how much silence a killed agent counts as unheard here."""


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, whose databases are there and empty."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        text = made.file.read_text()
        timeout = "heartbeat_timeout_s = "
        made.file.write_text(text.replace(f"{timeout}3600", f"{timeout}{TIMEOUT_S}"))
        for name in "ab":
            create(made, name)
        yield made


def write(watch: LevelWatch, name: str, key: str) -> None:
    """Write a row beside agents at work, and wait until every file has it."""
    with watch.turn:
        execute(watch.at, name, "INSERT INTO t VALUES (?, ?)", key, f"of {name}")
        wait_until(lambda: all(key in rows(watch.at, one) for one in watch.names), lambda: key)


def copy(at: Site, name: str) -> Path:
    """A backup of a replica's file, made by SQLite while its agent works."""
    with closing(sqlite3.connect(database(at, name))) as source:
        source.execute("VACUUM INTO ?", (str(at.folder / "copy"),))
    return at.folder / "copy"


def put_back(at: Site, name: str, backup: Path) -> None:
    """Replace a replica's file by its backup."""
    for file in at.folder.glob(f"{name}.db*"):
        file.unlink()
    shutil.copy(backup, database(at, name))


def is_unheard(name: str, why: UnheardReason, found: HubLevel) -> bool:
    """Whether the answer is that it cannot be said, for this reason."""
    return (name, why) in [(one.replica, one.why) for one in found.unheard] and not found.level


def test_an_agent_that_ends_takes_the_yes_with_it(at: Site, spark: SparkSession) -> None:
    """Its file is put back and written to; no answer is yes until it has everything again."""
    with at.running(spark), watched(at, "ab") as watch, agents(at, "b"):
        with agents(at, "a"):
            write(watch, "a", "k1")
            backup = copy(at, "a")
            write(watch, "b", "k2")
            watch.awaits_yes()
        ended = watch.ask()
        put_back(at, "a", backup)
        execute(at, "a", "INSERT INTO t VALUES ('k3', 'before its agent')")
        watch.awaits(lambda found: is_unheard("a", UnheardReason.ENDED, found), "a has ended")
        with agents(at, "a"):
            watch.awaits_yes()

            assert rows(at, "a") == rows(at, "b")
            assert set(rows(at, "a")) == {"k1", "k2", "k3"}
    assert not ended.level


def test_an_agent_that_is_killed_takes_the_yes_with_it_when_its_heartbeats_are_missed(
    at: Site, spark: SparkSession
) -> None:
    """It says no goodbye; its successor says it, and the hello comes when the topic is read."""
    with at.running(spark), watched(at, "ab") as watch, agents(at, "b"):
        with at_work(at, "a") as first:
            write(watch, "b", "k1")
            backup = copy(at, "a")
            write(watch, "b", "k2")
            watch.awaits_yes()
            kill(first)
            watch.awaits(lambda found: is_unheard("a", UnheardReason.SILENT, found), "a is silent")
        put_back(at, "a", backup)
        with agents(at, "a"):
            watch.awaits_yes()

            assert rows(at, "a") == rows(at, "b") == {"k1": "of b", "k2": "of b"}
