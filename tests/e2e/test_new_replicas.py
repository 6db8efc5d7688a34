"""Replicas that join a running hub: one whose database is full, one that `init` fills."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.kafka.broker import Broker
from tests.e2e.test_consumers_away import are_equal, check, comes_to, resync_of
from tests.harness.commits import last_commit
from tests.harness.hub_process import HubProcess
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agents, at_work, create, database, execute, rows

ROWS = 100_000
LIMITS = {"resync_page_rows": 2_000, "resync_pages": 2}


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas; the database of a has rows, those of b and c are empty."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", LIMITS) as made:
        for name in "abc":
            create(made, name)
        with closing(sqlite3.connect(database(made, "a"))) as client, client:
            values = ((f"{number:06}", f"of a {number}") for number in range(ROWS))
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


def is_under_way(at: Site, hub: HubProcess, name: str) -> None:
    """Wait until some of a copy is sent, and not all of it."""
    hub.waits_for(
        lambda: 0 < (resync_of(at, name).get("synchronized") or 0) < ROWS, f"{name} gets its copy"
    )


def test_a_full_database_joins_and_a_new_one_is_filled(three: Site) -> None:
    """A hundred thousand rows, while others write; hub and agent are killed in mid copy."""
    text = without(three, "c")
    with three.hub() as hub, at_work(three, "a", "--snapshot"), agents(three, "b"):
        hub.waits_for(lambda: len(rows(three, "b")) == ROWS, "b has the rows of a")
        hub.terminate()
        hub.ends_with(0)
    three.file.write_text(text)
    with three.hub() as hub, agents(three, "ab"):
        hub.waits_for(lambda: "c" in agreements(three), "the hub knows c")
        foretold = three.slackwater("init", "c", "--from", "hub")
        assert (foretold["rows"], foretold["short"]) == ({"t": ROWS}, [])
        with at_work(three, "c"):
            is_under_way(three, hub, "c")
        hub.kill()
    with three.hub() as hub, agents(three, "ab"), at_work(three, "c") as killed:
        is_under_way(three, hub, "c")
        killed.kill()
        killed.wait()
        execute(three, "b", "UPDATE t SET v = 'of b' WHERE k < '000100'")
        execute(three, "b", "DELETE FROM t WHERE k >= '099900'")
        with agents(three, "c"):
            comes_to(three, hub, "c", "in_sync")
            are_equal(three, hub, "abc")
        assert len(rows(three, "c")) == ROWS - 100
        hub.terminate()
        hub.ends_with(0)
    check(three)
