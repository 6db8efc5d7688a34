"""Foreign keys that lead to replicated tables, and what the agent does not run of them.

The agent applies with foreign keys off: the origin checked them, and a parent may arrive later. So
no ON DELETE and no ON UPDATE runs for what it applies. What such an action wrote at the origin is
replicated, if its table is; where its table is not, nobody does it here.
"""

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from connectors.sqlite import sql
from connectors.sqlite.schema.catalog import user_tables
from streaming.core.model.table import Table

BROKEN_MAX = 20
"""How many rows without their parent are listed of a table."""
_ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")


@dataclass(frozen=True, slots=True)
class Reference:
    """A foreign key of a table; `there` is empty where it names no columns: the primary key."""

    table: str
    columns: tuple[str, ...]
    parent: str
    there: tuple[str, ...]
    on_delete: str
    on_update: str

    @property
    def text(self) -> str:
        """As SQL has it."""
        there = f" ({', '.join(self.there)})" if self.there else ""
        return f"FOREIGN KEY ({', '.join(self.columns)}) REFERENCES {self.parent}{there}"

    @property
    def actions(self) -> tuple[tuple[str, str], ...]:
        """What it does by itself to rows of its table, each with the event of the parent's row."""
        on = (("DELETE", self.on_delete), ("UPDATE", self.on_update))
        return tuple((event, action) for event, action in on if action in _ACTIONS)


def references(connection: sqlite3.Connection) -> list[Reference]:
    """Every foreign key of the database, by table."""
    return [one for name in user_tables(connection) for one in references_of(connection, name)]


def references_of(connection: sqlite3.Connection, table: str) -> Iterator[Reference]:
    """The foreign keys of a table; the one that is declared last is the first."""
    rows = connection.execute(f"PRAGMA foreign_key_list({sql.name(table)})").fetchall()
    for number in sorted({row[0] for row in rows}):
        parts = sorted((row for row in rows if row[0] == number), key=lambda row: int(row[1]))
        _, _, parent, _, _, on_update, on_delete, _ = parts[0]
        there = tuple(str(row[4]) for row in parts if row[4] is not None)
        columns = tuple(str(row[3]) for row in parts)
        yield Reference(table, columns, str(parent), there, str(on_delete), str(on_update))


def acting_parents(connection: sqlite3.Connection, tables: Iterable[Table]) -> set[str]:
    """The replicated tables, in lower case, whose writes may write others by foreign keys.

    Also by way of tables that are not replicated.
    """
    replicated = {table.name.lower() for table in tables}
    acting = set[str]()
    actions = [
        (one.parent.lower(), one.table.lower()) for one in references(connection) if one.actions
    ]
    while more := {parent for parent, child in actions if child in replicated | acting} - acting:
        acting |= more
    return acting & replicated


def action_warnings(connection: sqlite3.Connection, tables: Iterable[Table]) -> list[str]:
    """Each foreign key to a replicated table whose rule does not hold for applied rows.

    One without an action, of a replicated table, is as any other (constraints.py).
    """
    replicated = {table.name.lower() for table in tables}
    found = [one for one in references(connection) if one.parent.lower() in replicated]
    warned = [one for one in found if one.actions or one.table.lower() not in replicated]
    return [_warning(one, replicated) for one in warned]


def _warning(one: Reference, replicated: Collection[str]) -> str:
    about = f"table {one.table}: {one.text}"
    acts = " ".join(f"ON {event} {action}" for event, action in one.actions)
    if one.table.lower() in replicated:
        return (
            f"{about} {acts}: the agent does not run it, because it ran where the"
            f" parent was written, and is replicated from there; a row that another replica gave"
            f" the parent meanwhile stays, and refers to nothing (`slackwater agent check --rows`)"
        )
    if not one.actions:
        return (
            f"{about}: this table is not configured, and the agent does not check it when it"
            f" applies: rows of it refer to nothing once another replica deletes their parent"
        )
    return (
        f"{about} {acts}: this table is not configured, and the agent does not run"
        f" it when it applies: {_consequence(one)}; configure the table, or give {one.parent} a"
        f" trigger, which does fire then: {_triggers(one)}"
    )


def _consequence(one: Reference) -> str:
    kinds = {"DELETE": "deletes the row that they refer to", "UPDATE": "gives it another key"}
    does = " or ".join(kinds[event] for event, _ in one.actions)
    return f"its rows stay as they are when another replica {does}"


def _triggers(one: Reference) -> str:
    """The triggers that do what the actions would."""
    return " and ".join(_trigger(one, event, action) for event, action in one.actions)


def _trigger(one: Reference, event: str, action: str) -> str:
    there = [sql.name(name) for name in one.there] or ["<its key>"] * len(one.columns)
    columns = [sql.name(name) for name in one.columns]
    pairs = list(zip(columns, there, strict=True))
    where = " AND ".join(f"{column} = OLD.{parent}" for column, parent in pairs)
    values = {
        "CASCADE": [f"{column} = NEW.{parent}" for column, parent in pairs],
        "SET NULL": [f"{column} = NULL" for column in columns],
        "SET DEFAULT": [f"{column} = <its default>" for column in columns],
    }
    does = f"UPDATE {sql.name(one.table)} SET {', '.join(values[action])}"  # noqa: S608 it is shown
    if (event, action) == ("DELETE", "CASCADE"):
        does = f"DELETE FROM {sql.name(one.table)}"  # noqa: S608 it is shown
    return f"AFTER {event} ON {sql.name(one.parent)} BEGIN {does} WHERE {where}; END"


def broken_references(connection: sqlite3.Connection, tables: Sequence[Table]) -> list[str]:
    """The first rows that refer to a parent which is not there, and how many there are."""
    replicated = {table.name.lower() for table in tables}
    concerned = dict.fromkeys(
        one.table
        for one in references(connection)
        if {one.table.lower(), one.parent.lower()} & replicated
    )
    return [text for name in concerned for text in _broken(connection, name)]


def _broken(connection: sqlite3.Connection, table: str) -> Iterator[str]:
    by_number = dict(enumerate(references_of(connection, table)))
    try:
        rows = connection.execute(f"PRAGMA foreign_key_check({sql.name(table)})")
        listed = list(islice(rows, BROKEN_MAX))
        more = sum(1 for _ in rows)
    except sqlite3.Error as error:
        yield f"table {table}: its foreign keys cannot be checked: {error}"
        return
    for _, rowid, parent, number in listed:
        one = by_number.get(number)
        columns = one.columns if one else ()
        yield f"table {table}{_row(connection, table, rowid, columns)} refers to no row of {parent}"
    if more:
        yield f"table {table}: and {more} more rows"


def _row(
    connection: sqlite3.Connection, table: str, rowid: int | None, columns: Sequence[str]
) -> str:
    """Which row it is: by its rowid, with what it refers by."""
    if rowid is None:
        return ": a row (the table has no rowid)"
    named = ", ".join(map(sql.name, columns))
    values = connection.execute(
        f"SELECT {named or 'NULL'} FROM {sql.name(table)} WHERE rowid = ?",  # noqa: S608 quoted
        (rowid,),
    ).fetchone()
    refers = ", ".join(f"{c} = {v!r}" for c, v in zip(columns, values or (), strict=False))
    return f" row {rowid} ({refers})"
