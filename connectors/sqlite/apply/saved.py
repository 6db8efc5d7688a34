"""Rows that exist nowhere else, saved before the agent overwrites or deletes them.

They are saved in the database, by the transaction that overwrites them: a crash leaves both or
neither, no disk beside the database's can be full, and a backup of the file has them. Each value is
kept as SQLite held it.
"""
# ruff: noqa: S608 every name is quoted

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property

import orjson

from connectors.agent.applying import EXTRANEOUS
from connectors.agent.contract import SavedRow
from connectors.agent.images import null_faults
from connectors.sqlite import sql
from connectors.sqlite.apply.rows import RowWriter
from connectors.sqlite.journal import entries as journal
from connectors.sqlite.journal import uncarried
from connectors.sqlite.journal.capture import row_images
from connectors.sqlite.schema.catalog import BINARY, Catalog, read
from connectors.sqlite.values.image import wire_image
from connectors.sqlite.values.spellings import Stored
from streaming.core.batch.sending import PAGE
from streaming.core.model.errors import WireError
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Item

NOT_AT_THE_HUB = "the hub does not have the row, and deletes it in a copy of the table"
"""Why a stranger is saved: what nobody captured, or what the hub has forgotten."""
NOT_CAPTURED = (
    "a copy of the table overwrites the row by a version that is older than what was applied here:"
    " it was changed here without a trigger, or it was not sent for a while (a table that was"
    " paused, another filter or mask)"
)
"""Why a row is saved that differs from a version which this database has had before.

Or would have had, if it had been sent what the RUV of its position covers.
"""


@dataclass(frozen=True, slots=True)
class RowAtRisk:
    """A row that a batch writes, and where it is saved; `where`: its condition in the table."""

    id: int
    row: SavedRow
    columns: tuple[str, ...]
    where: str
    values: Sequence[Stored]


def save(
    connection: sqlite3.Connection, writers: Mapping[str, RowWriter], items: Iterable[Item]
) -> list[RowAtRisk]:
    """Save the rows that these items write and that are nowhere else, before they are written."""
    at_work = _Saving(connection, writers)
    seen = set[tuple[str, str]]()
    found = list[RowAtRisk]()
    for item in items:
        if not at_work.concerns(item) or item.table not in writers:
            continue
        if (item.table, item.key) not in seen:
            seen.add((item.table, item.key))
            found += at_work.save(item)
    return found


def forget_standing(
    connection: sqlite3.Connection, at_risk: Iterable[RowAtRisk]
) -> tuple[SavedRow, ...]:
    """Forget the saved rows that still stand, because they were refused; return the others.

    What was overwritten is no more a row that is not replicated.
    """
    gone = list[SavedRow]()
    for one in at_risk:
        if _stands(connection, one):
            _forget(connection, one.id)
        else:
            uncarried.strike_out(connection, one.row.table, one.row.key)
            gone.append(one.row)
    return tuple(gone)


def is_there(connection: sqlite3.Connection) -> bool:
    """Return whether an agent that saves rows has run on this database."""
    query = "SELECT 1 FROM sqlite_schema WHERE name = '_slackwater_saved'"
    return connection.execute(query).fetchone() is not None


def count(connection: sqlite3.Connection) -> int:
    """How many rows are saved."""
    (found,) = connection.execute("SELECT count(*) FROM _slackwater_saved").fetchone()
    return int(found)


class _Saving:
    """What one batch overwrites, looked up before it does."""

    def __init__(self, connection: sqlite3.Connection, writers: Mapping[str, RowWriter]) -> None:
        self._connection = connection
        self._writers = writers
        self._is_any_uncarried = uncarried.is_any(connection)
        self._tables = dict[str, _Table]()

    def concerns(self, item: Item) -> bool:
        """Return whether the row of this item may be nowhere else."""
        return self._is_any_uncarried or item.cause == EXTRANEOUS or self._is_back(item)

    def save(self, item: Item) -> list[RowAtRisk]:
        """Save the row of the item, or those of its truncate, if they are nowhere else."""
        table = self._tables.get(item.table) or self._tables.setdefault(
            item.table, _Table(self._connection, self._writers[item.table])
        )
        if item.is_of_table:
            return table.save_faulty()
        if self._is_any_uncarried:
            why = uncarried.faults_of(self._connection, item.table, item.key)
            if why is not None:
                return table.save_listed(item.key, why)
        if item.cause == EXTRANEOUS:
            return table.save_extraneous(item.key)
        return table.save_changed(item) if self._is_back(item) else []

    def _is_back(self, item: Item) -> bool:
        """Return whether a copy brings a version again that this database has had before.

        A row that differs from it was changed here. From a newer version it may differ because it
        is an older one of the hub's, of which a replica that was away has many.
        """
        return item.cause == PAGE and item.csn is not None and self._ruv.covers(item.csn)

    @cached_property
    def _ruv(self) -> Ruv:
        """What this database has had before the batch."""
        (text,) = self._connection.execute("SELECT ruv FROM _slackwater_position").fetchone()
        return journal.ruv_of(text)


@dataclass
class _Table:
    connection: sqlite3.Connection
    writer: RowWriter

    def save_listed(self, key: str, why: str) -> list[RowAtRisk]:
        """Save the row of a key that is listed; if it is gone, nobody captured that: unlist it."""
        condition = self._condition(key)
        saved = self._save(key, why, *condition) if condition else []
        if not saved:
            uncarried.strike_out(self.connection, self.writer.table.name, key)
        return saved

    def save_extraneous(self, key: str) -> list[RowAtRisk]:
        """Save the row of a key that goes with a range, if the journal does not have it so."""
        is_whole = set(self._columns) == set(self.writer.table.columns)  # or others are only here
        return self._save_unless(
            key, NOT_AT_THE_HUB, lambda captured: is_whole and self._is_journalled(captured)
        )

    def save_changed(self, item: Item) -> list[RowAtRisk]:
        """Save the row that a copy overwrites, if it is another one and the journal has it not."""
        return self._save_unless(
            item.key,
            NOT_CAPTURED,
            lambda captured: self._is_as_sent(captured[1], item) or self._is_journalled(captured),
        )

    def _save_unless(
        self, key: str, why: str, is_known: Callable[[tuple[str, str]], bool]
    ) -> list[RowAtRisk]:
        """Save the row of a key, if there is one that is not known as it is captured."""
        condition = self._condition(key)
        captured = self._captured(*condition) if condition else None
        if condition is None or captured is None or is_known(captured):
            return []
        return self._save(key, why, *condition)

    def save_faulty(self) -> list[RowAtRisk]:
        """Save the rows of the table that no replica can take, whatever their keys are."""
        name = self.writer.table.name
        listed = [one for one in uncarried.listed(self.connection) if one.table == name]
        found = list[RowAtRisk]()
        for key, where, faults in list(self._faulty()) if listed else []:
            why = "; ".join(faults) or uncarried.faults_of(self.connection, name, key)
            if why:
                found += self._save(key, why, where, [])
        return found

    def _condition(self, key: str) -> tuple[str, list[Stored]] | None:
        try:
            return self.writer.condition(key)
        except WireError:  # so its item is refused
            return None

    def _captured(self, where: str, values: Sequence[Stored]) -> tuple[str, str] | None:
        """Key and image of a row as a trigger would capture them; None: there is no such row."""
        found = self.connection.execute(f"{self._captured_sql} WHERE {where}", values).fetchone()
        return None if found is None else (found[0], found[1])

    def _is_as_sent(self, captured: str, item: Item) -> bool:
        """Return whether a row has each value that is sent, and the default where none is."""
        has_image = _has_image(captured, item.after)
        return has_image and self.writer.has_defaults(self.connection, item)

    def _is_journalled(self, captured: tuple[str, str]) -> bool:
        """Return whether the journal's last change of the row has all that was captured."""
        key, image = captured
        change = self._last_changes.get(key)
        return change is not None and journal.image_of(self.connection, change) == image

    @cached_property
    def _last_changes(self) -> dict[str, int]:
        """Looked up once: a copy may concern many rows, and the journal may be long."""
        return journal.last_changes(self.connection, self.writer.table.name)

    @cached_property
    def _catalog(self) -> Catalog:
        return read(self.connection, self.writer.table)

    @cached_property
    def _captured_sql(self) -> str:
        return row_images(self.writer.table, self._catalog)

    def _faulty(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """Key, condition and faults of each row."""
        columns = map(sql.name, self._catalog.identity)
        where = " || ' AND ' || ".join(
            f"{sql.string(f'{name} COLLATE {BINARY} IS ')} || {sql.literal(f'x.{name}')}"
            for name in columns
        )
        rows = self.connection.execute(row_images(self.writer.table, self._catalog, where))
        with closing(rows):
            for captured_key, captured, condition in rows:
                wire_key = wire_image(captured_key).text
                yield wire_key, condition, null_faults(wire_key) + wire_image(captured).faults

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        """The columns that hold a value of their own, configured or not."""
        columns = self._catalog.columns.values()
        return tuple(column.name for column in columns if not column.generated)

    def _save(self, key: str, why: str, where: str, values: Sequence[Stored]) -> list[RowAtRisk]:
        table, free = sql.name(self.writer.table.name), len(values) + 1
        saved = self.connection.execute(
            f'INSERT INTO _slackwater_saved (at, "table", key, why) SELECT {sql.NOW_MS},'
            f" ?{free}, ?{free + 1}, ?{free + 2} FROM {table} WHERE {where}",
            (*values, self.writer.table.name, key, why),
        )
        if not saved.rowcount or saved.lastrowid is None:
            return []
        columns = self._columns
        for name in columns:
            self.connection.execute(
                "INSERT INTO _slackwater_saved_values (saved, name, value)"
                f" SELECT ?{free}, ?{free + 1}, {sql.name(name)} FROM {table} WHERE {where}",
                (*values, saved.lastrowid, name),
            )
        row = SavedRow(self.writer.table.name, key, why)
        return [RowAtRisk(saved.lastrowid, row, columns, where, values)]


def _has_image(captured: str, after: str | None) -> bool:
    """Return whether a captured image has the value of each column that is sent."""
    there = wire_image(captured)
    if after is None or there.faults:
        return False
    if there.text == after:
        return True
    values = orjson.loads(there.text)
    sent: dict[str, object] = orjson.loads(after)
    return all(name in values and values[name] == value for name, value in sent.items())


def _stands(connection: sqlite3.Connection, one: RowAtRisk) -> bool:
    """Return whether the row holds in the table what is saved of it."""
    names = ", ".join(map(sql.name, one.columns))
    row = connection.execute(
        f"SELECT {names} FROM {sql.name(one.row.table)} WHERE {one.where}", one.values
    ).fetchone()
    if row is None:
        return False
    saved = dict(values_of(connection, one.id))
    return [(type(value), value) for value in row] == [
        (type(saved[name]), saved[name]) for name in one.columns
    ]


def values_of(connection: sqlite3.Connection, saved: int) -> Iterator[tuple[str, Stored]]:
    """The columns of a saved row with their values."""
    yield from connection.execute(
        "SELECT name, value FROM _slackwater_saved_values WHERE saved = ? ORDER BY rowid", (saved,)
    )


def forget_up_to(connection: sqlite3.Connection, last: int) -> int:
    """Delete the saved rows up to this id, in the caller's transaction; how many there were."""
    if not is_there(connection):
        return 0
    connection.execute("DELETE FROM _slackwater_saved_values WHERE saved <= ?", (last,))
    return connection.execute("DELETE FROM _slackwater_saved WHERE id <= ?", (last,)).rowcount


def _forget(connection: sqlite3.Connection, saved: int) -> None:
    connection.execute("DELETE FROM _slackwater_saved_values WHERE saved = ?", (saved,))
    connection.execute("DELETE FROM _slackwater_saved WHERE id = ?", (saved,))
