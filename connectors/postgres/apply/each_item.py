"""The rows of a batch that is written item by item (connectors/agent/each_item.py), in PostgreSQL.

A row that is in the way of another is deleted and inserted again whole, which nothing acts on in
the role `replica`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from connectors.agent.applying import UnknownTableError, writer_of
from connectors.agent.each_item import DatabaseRefusal
from connectors.agent.lacking import LackingColumnError
from connectors.postgres.apply.fast import run_of
from connectors.postgres.apply.rows import RowTexts, RowWriter, written_over
from connectors.postgres.errors import error_text, refusal_code
from connectors.postgres.sql import Session
from streaming.core.model.errors import WireError
from streaming.core.model.refusal import COLUMN
from streaming.core.records.record import Item, Refused


def code_of(error: Exception) -> str | None:
    """The code of a refusal; None: the row is not what failed, and nothing is refused."""
    if isinstance(error, psycopg.Error):
        return refusal_code(error)
    if isinstance(error, LackingColumnError):
        return COLUMN
    return "other" if isinstance(error, UnknownTableError) else "type"


@dataclass(slots=True)
class PostgresItemRows:
    """The rows of a batch, written in a session within its transaction (ItemRows).

    `indexes`: place -> the unique index for which it was refused. `taken`: place -> the row that
    was taken out of the way of others; None: there was none.
    """

    session: Session
    writers: Mapping[str, RowWriter]
    items: Sequence[Item]
    indexes: dict[int, str] = field(default_factory=dict)
    taken: dict[int, dict[str, str | None] | None] = field(default_factory=dict)

    def write(self, place: int) -> None:
        """Write or delete the row of this item."""
        run_of(self.writers, self.items[place]).write(self.session, is_careful=True)

    def take_out(self, place: int) -> None:
        """Take its row out of the way of others, if there is one."""
        self.taken.pop(place, None)
        item = self.items[place]
        writer = writer_of(self.writers, item)
        self.taken[place] = writer.take_out(self.session, writer.key(item.key))

    def put_in(self, place: int) -> None:
        """Write its row, which may have been taken out."""
        item = self.items[place]
        if item.after is None or self.taken.get(place) is None:
            self.write(place)
        else:
            writer_of(self.writers, item).insert(self.session, self._row(place))

    def keys_in_way(self, place: int, refused: Refused) -> set[str]:
        """The keys of the rows that hold a unique value that its row wants; empty: not known."""
        item = self.items[place]
        writer = writer_of(self.writers, item)
        del refused
        index = self.indexes.get(place, "")
        return writer.keys_in_way(self.session, self._row(place), index, writer.unset(item))

    @contextmanager
    def moving(self, tables: set[str]) -> Iterator[None]:
        """Nothing is to be prepared for that."""
        del tables
        yield

    def refusal(self, place: int, error: Exception) -> DatabaseRefusal | None:
        """Why the database refuses its row; None: it is the database that failed."""
        if not isinstance(error, psycopg.Error | WireError) or (code := code_of(error)) is None:
            return None
        if isinstance(error, psycopg.Error):
            self.indexes[place] = error.diag.constraint_name or ""
            return DatabaseRefusal(code, error_text(error))
        return DatabaseRefusal(code, str(error))

    def check_goes_on(self, refused: Refused, place: int, error: Exception) -> None:
        """Raise the error if it is that of a truncate, which cannot be refused."""
        if self.items[place].is_of_table and refused.table in self.writers:
            raise error

    def _row(self, place: int) -> RowTexts:
        """The row as it will stand."""
        item = self.items[place]
        writer = writer_of(self.writers, item)
        return written_over(self.taken.get(place) or {}, writer.values(item), writer.unset(item))
