"""A comparison: each table narrowed down to its rows, and those looked at again after the lag."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

from streaming.core.compare.difference import DifferenceKind, DifferingRow, differing_rows
from streaming.core.compare.narrow import DigestPair, differing_keys, digested, stepwise
from streaming.core.compare.side import ComparedTable, Images, OpenTable
from streaming.core.model.table import Table
from streaming.core.tracking.ranges import KeyRange, listed_order

PAUSE_S = 1.0
"""The first pause before rows are looked at again."""

LENGTHENED = 1.5
"""By so much each further pause is longer."""

PAUSE_MAX_S = 5.0

WRITTEN = 3
"""A row that is written meanwhile may be in flight so many times as long."""

AT_ONCE = 500
"""So many rows that differ are read at a time."""

SETTLE_S, SETTLE_MAX_S = 10.0, 600.0
"""Rows may be in flight for so long at least, and at most, however far a consumer is behind."""

MOST = 10_000
"""How many differing rows of a table are looked for at most."""


@dataclass(frozen=True, slots=True)
class TableComparison:
    """A table as it was compared.

    `rows`: how many each side had; `in_flight`: how many rows differed first and then became equal;
    `written`: how many were written too late to say whether they differ; `is_cut`: more rows differ
    than were looked for. `behind_s`: the hub or a consumer is so far behind, which is more than was
    waited for, so rows that differ may still be in flight.
    """

    table: Table
    rows: tuple[int, int]
    differing: tuple[DifferingRow, ...] = ()
    in_flight: int = 0
    written: int = 0
    is_cut: bool = False
    behind_s: float | None = None

    @property
    def is_equal(self) -> bool:
        """Return whether no row differs, and none was written too late to say."""
        return not (self.differing or self.is_cut or self.written)


def _no_lag() -> float:
    return 0.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long rows may be in flight; `sleep` and `now` are those of module time.

    `settle_s` None: twice the lag, within bounds. `lag_s`: how far a consumer is behind now.
    `silent_s`: for how long the hub has read nothing, which is not waited for.
    """

    settle_s: float | None
    sleep: Callable[[float], object]
    now: Callable[[], float]
    lag_s: Callable[[], float] = _no_lag
    silent_s: Callable[[], float] = _no_lag

    def wanted_s(self) -> float:
        """How long to wait, by the lag as it is now."""
        if self.settle_s is not None:
            return self.settle_s
        return min(max(SETTLE_S, 2 * self.lag_s()), SETTLE_MAX_S)


@dataclass(frozen=True, slots=True)
class _Looked:
    """A table that is being compared, with what reads its rows again at both sides.

    `ignored`: see `differing_rows`. `written_s`: key -> when a row that differs was found with
    another image than before.
    """

    found: TableComparison
    images: tuple[Images, Images]
    ignored: DifferenceKind | None = None
    written_s: Mapping[str, float] = field(default_factory=dict)

    def again(self, now_s: float) -> "_Looked":
        """The table with those of its rows that still differ."""
        before = {row.key: row for row in self.found.differing}
        now = differing_rows(self.found.table, *self.images, [*before], self.ignored)
        written_s = {
            row.key: at_s
            for row in now
            if (at_s := now_s if row != before[row.key] else self.written_s.get(row.key))
            is not None
        }
        in_flight = self.found.in_flight + len(before) - len(now)
        found = replace(self.found, differing=tuple(now), in_flight=in_flight)
        return replace(self, found=found, written_s=written_s)

    def settled(self, since_s: float) -> "_Looked":
        """The table with those of its rows that differ and were not written since then."""
        rows = self.found.differing
        kept = tuple(row for row in rows if self.written_s.get(row.key, since_s) <= since_s)
        return replace(
            self, found=replace(self.found, differing=kept, written=len(rows) - len(kept))
        )


DigestParts = Callable[[ComparedTable, ComparedTable, KeyRange], Iterable[DigestPair]]
"""Asks two sides for the digests of a range, in parts."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast rows are compared at most, so that a database keeps time for its users."""

    rows_per_s: float
    sleep: Callable[[float], object]
    now: Callable[[], float]

    def parts(
        self, one: ComparedTable, other: ComparedTable, keys: KeyRange
    ) -> Iterator[DigestPair]:
        """Yield the parts of a range, each in as much time as its rows may take."""
        began = self.now()
        for part in stepwise(one, other, keys):
            self.sleep(max(0.0, part.rows / self.rows_per_s - (self.now() - began)))
            yield part
            began = self.now()


def compared_tables(
    tables: Collection[Table],
    first: OpenTable,
    second: OpenTable,
    waiting: Waiting,
    most: int = MOST,
    parts: DigestParts = digested,
    ignored: DifferenceKind | None = None,
) -> list[TableComparison]:
    """Compare tables of two sides; a row in flight is left out once it is equal.

    `ignored`: rows of this kind do not differ, for an archive keeps them.

    One that is written all the time is never seen equal; it is counted apart.
    """
    looked = [_first_look(table, first, second, most, parts, ignored) for table in tables]
    if any(one.found.differing for one in looked):
        settle_s = waiting.wanted_s()
        looked = _looked_again(looked, waiting, settle_s)
        looked = _compared_with_lag(looked, waiting, settle_s)
    return [_in_order(one.found) for one in looked]


def _looked_again(looked: list[_Looked], waiting: Waiting, settle_s: float) -> list[_Looked]:
    """The tables with the rows that still differ so long after they were written last."""
    began_s, pause_s = waiting.now(), PAUSE_S
    end_s = began_s + settle_s
    last_s = max(end_s, began_s + min(WRITTEN * settle_s, SETTLE_MAX_S))
    while any(one.found.differing for one in looked) and (left_s := end_s - waiting.now()) > 0:
        waiting.sleep(min(pause_s, left_s))
        pause_s = min(pause_s * LENGTHENED, PAUSE_MAX_S)
        looked = [one.again(waiting.now()) if one.found.differing else one for one in looked]
        written_s = max((s for one in looked for s in one.written_s.values()), default=began_s)
        end_s = min(written_s + settle_s, last_s)
    return [one.settled(waiting.now() - settle_s) for one in looked]


def _compared_with_lag(looked: list[_Looked], waiting: Waiting, settle_s: float) -> list[_Looked]:
    """The tables, of which those that differ say so if somebody is further behind than that."""
    if not any(one.found.differing for one in looked):
        return looked
    lag_s = max(waiting.lag_s(), waiting.silent_s())
    if lag_s <= settle_s:
        return looked
    return [
        replace(one, found=replace(one.found, behind_s=lag_s)) if one.found.differing else one
        for one in looked
    ]


def _first_look(
    table: Table,
    first: OpenTable,
    second: OpenTable,
    most: int,
    digests: DigestParts,
    ignored: DifferenceKind | None,
) -> _Looked:
    one, other = first(table), second(table)
    images, rows = (one.images, other.images), list[DifferingRow]()
    counts, in_flight = [0, 0], 0
    for pair in digests(one, other, KeyRange(table.name)):
        counts = [counts[0] + pair.one.count, counts[1] + pair.other.count]
        for keys in _some(differing_keys(one, other, [pair], ignored=ignored)):
            if len(rows) > most:
                break
            found = differing_rows(table, *images, keys, ignored)
            rows, in_flight = rows + found, in_flight + len(keys) - len(found)
    is_cut, total = len(rows) > most, (counts[0], counts[1])
    return _Looked(
        TableComparison(table, total, tuple(rows[:most]), in_flight, is_cut=is_cut), images, ignored
    )


def _some(keys: Iterator[str]) -> Iterator[list[str]]:
    """Yield the keys, so many at a time, before the next ones are looked for."""
    while some := list(islice(keys, AT_ONCE)):
        yield some


def _in_order(found: TableComparison) -> TableComparison:
    order = listed_order(found.table)
    return replace(found, differing=tuple(sorted(found.differing, key=lambda row: order(row.key))))
