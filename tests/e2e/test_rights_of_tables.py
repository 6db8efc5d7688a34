"""A write in a table that its replica may not write stays there until an operator decides."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from streaming.core.records.record import Reason
from streaming.facts.history.uncarried import remedy_of
from tests.harness.agents_of_kinds import agents, create, execute, select
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site

TABLES: Mapping[str, str] = {"t": "EPOCH", "u": "EPOCH"}
CREATE = tuple(f"CREATE TABLE {name} (k TEXT NOT NULL PRIMARY KEY, v TEXT)" for name in TABLES)
FORBIDDEN = 'writes = ["t"]\n'
"""What replica a may write before an operator allows it more."""

Rows = dict[tuple[str, str], str]
"""Table and key -> the value of a row."""


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with two replicas, of which a may write one of the two tables; it is of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, functions=TABLES) as made:
        text = made.file.read_text()
        assert text.count("rid = 1\n") == 1
        made.file.write_text(text.replace("rid = 1\n", f"rid = 1\n{FORBIDDEN}"))
        create(made, "a", *CREATE, server=server)
        create(made, "b", *CREATE)
        yield made


def stored(at: Site, name: str) -> Rows:
    """What both tables of a database hold."""
    found = select(at, name, "SELECT 't', k, v FROM t UNION ALL SELECT 'u', k, v FROM u")
    return {(table, key): value for table, key, value in found}


def wait_for_stored(at: Site, **expected: Rows) -> None:
    """Wait until these databases hold these rows and no other."""

    def found() -> dict[str, Rows]:
        return {name: stored(at, name) for name in expected}

    wait_until(lambda: found() == expected, lambda: f"{found()} is not {expected}")


def insert(at: Site, name: str, table: str, key: str, value: str) -> None:
    """Insert a row as any client would."""
    execute(at, name, f"INSERT INTO {table} VALUES (?, ?)", key, value)


def uncarried(at: Site) -> dict[tuple[str, str], dict[str, Any]]:
    """Table and key -> the row as `conflicts list --kind uncarried` lists it."""
    found = at.slackwater("conflicts", "list", "--kind", "uncarried")
    return {(row["table"], row["key"]): row for row in found}


def wait_for_uncarried(at: Site, *rows: tuple[str, str]) -> None:
    """Wait until these rows are listed, and no other."""
    expected = {(table, f'{{"k":"{key}"}}') for table, key in rows}
    wait_until(lambda: uncarried(at).keys() == expected, lambda: f"{uncarried(at)}, not {rows}")


def allow(at: Site) -> None:
    """Let a write every table; the next start of the hub reads it."""
    at.file.write_text(at.file.read_text().replace(FORBIDDEN, 'writes = ["t", "u"]\n'))


def check_level(at: Site) -> None:
    """Everybody says that all is well."""
    assert uncarried(at) == {}
    assert at.slackwater("level", "--wait", "20")["level"]
    status = at.slackwater("status")
    assert (status["differing"], status["problems"]) == ([], [])
    assert at.slackwater("quarantine", "list") == []


def test_a_forbidden_row_is_released_once_its_table_is_allowed(
    two: Site, spark: SparkSession
) -> None:
    """Until then its writer keeps it, everybody says so, and the rest goes on."""
    with two.running(spark), agents(two, "ab"):
        insert(two, "a", "t", "1", "of a")
        insert(two, "b", "u", "1", "of b")
        before = {("t", "1"): "of a", ("u", "1"): "of b"}
        wait_for_stored(two, a=before, b=before)

        insert(two, "a", "u", "2", "forbidden")
        execute(two, "a", "UPDATE u SET v = 'forbidden' WHERE k = '1'")
        insert(two, "a", "t", "4", "behind them")
        insert(two, "b", "u", "5", "of b")

        forbidden = {("u", "1"), ("u", "2")}
        others = {("t", "1"): "of a", ("t", "4"): "behind them", ("u", "5"): "of b"}
        at_a = {**others, ("u", "1"): "forbidden", ("u", "2"): "forbidden"}
        at_b = {**others, ("u", "1"): "of b"}
        wait_for_stored(two, a=at_a, b=at_b)
        wait_for_uncarried(two, *forbidden)
        listed = uncarried(two)
        assert {(one["replica"], one["reason"]) for one in listed.values()} == {("a", "rights")}
        assert listed["u", '{"k":"2"}']["detail"] == "replica 1 may not write table u, but: t"
        answer = two.slackwater("level")
        assert not answer["level"]
        named = {(row["replica"], row["kind"]) for row in answer["differing"]}
        assert named == {("a", "uncarried")}
        status = two.slackwater("status")
        assert {(row["replica"], row["kind"]) for row in status["differing"]} == named
        assert status["problems"] != []

        two.slackwater("quarantine", "release", "--reason", "rights", "--yes")
        insert(two, "a", "t", "6", "behind the release")
        at_a["t", "6"] = "behind the release"
        wait_for_stored(two, a=at_a, b={**at_b, ("t", "6"): "behind the release"})
        wait_for_uncarried(two, *forbidden)

    allow(two)
    with two.running(spark), agents(two, "ab"):
        wait_for_uncarried(two, *forbidden)
        two.slackwater("quarantine", "release", "--reason", "rights", "--yes")

        wait_for_stored(two, a=at_a, b=at_a)
        insert(two, "a", "u", "7", "allowed")
        at_a["u", "7"] = "allowed"
        wait_for_stored(two, a=at_a, b=at_a)
        check_level(two)


@pytest.mark.more
def test_a_forbidden_row_that_is_dropped_is_the_hubs_again(two: Site, spark: SparkSession) -> None:
    """What was there before comes back, what was not goes, and nobody else ever had it."""
    with two.running(spark), agents(two, "ab"):
        insert(two, "b", "u", "1", "of b")
        insert(two, "b", "u", "2", "of b")
        before: Rows = {("u", "1"): "of b", ("u", "2"): "of b"}
        wait_for_stored(two, a=before, b=before)

        execute(two, "a", "UPDATE u SET v = 'forbidden' WHERE k = '1'")
        execute(two, "a", "DELETE FROM u WHERE k = '2'")
        insert(two, "a", "u", "3", "forbidden")
        wait_for_uncarried(two, ("u", "1"), ("u", "2"), ("u", "3"))
        listed = uncarried(two)
        assert not two.slackwater("level")["level"]

        two.slackwater("quarantine", "drop", listed["u", '{"k":"1"}']["id"])
        wait_for_uncarried(two, ("u", "2"), ("u", "3"))
        two.slackwater("quarantine", "drop", "--reason", "rights", "--yes")

        wait_for_stored(two, a=before, b=before)
        check_level(two)


@pytest.mark.more
def test_what_ends_a_forbidden_row_without_an_operator(two: Site, spark: SparkSession) -> None:
    """Who may write the table does; the writer's own delete does not, as it is forbidden too."""
    with two.running(spark), agents(two, "ab"):
        insert(two, "b", "u", "1", "of b")
        wait_for_stored(two, a={("u", "1"): "of b"})
        execute(two, "a", "UPDATE u SET v = 'forbidden' WHERE k = '1'")
        insert(two, "a", "u", "2", "forbidden")
        wait_for_uncarried(two, ("u", "1"), ("u", "2"))
        assert {one["remedy"] for one in uncarried(two).values()} == {remedy_of(Reason.RIGHTS)}

        execute(two, "b", "UPDATE u SET v = 'of b again' WHERE k = '1'")
        execute(two, "a", "DELETE FROM u WHERE k = '2'")
        insert(two, "a", "t", "1", "behind it")
        after = {("u", "1"): "of b again", ("t", "1"): "behind it"}
        wait_for_stored(two, a=after, b=after)
        wait_for_uncarried(two, ("u", "2"))

        two.slackwater("quarantine", "drop", "--reason", "rights", "--yes")
        wait_for_uncarried(two)
        assert stored(two, "a") == stored(two, "b") == after
        check_level(two)
