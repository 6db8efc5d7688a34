"""A hub at rest: heartbeats that say nothing new leave nothing in the tables, and lose nothing."""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.last_poll import LastPoll, write_poll
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from connectors.kafka.embedded.broker import Broker
from streaming.core.records.record import RecordKind
from streaming.facts.consumers.level import HubLevel, hub_level
from streaming.facts.status.hub import hub_status
from streaming.hub.batch.pipeline import hold, process
from streaming.hub.batch.rest import HELD_MS
from streaming.hub.service import Service
from tests.harness import verdict
from tests.harness.site import Site, site
from tests.model.hub import HubKilledError

NAMES = "abc"
KILLED_AT = (
    *(None, FaultPoint.AFTER_PLAN, FaultPoint.AFTER_EVENTS, FaultPoint.BEFORE_COMMIT),
    FaultPoint.AFTER_COMMIT,
)
"""Points of a batch that differ in what its successor finds of it."""
STEP_MS = 100
ANY_AGE_S = 1e9
CLOCK_S = 1_700_000_000
SAME = {
    TableName.CHANGELOG: ("hub_epoch", "place", "kind", "csn", "to", "verdict", "mre", "after"),
    TableName.CONFLICTS: ("hub_epoch", "place", "kind", "loser_csn", "winner_csn"),
    TableName.EVENTS: ("rid", "offset", "kind", "outcome"),
    TableName.QUARANTINE: ("rid", "offset", "reason", "action"),
}
"""What does not depend on how the records were shared out among batches."""


@dataclass(slots=True)
class Driven:
    """A hub whose batches and clock a test moves; `kill`: where it dies next."""

    at: Site
    spark: SparkSession
    holds: bool = True
    kill: FaultPoint | None = None
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    service: Service | None = None

    def starts(self) -> Service:
        """The service; after a death a new one, which finishes the batch of the one before."""
        if self.service is None:
            self.service = Service(self.at.config(), self.spark, self._reach)
        return self.service

    def _reach(self, point: FaultPoint) -> None:
        if point is self.kill:
            self.kill = None
            raise HubKilledError

    def take(self) -> bool:
        """Take what the topics hold, if that is due; whether a batch was made."""
        service = self.starts()
        hub = service.hub
        ends = {one.changes: one.ends.end(one.changes) for one in self.at.replicas.values()}
        self.now_ms += STEP_MS
        plan = hub.next_plan(ends, self.now_ms, ())
        if not hub.is_due(plan) or (self.holds and hold(hub, plan, service.planned)):
            return False
        try:
            process(hub, plan, service.planned)
        except HubKilledError:
            self.service = None
        return True

    def settle(self) -> None:
        """Go on until every replica has acknowledged all that there is."""
        is_new = True
        while is_new:
            for one in self.at.replicas.values():
                one.catch_up()
            is_new = self.take()

    def beat(self) -> None:
        """Let all replicas say that they are alive, one after the other."""
        for one in self.at.replicas.values():
            one.heartbeat()
            self.take()

    def versions(self) -> list[int]:
        """The versions of all tables: a commit raises one."""
        store = self.starts().store
        return [store.refreshed(name).version() for name in TableName]

    def poll(self) -> None:
        """Write what the thread of the hub's polls would write."""
        hub, ends = self.starts().hub, self.ends()
        at_ms = time.time_ns() // 1_000_000
        found = LastPoll(self.starts().name, at_ms, ends, at_rest=hub.held.at_rest)
        write_poll(self.at.state, found)

    def ends(self) -> dict[str, int]:
        """Where the topics end."""
        return {one.changes: one.ends.end(one.changes) for one in self.at.replicas.values()}

    def committed(self) -> dict[str, int]:
        """Where the last commit goes on in the topics."""
        return dict(verdict.last_commit(self.at)["offsets"])

    def heartbeats(self) -> int:
        """How many stand in `events`."""
        events = verdict.rows_of(self.at.state, TableName.EVENTS)
        return sum(row["kind"] == RecordKind.HEARTBEAT for row in events)

    def level(self) -> HubLevel:
        """What `slackwater level` answers."""
        reader = open_state(self.at.state)
        return hub_level(self.at.config(), reader, self.ends, time.time(), ANY_AGE_S)


Make = Callable[[str], Driven]


@pytest.fixture(scope="module")
def make(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker, spark: SparkSession
) -> Iterator[Make]:
    """Makes a hub of this name with three replicas."""
    prefix = f"t{uuid.uuid4().hex[:12]}."
    with ExitStack() as made:

        def one(name: str) -> Driven:
            folder = tmp_path_factory.mktemp(name)
            at = site(folder, broker.bootstrap_servers, f"{prefix}{name}.", NAMES)
            hub = Driven(made.enter_context(at), spark)
            for replica in hub.at.replicas.values():
                replica.clock_s = CLOCK_S
                replica.hello()
            hub.settle()
            return hub

        yield one


@pytest.fixture(scope="module")
def made(make: Make) -> Driven:
    """One hub for all claims but the last: to make one takes longer than any of them."""
    return make("one")


@pytest.fixture
def hub(made: Driven) -> Driven:
    """A hub that holds nothing and has nothing to do."""
    made.now_ms += HELD_MS
    made.settle()
    return made


def test_heartbeats_that_say_nothing_new_are_read_and_not_committed(hub: Driven) -> None:
    """A hub at rest would make thousands of commits a day, and none of them changes a decision.

    Who looks sees that they were read, and when each replica was heard.
    """
    before, seen = hub.versions(), _seen(hub)
    hub.beat()
    hub.beat()

    assert hub.versions() == before
    unpolled = hub.level()
    hub.poll()
    polled = hub.level()
    assert unpolled.unread == dict.fromkeys(NAMES, 2)
    assert (polled.level, polled.unread) == (True, {})
    assert all(_seen(hub)[name] > at for name, at in seen.items())


def _seen(hub: Driven) -> dict[str | None, Any]:
    found = hub_status(hub.at.config(), open_state(hub.at.state), time.time())
    return {one.name: one.seen_at for one in found.replicas}


def test_what_was_read_behind_an_older_commit_proves_nothing(hub: Driven) -> None:
    """A change may be among it that was committed since and is not acknowledged."""
    hub.beat()
    hub.poll()
    hub.at.replicas["a"].write("k", "v")
    hub.take()
    hub.at.replicas["b"].heartbeat()

    found = hub.level()

    assert found.unread == {"b": 1}
    assert not found.level


def test_the_next_batch_takes_what_was_held(hub: Driven) -> None:
    """Each heartbeat stands in `events` once, and the position is behind it."""
    before = hub.heartbeats()
    hub.beat()
    hub.at.replicas["b"].write("k", "v")
    hub.take()

    assert hub.committed() == hub.ends()
    assert hub.heartbeats() == before + len(NAMES)
    verdict.check_commits(hub.at)


def test_heartbeats_are_held_for_a_while_only(hub: Driven) -> None:
    """A position that stood still for hours would be where the topic deletes its records."""
    hub.beat()
    assert hub.committed() != hub.ends()
    hub.now_ms += HELD_MS

    assert hub.take()
    assert hub.committed() == hub.ends()


def _epoch_moves(hub: Driven) -> None:
    hub.at.replicas["a"].epoch += 1
    hub.at.replicas["a"].heartbeat()


def _is_of_another_session(hub: Driven) -> None:
    one = hub.at.replicas["a"]
    position, one.position = one.position, one.position.in_session("another")
    one.heartbeat()
    one.position = position


def _two_at_once(hub: Driven) -> None:
    hub.at.replicas["a"].heartbeat()
    hub.at.replicas["a"].heartbeat()


def _a_change_beside_it(hub: Driven) -> None:
    hub.at.replicas["a"].heartbeat()
    hub.at.replicas["b"].write("k", "w")


@pytest.mark.parametrize(
    "says", [_epoch_moves, _is_of_another_session, _two_at_once, _a_change_beside_it]
)
def test_what_says_more_is_committed_at_once(hub: Driven, says: Callable[[Driven], None]) -> None:
    """Only what surely changes nothing may wait."""
    says(hub)

    assert hub.take()
    assert hub.committed() == hub.ends()


@pytest.mark.more
def test_a_hub_that_holds_leaves_the_same_as_one_that_commits_everything(make: Make) -> None:
    """It dies within the batch that takes them, and its successor reads them again."""
    held, plain = make("held"), make("plain")
    plain.holds = False
    for number, point in enumerate(KILLED_AT):
        for hub in (held, plain):
            _play(hub, number, point if hub.holds else None)
    for hub in (held, plain):
        hub.now_ms += HELD_MS
        hub.take()

    for name, columns in SAME.items():
        assert _of(held, name, columns) == _of(plain, name, columns), name
    for replica in held.at.replicas.values():
        verdict.check_level(replica, held.at)
        assert replica.rows == plain.at.replicas[replica.name].rows
    assert [*held.ends().values()] == [*plain.ends().values()]
    verdict.check_commits(held.at)
    assert held.starts().hub.state.batch < plain.starts().hub.state.batch


def _play(hub: Driven, number: int, point: FaultPoint | None) -> None:
    """Rest, then write in conflict, and die at this point; rest once more, and be level."""
    a, b, c = hub.at.replicas.values()
    hub.beat()
    a.write("contended", f"a{number}")
    b.write("contended", f"b{number}")
    for n in range(3):
        c.write(f"c{n}", f"{number}", inside="open")
    c.commit("open")
    hub.kill = point
    hub.take()
    assert hub.kill is None
    hub.take()
    hub.settle()
    hub.beat()


def _of(hub: Driven, name: TableName, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    rows = verdict.rows_of(hub.at.state, name)
    return sorted(tuple(str(row[one]) for one in columns) for row in rows)
