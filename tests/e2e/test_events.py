"""Hub epochs as they pass: what a page is told, and what it missed while it was away."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from streaming.facts.live import IMAGE_MAX
from tests.harness.served_hub import Event, ServedHub, serving
from tests.harness.site import Site, site


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> Iterator[Site]:
    """A hub with two replicas."""
    folder: Path = tmp_path_factory.mktemp("events")
    with site(folder, broker.bootstrap_servers, "events.") as made:
        yield made


@pytest.fixture(scope="module")
def hub(at: Site, spark: SparkSession) -> Iterator[ServedHub]:
    """The hub; both replicas are level."""
    with serving(at, spark) as running:
        for one in at.replicas.values():
            one.hello()
        running.brings(*at.replicas.values())
        yield running


def judged(events: Iterator[Event]) -> Event:
    """The next hub epoch in which a change was judged; hellos make some too."""
    return next(one for one in events if one.kind == "epoch" and one.document["counts"]["judged"])


def test_a_conflict_comes_with_both_sides(at: Site, hub: ServedHub) -> None:
    """A page shows loser and winner side by side without asking again."""
    a, b = at.replicas.values()
    with hub.port.events() as events:
        first = a.write("row", "of a")
        hub.takes(a)
        second = b.write("row", "of b")
        hub.takes(b)

        one, other = judged(events), judged(events)

    (conflict,) = other.document["conflicts"]["first"]
    listed = at.slackwater("conflicts", "list")
    assert one.document["counts"]["accepted"] == 1
    assert one.document["conflicts"] == {"count": 0, "first": []}
    assert (conflict["loser_csn"], conflict["winner_csn"]) == (second.csn, first.csn)
    assert (conflict["loser"], conflict["winner"]) == ("b", "a")
    assert conflict["after"] == '{"k":"row","v":"of b"}'
    assert conflict["winner_image"] == '{"k":"row","v":"of a"}'
    assert conflict == listed[-1] | {"omitted": []}
    assert [one.id, other.id] == [one.document["hub_epoch"], other.document["hub_epoch"]]
    assert other.id == (one.id or 0) + 1


def test_an_image_that_is_too_long_is_left_out(at: Site, hub: ServedHub) -> None:
    """A page of many megabytes helps nobody; `slackwater conflicts show` has it."""
    a, b = at.replicas.values()
    hub.brings(a, b)
    with hub.port.events() as events:
        a.write("long", "x" * IMAGE_MAX)
        hub.takes(a)
        b.write("long", "short")
        hub.takes(b)
        judged(events)

        (conflict,) = judged(events).document["conflicts"]["first"]

    assert conflict["omitted"] == ["winner_image"]
    assert conflict["winner_image"] is None
    assert conflict["after"] == '{"k":"long","v":"short"}'


def test_who_comes_back_is_told_what_it_missed(at: Site, hub: ServedHub) -> None:
    """A laptop sleeps, a proxy closes connections: the browser says which event it had last."""
    a, b = at.replicas.values()
    hub.brings(a, b)
    with hub.port.events() as events:
        a.write("before", "a")
        last = judged(events)
    for number in range(2):
        a.write(f"meanwhile {number}", "a")
        hub.takes(a)

    with hub.port.events(last.id) as events:
        missed = [judged(events).id for _ in range(2)]

    assert missed == [(last.id or 0) + 1, (last.id or 0) + 2]


def test_the_state_comes_by_itself(at: Site, hub: ServedHub) -> None:
    """An acknowledgement makes no hub epoch, and still changes who is level."""
    hub.brings(*at.replicas.values())
    status = at.slackwater("status")

    with hub.port.events() as events:
        states = (one.document for one in events if one.kind == "state")
        state = next(one for one in states if all(a["level"] for a in one["agreements"]))

    assert state["hub_epoch"] == status["hub_epoch"]
    assert state["readiness"]["ready"]
    assert state["conflicts"]["by_kind"] == status["conflicts"]["by_kind"]
    levels = {one["name"]: one["level"] for one in state["agreements"]}
    assert levels == {one["name"]: one["level"] for one in status["agreements"]}
    assert all(one["time_to_level_s"] == 0 for one in state["agreements"])
