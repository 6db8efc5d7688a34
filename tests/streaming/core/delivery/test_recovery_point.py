"""Up to when everything that a replica wrote is at another, and how late it came, by day."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.delivery.day_delay import DAY_MS, MINUTE_MS, DayDelay
from streaming.core.delivery.recovery_point import (
    MARKS_MAX,
    AckedPosition,
    CommittedPoints,
    Delays,
    complete_times,
    first_open_ms,
)
from streaming.core.model.row import Arrived
from streaming.core.model.statuses import Stop, StopReason
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.replica_state import AgentEnd, ReplicaState
from tests.harness.builders import change, csn
from tests.harness.examples import examples

ORIGIN, CONSUMER = 1, 2
START_MS = 20_000 * DAY_MS
HEARD = ReplicaState(ORIGIN, seen_ms=500)


@dataclass
class World:
    """An origin that writes, a hub that judges at once, and a consumer that acknowledges late.

    `writes`: (time, hub epoch). `acked`: hub epoch -> when the hub read that it is acknowledged.
    """

    clock_ms: int = START_MS
    hub_epoch: int = 0
    acked: int = 0
    is_whole: bool = True
    heard_ms: int = START_MS
    writes: list[tuple[int, int]] = field(default_factory=list)
    came: dict[int, int] = field(default_factory=dict)
    delays: Delays = field(default_factory=Delays)

    def __post_init__(self) -> None:
        """Nothing is written, and the consumer has that."""
        self.delays = self.delays.after(self.points({}))

    def batch(self, gap_ms: int, ages_ms: Sequence[int] = (), behind: int | None = 0) -> DayDelay:
        """A batch so much later, of writes that are so old; then so many epochs are not acked.

        None: it acknowledges nothing.
        """
        self.clock_ms += gap_ms
        times = sorted(max(self.heard_ms + 1, self.clock_ms - age) for age in ages_ms)
        times = [ms for ms in times if ms <= self.clock_ms]
        self.hub_epoch += bool(times)
        self.writes += [(ms, self.hub_epoch) for ms in times]
        self.heard_ms = max([self.heard_ms, *times]) if times else self.clock_ms
        if behind is not None:
            acked = max(self.acked, self.hub_epoch - bool(times) - behind)
            self.came |= dict.fromkeys(range(self.acked + 1, acked + 1), self.clock_ms)
            self.acked = acked
        first = {ORIGIN: times[0]} if times else {}
        self.delays = self.delays.after(self.points(first))
        return self.delay

    def points(self, first_ms: dict[int, int]) -> CommittedPoints:
        """What the hub knows now."""
        lacks = {ORIGIN for _, epoch in self.writes if epoch > self.acked}
        return CommittedPoints(
            self.clock_ms,
            self.hub_epoch,
            {ORIGIN: self.heard_ms},
            frozenset({ORIGIN, CONSUMER}),
            {CONSUMER: AckedPosition(self.acked, frozenset(lacks), self.is_whole)},
            first_ms,
        )

    @property
    def delay(self) -> DayDelay:
        """The delay of the only pair there is."""
        return self.delays.pairs[ORIGIN, CONSUMER]


BATCHES = st.lists(
    st.tuples(
        st.integers(1, 200_000),
        st.lists(st.integers(0, 100_000), max_size=3),
        st.none() | st.integers(0, 3),
    ),
    max_size=40,
)


@given(BATCHES)
@examples()
def test_everything_up_to_the_point_is_there(
    batches: list[tuple[int, list[int], int | None]],
) -> None:
    """Somebody who lost the origin takes the consumer for complete up to then."""
    world = World()
    points = [world.delay.complete_to_ms]

    for gap_ms, ages_ms, behind in batches:
        points.append(world.batch(gap_ms, ages_ms, behind).complete_to_ms)
        assert all(e <= world.acked for ms, e in world.writes if ms <= points[-1])
        lacking = [ms for ms, epoch in world.writes if epoch > world.acked]
        assert points[-1] == (min(lacking) - 1 if lacking else world.heard_ms)
    assert points == sorted(points)


@given(BATCHES)
@examples()
def test_no_change_came_later_than_the_worst_of_its_day(
    batches: list[tuple[int, list[int], int | None]],
) -> None:
    """The number is given to those who were promised one."""
    world = World(clock_ms=START_MS, heard_ms=START_MS)

    for one in batches:
        world.batch(*one)
        today = [world.came[epoch] - ms for ms, epoch in world.writes if epoch in world.came]
        assert max(today, default=0) <= world.delay.worst_ms
        assert (world.delay.worst_ms > MINUTE_MS) == (world.delay.above_minute_ms > 0)
        assert world.delay.above_minute_ms <= world.clock_ms - START_MS


def test_a_consumer_that_is_away_is_measured_from_the_first_change_that_it_lacks() -> None:
    """What was written before that is there, and the origin was quiet for an hour."""
    world = World()
    world.batch(3_600_000)

    world.batch(2_000, [1_000], behind=None)
    away = world.batch(300_000, behind=None)
    back = world.batch(1_000)

    wrote_ms = START_MS + 3_601_000
    assert (away.complete_to_ms, away.last_ms) == (wrote_ms - 1, 301_001)
    assert away.is_lacking
    assert away.is_known
    assert (back.complete_to_ms, back.last_ms) == (world.clock_ms, 0)
    assert (back.worst_ms, back.above_minute_ms) == (302_001, 242_001)


def test_a_day_that_is_over_keeps_its_own_worst() -> None:
    """A consumer that was away over midnight was late on both days, on each as long as it was."""
    world = World()
    world.batch(DAY_MS - 600_000)
    world.batch(1_000, [1_000], behind=None)

    today = world.batch(900_000, behind=None)

    (over,) = world.delays.to_write(world.clock_ms)[:-1]
    assert (over.day, over.at_ms) == (20_000, START_MS + DAY_MS)
    assert (over.last_ms, over.worst_ms, over.above_minute_ms) == (600_000, 600_000, 540_000)
    assert (today.day, today.worst_ms, today.above_minute_ms) == (20_001, 901_000, 301_000)


def test_delays_are_written_once_a_minute_and_at_the_end_of_a_day() -> None:
    """A write with each batch would cost more than the number is worth."""
    world = World()
    assert len(world.delays.to_write(world.clock_ms)) == 1
    world.delays = world.delays.written(world.clock_ms)

    world.batch(MINUTE_MS - 1)
    assert world.delays.to_write(world.clock_ms) == ()
    world.batch(1)
    assert len(world.delays.to_write(world.clock_ms)) == 1
    world.batch(DAY_MS - MINUTE_MS - 1)
    world.delays = world.delays.written(world.clock_ms)
    world.batch(1)
    assert [one.day for one in world.delays.to_write(world.clock_ms)] == [20_000, 20_001]
    assert world.delays.written(world.clock_ms).to_write(world.clock_ms) == ()


def test_a_consumer_that_was_set_back_is_not_complete_up_to_what_it_had() -> None:
    """Its database was restored: what it lacks again came before the point that was known."""
    world = World()
    for _ in range(3):
        world.batch(1_000, [0])
    before = world.batch(1_000)

    world.acked = 1
    back = world.batch(1_000, behind=None)
    world.delays = replace(world.delays, marks=world.delays.marks[-1:])
    unknown = world.batch(1_000, behind=None)
    again = world.batch(1_000)

    assert back.complete_to_ms < before.complete_to_ms
    assert back.complete_to_ms == world.writes[1][0] - 1
    assert unknown.complete_to_ms == back.complete_to_ms
    assert again.complete_to_ms == world.clock_ms


def test_while_rows_are_copied_anew_nothing_is_known_and_the_delay_goes_on() -> None:
    """Its position says nothing of a table that it gets back."""
    world = World()
    world.batch(1_000)
    before = world.batch(1_000)

    world.is_whole = False
    copied = world.batch(120_000)
    world.is_whole = True
    after = world.batch(1_000)

    assert (copied.is_known, copied.is_lacking) == (False, True)
    assert copied.complete_to_ms == before.complete_to_ms
    assert copied.last_ms == 120_000
    assert (after.is_known, after.complete_to_ms) == (True, world.clock_ms)
    assert after.worst_ms == 121_000


def test_a_hub_that_starts_goes_on_from_what_was_written() -> None:
    """What the consumer lacked when the hub ended, it lacks since then."""
    world = World()
    world.batch(1_000, [0], behind=None)
    known = world.delay.complete_to_ms

    world.delays = Delays(world.delays.pairs).starting(world.points({}))
    lacking = world.batch(50_000, [0], behind=None)
    level = world.batch(1_000)

    assert (lacking.complete_to_ms, lacking.is_known) == (known, True)
    assert level.complete_to_ms == world.clock_ms
    assert level.worst_ms == world.clock_ms - known


@given(st.integers(1, 4 * MARKS_MAX), st.integers(0, 4 * MARKS_MAX))
@examples()
def test_an_absence_of_many_hub_epochs_takes_little_memory(count: int, acked: int) -> None:
    """The point may be said too early then, and never too late."""
    world = World()
    for _ in range(count):
        world.batch(1_000, [500], behind=None)

    world.acked = min(acked, count)
    found = world.batch(1_000, behind=None)

    assert len(world.delays.marks) <= MARKS_MAX
    assert all(e <= world.acked for ms, e in world.writes if ms <= found.complete_to_ms)


def test_who_is_gone_is_not_measured() -> None:
    """A retired replica would be later every day."""
    world = World()
    world.batch(1_000)

    retired = replace(world.points({}), origins=frozenset({CONSUMER}))

    assert world.delays.after(retired).pairs == {}
    assert world.delays.after(replace(world.points({}), consumers={})).pairs == {}


def test_of_an_origin_that_has_more_to_publish_nothing_new_is_known() -> None:
    """Its journal holds what was written before the records that came."""
    rest = replace(HEARD, unpublished=3)
    ended = replace(HEARD, ended=AgentEnd(500, 1))
    stopped = HEARD.stopped(Stop(StopReason.INPUT_LOST), 7)

    assert complete_times({1: HEARD}, {}, 1_000) == {1: 500}
    assert complete_times({1: HEARD}, {}, 400) == {1: 400}
    assert complete_times({1: HEARD}, {1: 300}, 1_000) == {1: 299}
    for behind in (rest, ended, stopped, ReplicaState(ORIGIN)):
        assert complete_times({1: behind}, {}, 1_000) == {}
    assert complete_times({1: HEARD}, {1: None}, 1_000) == {}


def test_a_change_that_is_not_judged_holds_the_point_back() -> None:
    """What is on disk may have come before what is in memory."""
    opened = OpenTransactions()
    for rid, number, came_ms in ((1, 1, 700), (1, 2, 600), (2, 3, 800)):
        one = csn(number, rid)
        opened.lists.insert(one, ("default", rid), (one, rid))
        opened.changes[one] = Arrived(change(number, rid=rid), "", "", 0, came_ms, 0, 0)
    absent = csn(4, 2)

    assert first_open_ms(opened) == {1: 600, 2: 800}
    opened.lists.insert(absent, ("default", 2), (absent, 2))
    assert first_open_ms(opened) == {1: 600, 2: None}
