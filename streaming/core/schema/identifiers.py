"""Ids that databases give by themselves, and the ranges that keep them apart per replica.

A database that gives the largest id plus one goes on from the largest id of any replica, because
the others' rows are in its table too. A sequence that starts higher does not help: the first row of
a higher range that arrives raises it. So the application takes ids from its replica's range.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.document import DatabaseSchema

WIDTH = 10**12
"""How many ids a replica has where an id has 64 bits."""
WIDTH_MIN = 100_000
"""With fewer ids than this for a replica a column is too narrow."""


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids that one replica may give."""

    replica: str
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class IdRanges:
    """A column whose database gives ids that would collide; no ranges: it is too narrow."""

    table: str
    column: str
    ranges: tuple[IdRange, ...]

    @property
    def text(self) -> str:
        """What will happen, and what to do."""
        name = f"table {self.table}, column {self.column}"
        happens = (
            f"{name}: a database gives the largest id plus one, whoever wrote that row (with"
            " AUTOINCREMENT and sqlite_sequence too), so two replicas that insert at once give"
            " one id to two rows, and one of them loses"
        )
        if not self.ranges:
            return (
                f"{happens}; an int32 is too narrow for a range of each replica: configure the"
                " column as int64, or let the application give the ids"
            )
        return f"{happens}; let the application at each replica take its ids from a range:"

    def step(self, one: IdRange) -> str:
        """The expression that gives the next id of a replica."""
        column, table = _quoted(self.column), _quoted(self.table)
        return (
            f"(SELECT coalesce(max({column}) + 1, {one.low}) FROM {table}"  # noqa: S608 both quoted
            f" WHERE {column} BETWEEN {one.low} AND {one.high})"
        )


def id_ranges(
    schemas: Sequence[DatabaseSchema], tables: Sequence[Table], rids: Mapping[str, int]
) -> Iterator[IdRanges]:
    """The replicated columns whose ids the databases give, with a range for each replica."""
    if len(rids) < 2:
        return
    for table in tables:
        for name, kind in table.columns.items():
            found = [column for s in schemas if (t := s.table(table.name)) for column in t.columns]
            if any(one.id_source and one.name.lower() == name.lower() for one in found):
                yield IdRanges(table.name, name, tuple(_ranges(kind, rids)))


def _ranges(kind: ColumnType, rids: Mapping[str, int]) -> Iterator[IdRange]:
    width = WIDTH
    if kind is ColumnType.INT32:
        width = 2**31 // (max(rids.values()) + 1)
    if width < WIDTH_MIN:
        return
    for replica, rid in rids.items():
        yield IdRange(replica, rid * width, (rid + 1) * width - 1)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
