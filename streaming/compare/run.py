"""A comparison: each table narrowed down to its rows, and those looked at again after the lag."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from itertools import islice

from streaming.core.compare.difference import DifferingRow, differing_rows
from streaming.core.compare.narrow import differing_keys, digested
from streaming.core.compare.side import Images, OpenTable
from streaming.core.model.table import Table
from streaming.core.tracking.ranges import KeyRange, listed_order

PAUSE_S = 1.0
"""The first pause before rows are looked at again."""

LENGTHENED = 1.5
"""By so much each further pause is longer."""

MOST = 10_000
"""How many differing rows of a table are looked for at most."""


@dataclass(frozen=True, slots=True)
class TableComparison:
    """A table as it was compared.

    `rows`: how many each side had; `in_flight`: how many rows differed first and then became equal;
    `is_cut`: more rows differ than were looked for.
    """

    table: Table
    rows: tuple[int, int]
    differing: tuple[DifferingRow, ...] = ()
    in_flight: int = 0
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """How long rows may be in flight; `sleep` and `now` are those of module time."""

    settle_s: float
    sleep: Callable[[float], object]
    now: Callable[[], float]


@dataclass(frozen=True, slots=True)
class _Looked:
    """A table that is being compared, with what reads its rows again at both sides."""

    found: TableComparison
    images: tuple[Images, Images]

    def again(self) -> "_Looked":
        """The table with those of its rows that still differ."""
        before = self.found.differing
        now = differing_rows(self.found.table, *self.images, [row.key for row in before])
        in_flight = self.found.in_flight + len(before) - len(now)
        return replace(self, found=replace(self.found, differing=tuple(now), in_flight=in_flight))


def compared_tables(
    tables: Collection[Table],
    first: OpenTable,
    second: OpenTable,
    waiting: Waiting,
    most: int = MOST,
) -> list[TableComparison]:
    """Compare tables of two sides; a row that is in flight is left out only once it is equal."""
    looked = [_first_look(table, first, second, most) for table in tables]
    end, pause_s = waiting.now() + waiting.settle_s, PAUSE_S
    while any(one.found.differing for one in looked) and (left_s := end - waiting.now()) > 0:
        waiting.sleep(min(pause_s, left_s))
        pause_s *= LENGTHENED
        looked = [one.again() if one.found.differing else one for one in looked]
    return [_in_order(one.found) for one in looked]


def _first_look(table: Table, first: OpenTable, second: OpenTable, most: int) -> _Looked:
    one, other = first(table), second(table)
    parts = digested(one, other, KeyRange(table.name))
    keys = list(islice(differing_keys(one, other, parts), most + 1))
    rows = differing_rows(table, one.images, other.images, keys[:most])
    found = TableComparison(
        table,
        (sum(part.one.count for part in parts), sum(part.other.count for part in parts)),
        tuple(rows),
        len(keys[:most]) - len(rows),
        is_cut=len(keys) > most,
    )
    return _Looked(found, (one.images, other.images))


def _in_order(found: TableComparison) -> TableComparison:
    order = listed_order(found.table)
    return replace(found, differing=tuple(sorted(found.differing, key=lambda row: order(row.key))))
