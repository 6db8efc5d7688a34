"""A replica whose agent is away: nobody waits for it, and a resync brings it back."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness import verdict
from tests.harness.agents_of_kinds import (
    agents,
    at_work,
    captures,
    create,
    execute,
    execute_each,
    execute_uncaptured,
    rows,
)
from tests.harness.sent_items import sent_items
from tests.harness.site import RunningHub, Site, site
from tests.harness.sqlite_agents import kill

LIMITS = {"chunk_items": 120, "resync_page_rows": 150}
AWAY = "change_tracking: silent"
PAUSED = "change_tracking: paused"


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with three replicas, whose databases are there and empty; c is of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", LIMITS) as made:
        for name in "ab":
            create(made, name)
        create(made, "c", server=server)
        yield made


def write(at: Site, name: str, keys: Iterable[int], value: str) -> None:
    """Write rows as any client would, some hundred in a transaction."""
    values = [(f"{key:05}", value) for key in keys]
    statement = "INSERT INTO t VALUES (?, ?) ON CONFLICT (k) DO UPDATE SET v = excluded.v"
    execute_each(at, name, statement, values)


def delete(at: Site, name: str, first: int, end: int) -> None:
    """Delete the rows with these numbers in one statement."""
    execute(at, name, "DELETE FROM t WHERE k >= ? AND k < ?", f"{first:05}", f"{end:05}")


def keys(*numbers: Iterable[int]) -> list[str]:
    """The keys of rows as they are in a topic, in order."""
    return sorted(f'{{"k":"{number:05}"}}' for some in numbers for number in some)


def state(at: Site, name: str) -> str:
    """The state of a replica's agreement as `status` shows it."""
    found = {one["name"]: one for one in at.slackwater("status")["agreements"]}
    return str(found[name]["state"])


def comes_to(at: Site, hub: RunningHub, name: str, wanted: str) -> None:
    """Wait until a replica's agreement is in this state."""
    hub.waits_for(lambda: state(at, name) == wanted, f"{name} is {wanted}")


def are_equal(at: Site, hub: RunningHub, names: str) -> None:
    """Wait until the files are equal and `level` says yes, and hold them against each other."""
    hub.waits_for(lambda: hold_the_same(at, names), f"{names} are equal")
    hub.waits_for(lambda: is_level(at), "all are level")
    assert hold_the_same(at, names)


def hold_the_same(at: Site, names: str) -> bool:
    """Whether the files have the same rows."""
    first, *others = (rows(at, name) for name in names)
    return all(one == first for one in others)


def is_level(at: Site) -> bool:
    """Whether `level` says yes."""
    return bool(at.slackwater("level", "--wait", "20")["level"])


def resync_of(at: Site, name: str) -> dict[str, Any]:
    """What `slackwater resync` shows of a replica; empty: nothing."""
    found: list[dict[str, Any]] = at.slackwater("resync")
    return next((one for one in found if one["agreement"] == name), {})


def check(at: Site) -> None:
    """Hold the tables of a hub that has ended against the files of all replicas."""
    expected = {
        json.loads(key)["k"]: json.loads(image)["v"]
        for (_, key), image in verdict.rows_of_changelog(at).items()
    }
    for name in at.replicas:
        assert rows(at, name) == expected, f"{name} and the changelog hold different rows"
    verdict.check_order(at)
    verdict.check_commits(at)
    verdict.check_materialized(at)


def test_who_was_away_gets_each_row_once(
    three: Site, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many rows that were written several times, while the others see each other's."""
    monkeypatch.setenv("SLACKWATER_HUB__ACK_TIMEOUT_S", "3")
    with three.running(spark) as hub, agents(three, "ab"), at_work(three, "c") as gone:
        hub.waits_for(lambda: captures(three, "c"), "c is captured")
        write(three, "a", range(800), "first")
        are_equal(three, hub, "abc")
        kill(gone)
        write(three, "a", range(250), "second")
        comes_to(three, hub, "c", AWAY)
        offset = three.ends.end(three.replicas["c"].updates)

        for round_ in range(3):
            write(three, "a", range(125, 500), f"a {round_}")
        write(three, "b", range(800, 1_050), "new")
        delete(three, "b", 700, 850)
        hub.waits_for(lambda: rows(three, "a") == rows(three, "b"), "a and b are equal")
        assert three.ends.end(three.replicas["c"].updates) == offset
        found, level = resync_of(three, "c"), three.slackwater("level")
        assert (found["away"], found["tracked"]) == ("silent", 500 + 350)
        assert not level["level"]
        write(three, "c", range(9_000, 9_010), "of c")

        with agents(three, "c"):
            write(three, "b", range(5_000, 5_100), "meanwhile")
            hub.waits_for(lambda: "05099" in rows(three, "a"), "a gets what b writes")
            are_equal(three, hub, "abc")
            assert resync_of(three, "c") == {}
    sent = sent_items(three, "c", offset)
    written = range(500), range(700, 800), range(800, 1_050)
    assert sorted({*sent.paged} - {*keys(range(5_000, 5_100))}) == keys(*written)
    assert len(sent.paged) == len(set(sent.paged))
    assert not {*sent.paged} & {*sent.live}
    check(three)


STRANGERS = (
    "DELETE FROM t WHERE k < '00100'",
    "UPDATE t SET v = 'by hand' WHERE k >= '00500' AND k < '00600'",
    "INSERT INTO t VALUES ('00250x', 'by hand'), ('99999', 'by hand')",
)
"""What somebody does to the rows behind the back of an agent that does not run."""


@pytest.mark.slow
def test_a_full_copy_makes_a_paused_replica_equal_while_the_others_are_level(
    three: Site, spark: SparkSession
) -> None:
    """Rows that were changed by hand are in no changelog: only all rows show them."""
    with three.running(spark) as hub, agents(three, "ab"):
        with agents(three, "c"):
            write(three, "a", range(1_200), "first")
            are_equal(three, hub, "abc")
        three.slackwater("pause", "c")
        comes_to(three, hub, "c", PAUSED)
        offset = three.ends.end(three.replicas["c"].updates)
        execute_uncaptured(three, "c", *STRANGERS)

        with agents(three, "c"):
            write(three, "c", range(2_000, 2_010), "of c, paused")
            write(three, "a", range(300), "second")
            hub.waits_for(lambda: "02009" in rows(three, "b"), "what c writes reaches b")
            hub.waits_for(lambda: lagging(three) == {"c"}, "a and b are level")
            assert rows(three, "a") == rows(three, "b") != rows(three, "c")
            assert three.ends.end(three.replicas["c"].updates) == offset
            assert state(three, "c") == PAUSED

            ordered = three.slackwater("resync", "c", "--full")
            write(three, "b", range(3_000, 3_100), "meanwhile")
            are_equal(three, hub, "abc")
    assert ordered["whole"] == ["t"]
    sent = sent_items(three, "c", offset)
    assert [one.after for one in sent.ranges] == [None, *(one.to for one in sent.ranges[:-1])]
    assert sent.ranges[-1].to is None
    assert len(sent.paged) == len(set(sent.paged)) == sum(one.count for one in sent.ranges)
    assert rows(three, "c").keys() & {"00250x", "99999"} == set()
    check(three)


def lagging(at: Site) -> set[str]:
    """The agreements that are not level."""
    found = at.slackwater("level", "--wait", "1")["agreements"]
    return {one["name"] for one in found if not one["level"]}


@pytest.mark.slow
def test_an_agent_that_is_killed_in_its_resync_goes_on_with_the_next_page(
    three: Site, spark: SparkSession
) -> None:
    """What it has applied it is not sent again, however often it dies."""
    with three.running(spark) as hub, agents(three, "ab"):
        with agents(three, "c"):
            write(three, "a", range(1), "first")
            are_equal(three, hub, "abc")
        three.slackwater("pause", "c")
        comes_to(three, hub, "c", PAUSED)
        write(three, "a", range(20_000), "second")
        hub.waits_for(lambda: rows(three, "a") == rows(three, "b"), "a and b are equal")
        offset = three.ends.end(three.replicas["c"].updates)

        three.slackwater("resync", "c")
        deaths = list[tuple[int, list[str]]]()
        while len(rows(three, "c")) < 12_000:
            wanted = len(rows(three, "c")) + 2_000
            with at_work(three, "c"):
                hub.waits_for(lambda: len(rows(three, "c")) >= wanted, "c gets pages")  # noqa: B023
            held = [
                f'{{"k":"{key}"}}' for key, value in rows(three, "c").items() if value != "first"
            ]
            deaths.append((three.ends.end(three.replicas["c"].updates), held))
        with agents(three, "c"):
            are_equal(three, hub, "abc")
    assert len(deaths) > 2
    assert {*sent_items(three, "c", offset).paged} == {*keys(range(20_000))}
    for end, held in deaths:
        again = {*held} & {*sent_items(three, "c", end).paged}
        assert not again, f"{len(again)} of {len(held)} rows that it had applied are sent again"
    check(three)
