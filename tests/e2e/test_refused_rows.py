"""A row that a database refuses stops nobody: it is listed, and sent again."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.agents_of_kinds import agents, create, execute, rows
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site

CREATE = "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT UNIQUE)"
EMAIL = "ann@example.org"


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with three replicas, in whose tables `v` is unique; b is of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        for name in "ac":
            create(made, name, CREATE)
        create(made, "b", CREATE, server=server)
        yield made


def insert(at: Site, name: str, key: str, value: str) -> None:
    """Insert a row as any client would."""
    execute(at, name, "INSERT INTO t VALUES (?, ?)", key, value)


def wait_for_rows(at: Site, expected: Mapping[str, Mapping[str, str]]) -> None:
    """Wait until the files hold these rows."""
    wait_until(
        lambda: all(rows(at, name) == expected[name] for name in expected),
        lambda: f"{[rows(at, name) for name in expected]} is not {expected}",
    )


def refused(at: Site) -> list[dict[str, Any]]:
    """The open refusals that `conflicts list` shows."""
    found = at.slackwater("conflicts", "list", "--kind", "refused", "--open")
    return list(found)


def lacking(at: Site) -> set[tuple[str, str]]:
    """Replica and key of every row that `level` lists as refused."""
    found = at.slackwater("level", "--wait", "1")["differing"]
    return {(row["replica"], row["key"]) for row in found if row["kind"] == "refused"}


def is_level(at: Site) -> bool:
    """Whether `level` says yes."""
    return bool(at.slackwater("level", "--wait", "20")["level"])


def collide(at: Site) -> tuple[str, str]:
    """Let a and b insert different rows with one email; the key that c has, and the other."""
    insert(at, "a", "of-a", EMAIL)
    insert(at, "b", "of-b", EMAIL)
    wait_until(lambda: len(refused(at)) == 3, lambda: f"three refusals: {refused(at)}")
    (first,) = rows(at, "c").keys() & {"of-a", "of-b"}
    return first, "of-b" if first == "of-a" else "of-a"


def test_one_email_at_two_replicas_is_listed_until_one_changes(
    three: Site, spark: SparkSession
) -> None:
    """Each keeps its own row, everything else flows; what was refused comes when it is freed."""
    with three.running(spark), agents(three, "abc"):
        insert(three, "a", "before", "before")
        wait_for_rows(three, {name: {"before": "before"} for name in "abc"})
        first, second = collide(three)
        insert(three, "a", "from-a", "1")
        insert(three, "b", "from-b", "2")
        insert(three, "c", "from-c", "3")
        others = {"before": "before", "from-a": "1", "from-b": "2", "from-c": "3"}
        wait_for_rows(
            three,
            {
                "a": {**others, "of-a": EMAIL},
                "b": {**others, "of-b": EMAIL},
                "c": {**others, first: EMAIL},
            },
        )

        assert lacking(three) == {
            ("a", '{"k":"of-b"}'),
            ("b", '{"k":"of-a"}'),
            ("c", f'{{"k":"{second}"}}'),
        }
        problems = [one["what"] for one in three.slackwater("status")["problems"]]
        assert problems == [f"the database of {name} refuses 1 row" for name in "abc"]
        assert {(row["code"], row["attempts"]) for row in refused(three)} == {("unique", 1)}
        assert all(state == "live" for state in three.replica_states().values())

        owner = second[-1]
        execute(three, owner, "UPDATE t SET v = 'bob@example.org' WHERE k = ?", second)
        wait_until(lambda: len(refused(three)) == 1, lambda: f"one is left: {refused(three)}")
        three.slackwater("conflicts", "retry", "--all")

        everything = {**others, first: EMAIL, second: "bob@example.org"}
        wait_for_rows(three, dict.fromkeys("abc", everything))
        assert is_level(three)
        assert three.slackwater("status")["problems"] == []


@pytest.mark.more
def test_a_retry_is_refused_again_until_what_blocks_is_gone(
    three: Site, spark: SparkSession
) -> None:
    """Another attempt is counted, and the agents' and hub's processes go on."""
    with three.running(spark), agents(three, "abc"):
        first, second = collide(three)
        blocked = second[-1]
        key = f'{{"k":"{first}"}}'

        three.slackwater("conflicts", "retry", "--table", "t", "--key", key)
        wait_until(
            lambda: max((row["attempts"] for row in refused(three)), default=0) == 2,
            lambda: f"a second attempt: {refused(three)}",
        )
        assert rows(three, blocked) == {second: EMAIL}

        execute(three, blocked, "DELETE FROM t WHERE k = ?", second)
        wait_until(lambda: len(refused(three)) == 1, lambda: f"one is left: {refused(three)}")
        three.slackwater("conflicts", "retry", "--replica", blocked)

        wait_for_rows(three, {name: {first: EMAIL} for name in "abc"})
        assert is_level(three)
        found = three.slackwater("conflicts", "list", "--kind", "refused")
        assert {row["resolution"] for row in found} == {"applied"}
