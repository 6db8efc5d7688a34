"""What a user commits and nobody else can take stays in his file, and everybody says so."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.databases import kind_of, parse_dsn
from connectors.kafka.embedded.broker import Broker
from tests.e2e.test_refused_rows import insert, is_level, wait_for_rows
from tests.harness.agents_of_kinds import (
    agents,
    create,
    execute,
    execute_uncaptured,
    place,
    select,
)
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import database

LONG = "x" * 3_000_000

TIMES: dict[str, str | int | float] = {
    "leap second": "2016-12-31 23:59:60",
    "end of a day": "2024-02-29 24:00:00",
    "hour only": "24:00:00",
    "year 0": "0000-01-01",
    "year 10000": "10000-01-01 00:00:00",
    "nothing": "",
    "blank": " ",
    "epoch": 1_700_000_000,
    "epoch in ms": 1_700_000_000_000,
    "epoch as text": "1700000000",
    "Julian day": 2460310.5,
    "slashes": "2024/02/29",
    "no such day": "2023-02-29",
}
"""Thirteen times that databases hold and no other replica takes."""


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        yield made


def uncarried(at: Site) -> dict[str, dict[str, Any]]:
    """Key -> the row as `conflicts list --kind uncarried` lists it."""
    return {row["key"]: row for row in at.slackwater("conflicts", "list", "--kind", "uncarried")}


def keys(*names: str) -> set[str]:
    """The keys of these rows, as they are listed."""
    return {f'{{"k":"{name}"}}' for name in names}


def wait_for_uncarried(at: Site, *names: str) -> None:
    """Wait until these rows are listed, and no other."""
    wait_until(lambda: uncarried(at).keys() == keys(*names), lambda: str(uncarried(at)))


def stored(at: Site, name: str) -> dict[str, object]:
    """What a database holds, values of SQLite in their storage classes."""
    return dict(select(at, name, "SELECT k, v FROM t"))


def saved(at: Site, name: str) -> set[str]:
    """The keys of the rows that a database saved before they were overwritten."""
    address = parse_dsn(place(at, name))
    return {one.key for one in kind_of(address.scheme).saved_rows(address.place)}


@pytest.mark.more
def test_a_row_that_no_record_holds_stays_at_its_writer(
    two: Site, spark: SparkSession, server: str | None
) -> None:
    """It is listed until it is written again, or dropped: only then its writer loses it.

    Not by a full copy, which mends what was written uncaptured, and saves it first; of a server's
    only what it deletes, for its agent tells a table again of which the log has not all.
    """
    mended = keys("1", "more") if server is None else keys("more")
    create(two, "a", server=server)
    create(two, "b")
    with two.running(spark), agents(two, "ab"):
        insert(two, "a", "1", "one")
        wait_for_rows(two, {name: {"1": "one"} for name in "ab"})

        insert(two, "a", "long", LONG)
        wait_for_uncarried(two, "long")
        insert(two, "a", "2", "two")

        others = {"1": "one", "2": "two"}
        wait_for_rows(two, {"a": {**others, "long": LONG}, "b": others})
        (row,) = uncarried(two).values()
        assert (row["replica"], row["image"]) == ("a", "database")
        assert not two.slackwater("level")["level"]
        named = two.slackwater("status")["differing"]
        assert [(one["replica"], one["kind"]) for one in named] == [("a", "uncarried")]

        update = "UPDATE t SET v = 'uncaptured' WHERE k = '1'"
        execute_uncaptured(two, "a", update, "INSERT INTO t VALUES ('more', 'uncaptured')")
        two.slackwater("resync", "a", "--full")
        wait_for_rows(two, {"a": {**others, "long": LONG}, "b": others})
        assert saved(two, "a") == mended
        wait_for_uncarried(two, "long")
        assert not two.slackwater("level")["level"]

        execute(two, "a", "UPDATE t SET v = 'short' WHERE k = 'long'")
        others["long"] = "short"
        wait_for_rows(two, dict.fromkeys("ab", others))
        assert (uncarried(two), is_level(two)) == ({}, True)
        assert two.slackwater("status")["problems"] == []

        insert(two, "a", "again", LONG)
        wait_for_uncarried(two, "again")
        (again,) = uncarried(two).values()
        two.slackwater("quarantine", "drop", again["id"])
        wait_for_rows(two, dict.fromkeys("ab", others))
        assert (uncarried(two), is_level(two)) == ({}, True)
    assert saved(two, "a") == mended | keys("again")


def test_times_that_nobody_else_takes_stay_at_their_writer(two: Site, spark: SparkSession) -> None:
    """One each, and one more with a good row in its transaction, until they are written again.

    SQLite's alone: a column of PostgreSQL holds no value that is not of its type.
    """
    two.file.write_text(two.file.read_text().replace('v = "text"', 'v = "timestamp"'))
    for name in "ab":
        create(two, name, "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v DATETIME)")
    with two.running(spark), agents(two, "ab"):
        with closing(sqlite3.connect(database(two, "a"), timeout=60)) as client:
            for name, value in TIMES.items():
                client.execute("INSERT INTO t VALUES (?, ?)", (name, value))
                client.commit()
        insert(two, "a", "good", "2024-02-29 12:00:00")

        wait_until(lambda: "good" in stored(two, "b"), lambda: str(stored(two, "b")))
        wait_for_uncarried(two, *TIMES)
        assert stored(two, "a").keys() - {"good"} == TIMES.keys()
        assert stored(two, "b").keys() == {"good"}
        assert {row["image"] for row in uncarried(two).values()} == {"quarantine"}
        assert not two.slackwater("level")["level"]

        execute(two, "a", "UPDATE t SET v = '2024-03-01' WHERE k != 'Julian day'")
        execute(two, "a", "DELETE FROM t WHERE k = 'Julian day'")
        left = {"good", *TIMES} - {"Julian day"}
        wait_until(lambda: stored(two, "b").keys() == left, lambda: str(stored(two, "b")))
        wait_for_uncarried(two)
        assert stored(two, "a").keys() == left
        assert is_level(two)

        execute(two, "a", "INSERT INTO t VALUES (x'62ff', '2024-03-01')")
        wait_until(lambda: len(uncarried(two)) == 1, lambda: str(uncarried(two)))
        execute(two, "a", "UPDATE t SET k = 'mended' WHERE k = x'62ff'")
        wait_until(lambda: "mended" in stored(two, "b"), lambda: str(uncarried(two)))
        wait_for_uncarried(two)
        assert is_level(two)
