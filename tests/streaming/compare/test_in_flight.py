"""A row that is in flight is looked at again, and is left out only once it is equal."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

import pytest

from streaming.compare.report import ReplicaComparison, known_rows
from streaming.compare.run import Pace, Waiting, compared_tables
from streaming.core.compare.digest import row_hash
from streaming.core.compare.row_text import Image, row_text
from streaming.core.compare.side import RowsInMemory
from streaming.core.model.table import ColumnType, Table
from streaming.facts.consumers.divergent import DivergenceKind, DivergentRow

T = Table("t", ("k",), {"k": ColumnType.INT64, "v": ColumnType.TEXT})


def key(number: int) -> str:
    """The key of a row."""
    return f'{{"k":"{number}"}}'


@dataclass(slots=True)
class LiveSide:
    """Rows that may be written while they are compared."""

    rows: dict[str, Image] = field(default_factory=dict)

    def write(self, number: int, value: str) -> None:
        """Write a row."""
        self.rows[key(number)] = {"k": str(number), "v": value}

    def open(self, table: Table) -> RowsInMemory:
        """The rows as they are now, and later as they are then."""
        hashes = {of: row_hash(row_text(table)(image)) for of, image in self.rows.items()}
        return RowsInMemory(table, hashes.items(), self._read)

    def _read(self, keys: Collection[str]) -> dict[str, Image]:
        return {of: self.rows[of] for of in keys if of in self.rows}


@dataclass(slots=True)
class FakeClock:
    """A clock that only sleeping moves; `then`: what happens at a second."""

    then: Mapping[float, Callable[[], None]]
    now_s: float = 0.0

    def sleep(self, seconds: float) -> None:
        """Move it, and let happen what happens meanwhile."""
        before, self.now_s = self.now_s, self.now_s + seconds
        for at_s, happens in self.then.items():
            if before < at_s <= self.now_s:
                happens()


def test_what_became_equal_is_left_out() -> None:
    """A row that is written meanwhile is looked at for as long again, and then is reported."""
    one, other = LiveSide(), LiveSide()
    for number in range(3):
        one.write(number, "new")
        other.write(number, "old")
    clock = FakeClock({3: lambda: other.write(0, "new"), 5: lambda: one.write(1, "newer")})

    waiting = Waiting(10, clock.sleep, lambda: clock.now_s)
    (found,) = compared_tables([T], one.open, other.open, waiting)

    assert [row.key for row in found.differing] == [key(1), key(2)]
    assert found.differing[0].first == {"k": "1", "v": "newer"}
    assert (found.in_flight, found.written, found.rows) == (1, 0, (3, 3))
    assert clock.now_s == 18.125  # the write at 5 s was seen by the look at 8.125 s


@pytest.mark.parametrize("is_first", [True, False])
def test_a_row_that_is_written_at_every_look_is_no_row_that_differs(*, is_first: bool) -> None:
    """A look finds it between two of its writes, however short the way is; a lost one stands."""
    one, other = LiveSide(), LiveSide()
    for number in range(2):
        one.write(number, "new")
        other.write(number, "old")
    writer = one if is_first else other
    writes = {float(at_s): partial(writer.write, 0, f"{at_s}") for at_s in range(1, 100)}
    clock = FakeClock(writes)

    waiting = Waiting(10, clock.sleep, lambda: clock.now_s)
    (found,) = compared_tables([T], one.open, other.open, waiting)
    report = ReplicaComparison("a", "b", (found,), {})

    assert [row.key for row in found.differing] == [key(1)]
    assert (found.in_flight, found.written, clock.now_s) == (0, 1, 30)
    assert report.conclusion() == "a and b differ in 1 row of 2; 1 row was written meanwhile"


def test_sides_that_differ_in_written_rows_only_are_not_said_to_differ() -> None:
    """The answer says that it leaves them out."""
    one, other = LiveSide(), LiveSide()
    one.write(1, "new")
    clock = FakeClock({float(at_s): partial(one.write, 1, f"{at_s}") for at_s in range(1, 100)})

    waiting = Waiting(10, clock.sleep, lambda: clock.now_s, lambda: 3600.0)
    (found,) = compared_tables([T], one.open, other.open, waiting)
    report = ReplicaComparison("a", "b", (found,), {})

    assert (report.is_equal, found.behind_s) == (True, None)
    assert report.conclusion() == (
        "a and b are otherwise equal: 1 row compared; 1 row was written meanwhile"
    )


@pytest.mark.parametrize(
    ("lag_s", "waited_s", "behind_s"), [(1, 10, None), (40, 80, None), (400, 600, None)]
)
def test_rows_may_be_in_flight_for_twice_the_lag(
    lag_s: float, waited_s: float, behind_s: float | None
) -> None:
    """At least ten seconds, for a lag is known a little late, and ten minutes at most."""
    one, clock = LiveSide(), FakeClock({})
    one.write(1, "mine")

    waiting = Waiting(None, clock.sleep, lambda: clock.now_s, lambda: lag_s)
    (found,) = compared_tables([T], one.open, LiveSide().open, waiting)

    assert (clock.now_s, found.behind_s) == (waited_s, behind_s)


@pytest.mark.parametrize(
    ("settle_s", "lag_s", "silent_s"), [(5, 30.0, 0.0), (None, 3600.0, 0.0), (None, 0.0, 3600.0)]
)
def test_who_is_further_behind_than_was_waited_for_is_named(
    settle_s: float | None, lag_s: float, silent_s: float
) -> None:
    """Otherwise a row in flight would be taken for a lost one, also while Kafka is away."""
    one, clock = LiveSide(), FakeClock({})
    one.write(1, "mine")

    waiting = Waiting(settle_s, clock.sleep, lambda: clock.now_s, lambda: lag_s, lambda: silent_s)
    found = compared_tables([T], one.open, LiveSide().open, waiting)
    report = ReplicaComparison("hub", "b", tuple(found), {})

    assert report.document()["behind_s"] == max(lag_s, silent_s)
    for text in (report.conclusion(), report.page()):
        assert "longer than was waited for, so what differs may be in flight" in text


def test_equal_sides_say_nothing_of_a_lag() -> None:
    """Nothing was waited for, and nothing can be mistaken."""
    one, clock = LiveSide(), FakeClock({2: lambda: other.write(1, "mine")})
    other = LiveSide()
    one.write(1, "mine")

    waiting = Waiting(10, clock.sleep, lambda: clock.now_s, lambda: 3600.0)
    (found,) = compared_tables([T], one.open, other.open, waiting)

    assert (found.differing, found.in_flight, found.behind_s) == ((), 1, None)


def test_nobody_waits_for_what_is_equal() -> None:
    """A comparison of equal sides takes no longer than reading them."""
    one, clock = LiveSide(), FakeClock({})
    one.write(1, "same")

    found = compared_tables([T], one.open, one.open, Waiting(10, clock.sleep, lambda: clock.now_s))

    assert (found[0].differing, clock.now_s) == ((), 0)


def test_no_more_rows_are_looked_for_than_can_be_read() -> None:
    """Two databases that have nothing to do with each other would fill the memory."""
    one, clock = LiveSide(), FakeClock({})
    for number in range(9):
        one.write(number, "mine")

    waiting = Waiting(0, clock.sleep, lambda: clock.now_s)
    (found,) = compared_tables([T], one.open, LiveSide().open, waiting, most=4)
    report = ReplicaComparison("a", "b", (found,), {})

    assert (len(found.differing), found.is_cut) == (4, True)
    assert report.conclusion() == "a and b differ in at least 4 rows of 9"


def test_a_row_that_is_listed_as_differing_says_why() -> None:
    """Who repaired it would overwrite what `conflicts` or `quarantine` still has to settle."""
    one, clock = LiveSide(), FakeClock({})
    one.write(1, "mine")
    listed = DivergentRow(
        "b", DivergenceKind.REFUSED, "t", key(1), "r2-17", "unique", "unique: twice"
    )
    elsewhere = DivergentRow("c", DivergenceKind.UNCARRIED, "t", key(1), "3-1", "size", "size")

    waiting = Waiting(0, clock.sleep, lambda: clock.now_s)
    found = compared_tables([T], one.open, LiveSide().open, waiting)
    known = known_rows([listed, elsewhere], ["a", "b"])
    report = ReplicaComparison("a", "b", tuple(found), known)

    assert report.document()["rows"][0]["known"] == "refused at b: r2-17"
    assert report.conclusion() == "a and b differ in 1 row of 1, 1 of them known"


def test_a_round_takes_its_time() -> None:
    """A range of so many rows takes as long as the rate says, so users find their database free."""
    one, clock = LiveSide(), FakeClock({})
    for number in range(30):
        one.write(number, "same")

    waiting = Waiting(0, clock.sleep, lambda: clock.now_s)
    pace = Pace(10, clock.sleep, lambda: clock.now_s)
    (found,) = compared_tables([T], one.open, one.open, waiting, parts=pace.parts)

    assert (found.rows, found.differing, clock.now_s) == ((30, 30), (), 3)
