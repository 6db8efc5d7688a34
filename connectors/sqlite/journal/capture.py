"""Triggers that journal what any SQLite client writes, in the transaction that writes it.

A trigger captures the row as stored: another trigger may have changed it meanwhile. REPLACE
deletes rows for which no trigger fires (unless recursive_triggers is on), so a BEFORE trigger
records the rows that a write could replace, and the AFTER trigger captures a delete of each that is
gone. In between a trigger of the user's, or a foreign key's action, may write the same table, and
so bring a row in the way: while another write is open, what is recorded stays, and each row that is
written is recorded too. No trigger makes a statement fail: a value that is not of
its column's type is captured as it is, and image.py finds out what it means.
"""
# ruff: noqa: S608 every name is quoted, every expression is our own

from collections.abc import Iterable

from connectors.sqlite import sql
from connectors.sqlite.install import cascades, local_writes
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.catalog import BINARY, Catalog, Unique, UniqueColumn
from connectors.sqlite.values.columns import image_sql
from streaming.core.model.table import Table

INSERT = "'insert'"
"""What stands for the key of a row that is inserted: it may be given by SQLite."""
KEY_PREFIX = "key "
"""The prefix of a key column's name in the table of recorded rows."""
UNIQUE_PREFIX = "unique "
"""The prefix there of a column that is in a unique constraint."""

CAPTURING_EVENTS = (
    "before_insert",
    "after_insert",
    "before_update",
    "after_update",
    "after_delete",
)
"""Parts of the names of the triggers without which a write is not captured, or not as it was."""


# How many rows a statement is writing at a moment: a trigger may write others before it is done.
# The BEFORE trigger of a row opens a write and its AFTER trigger closes one. A row that is left out
# behind its BEFORE trigger (OR IGNORE, an upsert) stays open, so the count may be too high, and
# never too low. Every statement starts anew: SQLite's clock stands still within one. Two within a
# millisecond count as one, which is too high again.

_SAME_MS = f"statement_ms = {sql.NOW_MS}"

OPEN_WRITE = f"""UPDATE _slackwater_origin SET
    open_writes = CASE WHEN {_SAME_MS} THEN open_writes + 1 ELSE 1 END,
    statement = CASE WHEN {_SAME_MS} THEN statement ELSE statement + 1 END,
    statement_ms = {sql.NOW_MS}"""
CLOSE_WRITE = "UPDATE _slackwater_origin SET open_writes = open_writes - 1"

STATEMENT = "(SELECT statement FROM _slackwater_origin)"
"""The number of the statement that runs."""
DONE = "(SELECT statement FROM _slackwater_origin WHERE open_writes = 0)"
"""The same if it is writing no other row; else null."""
IS_OPEN = "EXISTS (SELECT 1 FROM _slackwater_origin WHERE open_writes > 0)"
"""A condition: it is writing another row."""


def triggers(table: Table, catalog: Catalog, *, has_actions: bool = False) -> dict[str, str]:
    """Name -> CREATE statement of everything that captures this table.

    `has_actions`: foreign keys write other captured tables when a row of it is written.
    """
    return _Capture(table, catalog, has_actions=has_actions).statements()


def row_images(table: Table, catalog: Catalog, *others: str) -> str:
    """A query that gives key and image of every row x as a trigger would capture them.

    `others`: expressions that it gives behind them.
    """
    columns = catalog.stored(table)
    key = image_sql({name: columns[name] for name in table.key}, "x")
    given = ", ".join((key, image_sql(columns, "x"), *others))
    return f"SELECT {given} FROM {sql.name(table.name)} x"


class _Capture:
    def __init__(self, table: Table, catalog: Catalog, *, has_actions: bool) -> None:
        self.has_actions = has_actions
        self.table = table
        self.catalog = catalog
        self.columns = catalog.stored(table)
        self.key = {name: self.columns[name] for name in table.key}
        self.name = sql.name(table.name)
        self.replaced_name = f"{PREFIX}replaced_{table.name}"
        self.replaced = sql.name(self.replaced_name)

    def statements(self) -> dict[str, str]:
        """Name -> CREATE statement of everything that captures the table."""
        update = self._update_of([*self.table.columns, *self._unique_columns()])
        unique_update = self._update_of(self._unique_columns())
        return {
            self.replaced_name: self._replaced_table(),
            **self._replaced_indexes(),
            **self._trigger("before", "insert", "INSERT", self._record_replaced()),
            **self._trigger("after", "insert", "INSERT", self._of_one(self._inserted(), INSERT)),
            **self._trigger("before", "update", unique_update, self._record_replaced("OLD")),
            **self._trigger(
                "after",
                "update",
                update,
                self._of_one(self._updated(), self._old_key(), cascades.END_FIRST),
            ),
            **self._trigger("done", "update", unique_update, [CLOSE_WRITE]),
            **self._trigger(
                "after", "delete", "DELETE", self._of_one(self._deleted(), self._old_key())
            ),
            **self._truncate(),
            **self._counted(update),
            **(self._noted(update) if self.has_actions else {}),
        }

    def _update_of(self, columns: Iterable[str]) -> str:
        """The event of an update of these columns, or of the rowid, which may be one of them.

        A statement that sets a generated column or the rowid need not name a column.
        """
        names = list(dict.fromkeys(columns))
        if any(self.catalog.columns[name].generated for name in names):
            return "UPDATE"
        return f"UPDATE OF {', '.join(map(sql.name, (*names, *self.catalog.rowids)))}"

    def _old_key(self) -> str:
        return image_sql(self.key, "OLD")

    def _of_one(self, body: list[str], key: str, end: str = cascades.END) -> list[str]:
        """The statements, and that what foreign keys wrote before belongs to them."""
        if not self.has_actions:
            return body
        own = cascades.statement(cascades.OWN, self.table.name, key)
        return [own, *body, cascades.statement(end, self.table.name, key)]

    def _noted(self, update: str) -> dict[str, str]:
        """The triggers that note where the journal ends before a row is written."""
        found = dict[str, str]()
        for verb, event, key in (
            ("insert", "INSERT", INSERT),
            ("update", update, self._old_key()),
            ("delete", "DELETE", self._old_key()),
        ):
            note = cascades.statement(cascades.BEGIN, self.table.name, key)
            found |= self._trigger("cascade", verb, event, [note])
        return found

    def _trigger(self, when: str, verb: str, event: str, body: Iterable[str]) -> dict[str, str]:
        name = f"{PREFIX}{when}_{verb}_{self.table.name}"
        statements = "".join(f"\n  {statement};" for statement in body)
        timing = "BEFORE" if when in ("before", "cascade") else "AFTER"
        return {
            name: f"CREATE TRIGGER {sql.name(name)} {timing} {event} ON {self.name}"
            f" WHEN {self._is_captured()}\nBEGIN{statements}\nEND"
        }

    def _is_captured(self) -> str:
        """A condition: neither the agent nor a truncate of this table writes."""
        free = f"applying = 0 AND truncating IS NOT {sql.string(self.table.name)}"
        return f"(SELECT {free} FROM _slackwater_origin)"

    def _counted(self, update: str) -> dict[str, str]:
        """The triggers that count the rows of which no other replica is told."""
        found = dict[str, str]()
        for verb, event in (("insert", "INSERT"), ("update", update), ("delete", "DELETE")):
            name = f"{PREFIX}local_{verb}_{self.table.name}"
            found[name] = (
                f"CREATE TRIGGER {sql.name(name)} AFTER {event} ON {self.name}"
                f" WHEN {local_writes.IS_LOCAL}\nBEGIN"
                f"\n  {local_writes.count_sql(self.table.name)};\nEND"
            )
        return found

    def _truncate(self) -> dict[str, str]:
        """The trigger that deletes all rows when a truncate is captured (system.py, CAPTURE)."""
        name, table = f"{PREFIX}truncate_{self.table.name}", sql.string(self.table.name)
        return {
            name: f"CREATE TRIGGER {sql.name(name)} INSTEAD OF INSERT ON _slackwater_write"
            f" WHEN NEW.op = 'truncate' AND NEW.\"table\" = {table}\nBEGIN"
            f"\n  UPDATE _slackwater_origin SET truncating = {table};"
            f"\n  DELETE FROM {self.name};"
            f"\n  DELETE FROM {self.replaced};"
            "\n  UPDATE _slackwater_origin SET truncating = NULL;\nEND"
        }

    # -- rows that a write replaces ---------------------------------------------------------

    def _replaced_table(self) -> str:
        keys = ", ".join(sql.name(KEY_PREFIX + name) for name in self.table.key)
        uniques = "".join(f", {sql.name(UNIQUE_PREFIX + name)}" for name in self._recorded())
        return (
            f"CREATE TABLE {self.replaced} ({keys}{uniques}, image TEXT NOT NULL,"
            f" statement INTEGER NOT NULL, PRIMARY KEY ({keys}))"
        )

    def _replaced_indexes(self) -> dict[str, str]:
        """The indexes by which a write finds what it may have replaced, and what is out of date."""
        columns = [
            ", ".join(
                f"{sql.name(UNIQUE_PREFIX + part.name)} COLLATE {sql.name(part.collation)}"
                for part in unique
            )
            for unique in self._in_way()
        ]
        names = [f"{PREFIX}collides_{place}_{self.table.name}" for place, _ in enumerate(columns)]
        found = dict(zip(names, columns, strict=True))
        found[f"{PREFIX}recorded_{self.table.name}"] = "statement"
        return {
            name: f"CREATE INDEX {sql.name(name)} ON {self.replaced} ({columns})"
            for name, columns in found.items()
        }

    def _record_replaced(self, but_not: str | None = None) -> list[str]:
        but = f" AND NOT ({self._same('x', but_not)})" if but_not else ""
        noted = f"NOT EXISTS (SELECT 1 FROM {self.replaced} r WHERE {self._is_recorded('x')})"
        return [
            OPEN_WRITE,
            f"DELETE FROM {self.replaced} WHERE statement < {STATEMENT}",
            *(
                self._record(f"{' AND '.join(_collides(unique))}{but} AND {noted}")
                for unique in self._in_way()
            ),
        ]

    def _record(self, where: str) -> str:
        keys = ", ".join(f"x.{sql.name(name)}" for name in self.table.key)
        uniques = "".join(f", x.{sql.name(name)}" for name in self._recorded())
        image = image_sql(self.columns, "x")
        if self.catalog.has_null_keys:
            where += f" AND NOT ({self._has_null_key('x')})"
        return (
            f"INSERT INTO {self.replaced} SELECT {keys}{uniques}, {image}, {STATEMENT}"
            f" FROM {self.name} x WHERE {where}"
        )

    def _in_way(self) -> list[Unique]:
        """What another row may have in common with one that is written."""
        rowid = self.catalog.rowid
        return [*self.catalog.uniques, *([(UniqueColumn(rowid, BINARY),)] if rowid else [])]

    def _recorded(self) -> list[str]:
        return list(dict.fromkeys(part.name for unique in self._in_way() for part in unique))

    def _unique_columns(self) -> list[str]:
        return list(dict.fromkeys(part.name for unique in self.catalog.uniques for part in unique))

    def _gone(self, recorded: str = "r") -> str:
        """A condition: the recorded row was in the way of the written one, and exists no longer."""
        in_way = " OR ".join(
            f"({' AND '.join(_collided(unique, recorded))})" for unique in self._in_way()
        )
        return f"({in_way}) AND {self._is_gone(recorded)}"

    def _is_gone(self, recorded: str) -> str:
        there = f"SELECT 1 FROM {self.name} x WHERE {self._same_recorded('x', recorded)}"
        return f"NOT EXISTS ({there})"

    def _forget(self) -> list[str]:
        """Forget what is told and what nobody can replace any more; but record the new row.

        Where only the key is unique, what takes a row's place has its key: no row is gone.
        """
        forget = [
            f"DELETE FROM {self.replaced} WHERE statement = {DONE}",
            f"DELETE FROM {self.replaced} WHERE {self._is_recorded('NEW', self.replaced)}",
        ]
        key = {UniqueColumn(name, BINARY) for name in self.table.key}
        if all(set(unique) == key for unique in self._in_way()):
            return forget
        return [
            *forget,
            f"DELETE FROM {self.replaced} WHERE {self._gone(self.replaced)}",
            self._record(f"{self._same('x', 'NEW')} AND {IS_OPEN}"),
        ]

    def _forget_old(self) -> str:
        """Forget the old row, unless a row of its key exists again."""
        return (
            f"DELETE FROM {self.replaced} WHERE {self._is_recorded('OLD', self.replaced)}"
            f" AND {self._is_gone(self.replaced)}"
        )

    def _capture_gone(self) -> str:
        key = image_sql(self.key, "r", KEY_PREFIX)
        where = f"FROM {self.replaced} r WHERE {self._gone()}"
        return self._write("delete", key, "r.image", "NULL", where)

    def _is_any_gone(self) -> str:
        return f"EXISTS (SELECT 1 FROM {self.replaced} r WHERE {self._gone()})"

    # -- what the triggers capture ----------------------------------------------------------

    def _inserted(self) -> list[str]:
        several = self._is_any_gone()
        was_there = "CASE WHEN r.image IS NULL THEN 'insert' ELSE 'update' END"
        return [
            CLOSE_WRITE,
            _group("begin", several),
            self._capture_gone(),
            self._capture_row(was_there, "r.image"),
            *self._capture_null_key(),
            _group("commit", several),
            *self._forget(),
        ]

    def _updated(self) -> list[str]:
        moved = f"NOT ({self._same('NEW', 'OLD', 'IS')})"
        several = f"{moved} OR {self._is_any_gone()}"
        old = image_sql(self.columns, "OLD")
        return [
            self._forget_old(),  # its delete is captured below
            _group("begin", several),
            self._capture_gone(),
            self._capture_deleted(moved),
            self._capture_row(
                f"CASE WHEN {moved} AND r.image IS NULL THEN 'insert' ELSE 'update' END",
                f"CASE WHEN {moved} THEN r.image ELSE {old} END",
            ),
            *self._capture_null_key(),
            _group("commit", several),
            *self._forget(),
        ]

    def _deleted(self) -> list[str]:
        return [self._forget_old(), self._capture_deleted("1")]

    def _capture_deleted(self, condition: str) -> str:
        """Capture a delete of the old row, unless a row of its key exists again."""
        there = f"SELECT 1 FROM {self.name} x WHERE {self._same('x', 'OLD')}"
        if self.catalog.has_null_keys:  # no other replica has such a row
            condition = f"({condition}) AND NOT ({self._has_null_key('OLD')})"
        return self._write(
            "delete",
            image_sql(self.key, "OLD"),
            image_sql(self.columns, "OLD"),
            "NULL",
            f"WHERE {condition} AND NOT EXISTS ({there})",
        )

    def _capture_row(self, op: str, before: str) -> str:
        """Capture the new row as stored, if it exists."""
        return self._write(
            op,
            image_sql(self.key, "x"),
            before,
            image_sql(self.columns, "x"),
            f"FROM {self.name} x LEFT JOIN {self.replaced} r ON {self._is_recorded('x')}"
            f" WHERE {self._same('x', 'NEW')}",
        )

    def _capture_null_key(self) -> list[str]:
        """Capture a row whose key is null as it is written: no key finds it again."""
        if not self.catalog.has_null_keys:
            return []
        key, image = image_sql(self.key, "NEW"), image_sql(self.columns, "NEW")
        where = f"WHERE {self._has_null_key('NEW')}"
        return [self._write("insert", key, "NULL", image, where)]

    def _write(self, op: str, key: str, before: str, after: str, where: str) -> str:
        what = op if op.startswith("CASE") else sql.string(op)
        return (
            f'INSERT INTO _slackwater_capture (op, "table", key, before, after)'
            f" SELECT {what}, {sql.string(self.table.name)}, {key}, {before}, {after} {where}"
        )

    # -- keys -------------------------------------------------------------------------------

    def _has_null_key(self, row: str) -> str:
        """A condition: a column of the row's key is null."""
        return " OR ".join(f"{row}.{sql.name(name)} IS NULL" for name in self.table.key)

    def _same(self, one: str, other: str, equal: str = "=") -> str:
        """A condition: two rows have one key."""
        return " AND ".join(
            f"{one}.{column} {equal} {other}.{column} COLLATE {BINARY}"
            for column in map(sql.name, self.table.key)
        )

    def _same_recorded(self, row: str, recorded: str = "r") -> str:
        """A condition: this row has the key of the recorded one."""
        return " AND ".join(
            f"{row}.{sql.name(name)} = {recorded}.{sql.name(KEY_PREFIX + name)} COLLATE {BINARY}"
            for name in self.table.key
        )

    def _is_recorded(self, row: str, recorded: str = "r") -> str:
        """The same, to look the recorded one up: its columns have no affinity."""
        return self._same_recorded(f"+{row}", recorded)


def _collides(unique: Unique) -> list[str]:
    return [
        f"x.{sql.name(part.name)} = NEW.{sql.name(part.name)} COLLATE {sql.name(part.collation)}"
        for part in unique
    ]


def _collided(unique: Unique, recorded: str) -> list[str]:
    return [
        f"{recorded}.{sql.name(UNIQUE_PREFIX + part.name)} = +NEW.{sql.name(part.name)}"
        f" COLLATE {sql.name(part.collation)}"
        for part in unique
    ]


def _group(op: str, condition: str) -> str:
    return f"INSERT INTO _slackwater_capture (op) SELECT '{op}' WHERE {condition}"
