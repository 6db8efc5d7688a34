"""Writes a batch as if nothing of it were refused: a few statements for all rows of a run.

A run is of rows that stand behind each other and have the same table, op, columns and unset
columns. A statement cannot write a row twice, so of each key only the last item of a run is
written; rows of a run are written in the order of their keys, so that two agents wait for each
other in one order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from connectors.agent.applying import writer_of
from connectors.postgres.apply.rows import RowTexts, RowWriter
from connectors.postgres.sql import Session
from streaming.core.model.change import Op
from streaming.core.records.record import Item


@dataclass(slots=True)
class RowRun:
    """Rows of one table, key -> texts; `is_delete`: only the key is one.

    `unset`: the columns that get their default.
    """

    writer: RowWriter
    is_delete: bool
    columns: frozenset[str]
    rows: dict[str, RowTexts] = field(default_factory=dict)
    is_of_table: bool = False
    unset: frozenset[str] = frozenset()

    def continues(self, other: "RowRun") -> bool:
        """Return whether the rows of both can be written with one statement."""
        is_of_rows = not (self.is_of_table or other.is_of_table)
        has_same_columns = (self.columns, self.unset) == (other.columns, other.unset)
        mine = (self.writer.table.name, self.is_delete)
        return (
            is_of_rows and has_same_columns and mine == (other.writer.table.name, other.is_delete)
        )

    def write(self, session: Session, *, is_careful: bool = False) -> None:
        """Write the rows in the order of their keys."""
        rows = [self.rows[key] for key in sorted(self.rows)]
        if self.is_of_table:
            self.writer.delete_all(session)
        elif self.is_delete:
            self.writer.delete(session, rows)
        else:
            self.writer.upsert(session, rows, self.unset, is_careful=is_careful)


def run_of(writers: Mapping[str, RowWriter], item: Item) -> RowRun:
    """The run of one item; WireError: the table cannot have its row."""
    writer = writer_of(writers, item)
    if item.is_of_table:
        return RowRun(writer, True, frozenset(), {}, is_of_table=True)  # noqa: FBT003
    is_delete = item.op == Op.DELETE or item.after is None
    row = writer.key(item.key) if is_delete else writer.values(item)
    unset = frozenset[str]() if is_delete else writer.unset(item)
    return RowRun(writer, is_delete, frozenset(row), {item.key: row}, unset=unset)


def runs_of(writers: Mapping[str, RowWriter], items: Sequence[Item]) -> Iterator[RowRun]:
    """The runs of a batch, in its order; WireError as run_of."""
    last: RowRun | None = None
    for item in items:
        run = run_of(writers, item)
        if last is not None and last.continues(run):
            last.rows |= run.rows
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last
