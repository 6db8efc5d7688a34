"""Replicas that join a running hub: one whose database is full, one that `init` fills."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.e2e.test_consumers_away import are_equal, check, comes_to, resync_of
from tests.harness.agents_of_kinds import agents, at_work, create, execute, rows
from tests.harness.commits import last_commit
from tests.harness.hub_process import HubProcess
from tests.harness.site import RunningHub, Site, site
from tests.harness.sqlite_agents import database, kill

pytestmark = pytest.mark.more

PAGES = 20
"""Of a full copy."""


@pytest.fixture(params=[2_000, pytest.param(100_000, marks=pytest.mark.slow)])
def count(request: pytest.FixtureRequest) -> int:
    """How many rows the database of a has."""
    return int(request.param)


@pytest.fixture
def three(
    tmp_path: Path, broker: Broker, topic_prefix: str, count: int, server: str | None
) -> Iterator[Site]:
    """A hub with three replicas; that of a has rows, b's and c's are empty; c is of any kind."""
    page = count // PAGES
    limits = {"chunk_items": page // 3, "resync_page_rows": page, "resync_pages": 2}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", limits) as made:
        for name in "ab":
            create(made, name)
        create(made, "c", server=server)
        with closing(sqlite3.connect(database(made, "a"))) as client, client:
            values = ((f"{number:06}", f"of a {number}") for number in range(count))
            client.executemany("INSERT INTO t VALUES (?, ?)", values)
        yield made


def without(at: Site, name: str) -> str:
    """Take a replica and its agreement out of the configuration; what was in it."""
    text = at.file.read_text()
    begin = text.index(f'[[replicas]]\nname = "{name}"')
    at.file.write_text(text[:begin])
    return text


def agreements(at: Site) -> set[str]:
    """Those that the hub has committed."""
    commit = last_commit(at.state)
    return set(commit.state.agreements) if commit else set()


def is_under_way(at: Site, hub: HubProcess | RunningHub, name: str, count: int) -> None:
    """Wait until some of a copy is sent, and not all of it."""
    hub.waits_for(
        lambda: 0 < (resync_of(at, name).get("synchronized") or 0) < count, f"{name} gets its copy"
    )


@pytest.mark.more
def test_a_full_database_joins_and_a_new_one_is_filled(
    three: Site, spark: SparkSession, count: int
) -> None:
    """A copy of many pages, while others write; hub and agent are killed in mid copy."""
    text = without(three, "c")
    with three.running(spark) as hub, at_work(three, "a", "--snapshot"), agents(three, "b"):
        hub.waits_for(lambda: len(rows(three, "b")) == count, "b has the rows of a")
    three.file.write_text(text)
    with three.hub() as killed, agents(three, "ab"):
        killed.waits_for(lambda: "c" in agreements(three), "the hub knows c")
        planned = three.slackwater("init", "c")
        assert (planned["rows"], planned["short"]) == ({"t": count}, [])
        with at_work(three, "c"):
            is_under_way(three, killed, "c", count)
        killed.kill()
    with three.running(spark) as hub, agents(three, "ab"), at_work(three, "c") as dead:
        is_under_way(three, hub, "c", count)
        kill(dead)
        execute(three, "b", "UPDATE t SET v = 'of b' WHERE k < '000100'")
        execute(three, "b", "DELETE FROM t WHERE k >= ?", f"{count - 100:06}")
        with agents(three, "c"):
            comes_to(three, hub, "c", "in_sync")
            are_equal(three, hub, "abc")
        assert len(rows(three, "c")) == count - 100
    check(three)
