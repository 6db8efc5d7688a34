"""Ids that databases give by themselves, and the ranges that keep them apart per replica.

A database that gives the largest id plus one goes on from the largest id of any replica, because
the others' rows are in its table too. A sequence that starts higher does not help: the first row of
a higher range that arrives raises it. So the application takes ids from its replica's range.
PostgreSQL's sequence is moved on by nobody else's rows, so it can be set to the range itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.document import DatabaseSchema, IdSource

WIDTH = 10**12
"""How many ids a replica has where an id has 64 bits."""
WIDTH_MIN = 100_000
"""With fewer ids than this for a replica a column is too narrow."""

_NEXT = "gives the next id of its own sequence, whatever rows of others it has"
_LARGEST = (
    "gives the largest id plus one, whoever wrote that row (with AUTOINCREMENT and sqlite_sequence"
    " too)"
)


@dataclass(frozen=True, slots=True)
class IdRange:
    """The ids that one replica may give; `source`: None: it is not known who gives them there."""

    replica: str
    low: int
    high: int
    source: IdSource | None = None

    @property
    def is_of_sequence(self) -> bool:
        """Return whether a sequence gives the ids, which a statement sets."""
        return self.source in (IdSource.SEQUENCE, IdSource.OWN_SEQUENCE)


@dataclass(frozen=True, slots=True)
class IdRanges:
    """A column whose database gives ids that would collide; no ranges: it is too narrow.

    `sources`: who gives ids that would, at some replica.
    """

    table: str
    column: str
    ranges: tuple[IdRange, ...]
    sources: tuple[IdSource, ...] = (IdSource.LARGEST,)

    @property
    def text(self) -> str:
        """What will happen, and what to do."""
        name = f"table {self.table}, column {self.column}"
        is_sequence = self.sources == (IdSource.SEQUENCE,)
        is_mixed = not is_sequence and (
            IdSource.SEQUENCE in self.sources or any(one.is_of_sequence for one in self.ranges)
        )
        gives = f"a database {_NEXT if is_sequence else _LARGEST}"
        if is_mixed:
            gives = f"a database with a sequence {_NEXT}, and one without {_LARGEST}"
        happens = (
            f"{name}: {gives}, so two replicas that insert at once give one id to two rows, and"
            " one of them loses"
        )
        if not self.ranges:
            return (
                f"{happens}; an int32 is too narrow for a range of each replica: configure the"
                " column as int64, or let the application give the ids"
            )
        if is_sequence:
            return (
                f"{happens}; let each step over the ids of the others, by the statements that"
                " `slackwater attach` prints, or set each to a range:"
            )
        if is_mixed:
            return (
                f"{happens}; give each replica a range, a sequence by the statement, and where"
                " there is none let the application take its ids from it (the steps that"
                " `slackwater attach` prints keep sequences apart from each other only):"
            )
        return f"{happens}; let the application at each replica take its ids from a range:"

    def step(self, one: IdRange) -> str:
        """The expression that gives the next id of a replica, or the statement that sets it."""
        column, table = _quoted(self.column), _quoted(self.table)
        given = f"coalesce(max({column}) + 1, {one.low})"
        within = f"FROM {table} WHERE {column} BETWEEN {one.low} AND {one.high}"
        if one.is_of_sequence:
            sequence = f"pg_get_serial_sequence({_literal(table)}, {_literal(self.column)})"
            return f"SELECT setval({sequence}, {given}, false) {within};"
        return f"(SELECT {given} {within})"


def id_ranges(
    schemas: Sequence[DatabaseSchema], tables: Sequence[Table], rids: Mapping[str, int]
) -> Iterator[IdRanges]:
    """The replicated columns whose ids the databases give, with a range for each replica."""
    if len(rids) < 2:
        return
    for table in tables:
        for name, kind in table.columns.items():
            sources = {one.replica: _source(one, table.name, name) for one in schemas}
            given = {one for one in sources.values() if one is not None}
            collide = sorted(given - {IdSource.OWN_SEQUENCE})
            if collide:
                ranges = tuple(_ranges(kind, rids, sources))
                yield IdRanges(table.name, name, ranges, tuple(collide))


def _source(schema: DatabaseSchema, table: str, name: str) -> IdSource | None:
    found = schema.table(table)
    columns = found.columns if found else ()
    return next((one.id_source for one in columns if one.name.lower() == name.lower()), None)


def _ranges(
    kind: ColumnType, rids: Mapping[str, int], sources: Mapping[str, IdSource | None]
) -> Iterator[IdRange]:
    width = WIDTH
    if kind is ColumnType.INT32:
        width = 2**31 // (max(rids.values()) + 1)
    if width < WIDTH_MIN:
        return
    for replica, rid in rids.items():
        yield IdRange(replica, rid * width, (rid + 1) * width - 1, sources.get(replica))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
