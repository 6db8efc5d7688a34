"""Whether SQLite can compile what the agent writes, with all that the schema fires by it.

Triggers, CHECKs, indexes, defaults and generated columns may call functions and collations that
only the application's connections have. SQLite itself knows which: EXPLAIN compiles a statement,
and runs nothing.
"""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field

from connectors.agent.found import ConstraintKind
from connectors.sqlite import sql
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.catalog import BINARY
from connectors.sqlite.schema.constraints import constraints_of
from streaming.core.model.table import Table

_MISSING = (
    ("function", re.compile(r"no such function: (.+)")),
    ("function", re.compile(r"unknown function: (.+)\(\)")),  # of an index, a CHECK, a default
    ("collation", re.compile(r"no such collation sequence: (.+)")),
)
_LIMIT = re.compile(r"too many|too large|too big|stack overflow|variable number must be")
_TRIES_MAX = 100


@dataclass(frozen=True, slots=True)
class CompileFaults:
    """Why rows of a table cannot be written.

    `unknown`: functions and collations that the connection lacks. `limits`: limits of this SQLite
    that a row exceeds. `others`: for which no connection could write a row, such as a table that is
    missing.
    """

    unknown: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(slots=True)
class _Stand:
    """Stands in for what is missing, so that the next one is found; taken away at the end."""

    connection: sqlite3.Connection
    known: list[tuple[str, str]] = field(default_factory=list)

    def add(self, kind: str, name: str) -> None:
        if kind == "function":
            self.connection.create_function(name, -1, lambda *_: None, deterministic=True)
        else:
            self.connection.create_collation(name, lambda *_: 0)
        self.known.append((kind, name))

    def remove(self) -> None:
        for kind, name in self.known:
            if kind == "function":  # create_function with None leaves one that fails
                self.connection.create_window_function(name, -1, None)
            else:
                self.connection.create_collation(name, None)


def compile_faults(connection: sqlite3.Connection, table: Table, *more: str) -> CompileFaults:
    """What is in the way of writing rows of a table; nothing is written.

    `more`: other statements that must compile. A trigger that names tables of the agent's, before
    these are there, is not in the way.
    """
    stand, others = _Stand(connection), dict[str, None]()
    try:
        for statement, count in (
            *_statements(table),
            *((one, 0) for one in (*more, *_conditions(connection, table))),
        ):
            for _ in range(_TRIES_MAX):
                error = _error(connection, statement, count)
                missing = _missing(error or "")
                if missing is None or missing in stand.known:
                    if error is not None and PREFIX not in error:
                        others[error] = None
                    break
                stand.add(*missing)
    finally:
        stand.remove()
    limits = [error for error in others if is_limit(error)]
    return CompileFaults(
        tuple(
            _text(connection, kind, name)
            for wanted in ("function", "collation")
            for kind, name in stand.known
            if kind == wanted
        ),
        tuple(_limit_text(table, error) for error in limits),
        tuple(error for error in others if error not in limits),
    )


def is_limit(error: str) -> bool:
    """Return whether a statement is larger than this SQLite was built, or set, to compile."""
    return bool(_LIMIT.search(error))


def _missing(error: str) -> tuple[str, str] | None:
    """The kind and name of what SQLite does not know; None: the error is another."""
    found = ((kind, pattern.fullmatch(error)) for kind, pattern in _MISSING)
    return next(((kind, match[1]) for kind, match in found if match), None)


def _statements(table: Table) -> Iterator[tuple[str, int]]:
    """What the agent writes rows with, as rows.py does; with the number of parameters."""
    name, rest = sql.name(table.name), [name for name in table.columns if name not in table.key]
    places = {column: f"?{place}" for place, column in enumerate((*rest, *table.key), 1)}
    where = " AND ".join(f"{sql.name(key)} = {places[key]} COLLATE {BINARY}" for key in table.key)
    sets = ", ".join(f"{sql.name(one)} = {places[one]}" for one in rest or table.key)
    listed = ", ".join(map(sql.name, places))
    yield f"INSERT INTO {name} ({listed}) VALUES ({', '.join(places.values())})", len(places)  # noqa: S608
    yield f"UPDATE {name} SET {sets} WHERE {where}", len(places)  # noqa: S608 quoted
    keys = " AND ".join(f"{sql.name(key)} = ? COLLATE {BINARY}" for key in table.key)
    yield f"DELETE FROM {name} WHERE {keys}", len(table.key)  # noqa: S608 quoted


def _conditions(connection: sqlite3.Connection, table: Table) -> Iterator[str]:
    """Its CHECKs, which SQLite leaves out of the schema where a file is opened to be read only."""
    for one in constraints_of(connection, table):
        if one.kind is ConstraintKind.CHECK:
            condition = one.text.removeprefix("CHECK ")
            yield f"SELECT 1 FROM {sql.name(table.name)} WHERE {condition}"  # noqa: S608 its own


def _error(connection: sqlite3.Connection, statement: str, count: int) -> str | None:
    """Why a statement with so many parameters cannot be compiled; None: it can."""
    try:
        connection.execute(f"EXPLAIN {statement}", [None] * count).close()
    except (sqlite3.OperationalError, sqlite3.DataError) as error:
        return str(error)
    return None


def _limit_text(table: Table, error: str) -> str:
    return (
        f"its {len(table.columns)} configured columns are more than this SQLite can write with the"
        f" agent's triggers ({error}): replicate fewer of them, or run the agent and your"
        " applications with a SQLite of higher limits"
    )


def _text(connection: sqlite3.Connection, kind: str, name: str) -> str:
    shown = f"{name}()" if kind == "function" else name
    users = ", ".join(_users(connection, name))
    return (
        f"the {kind} {shown} is not known to the agent, only to connections of your application:"
        f" {f'{users} needs it' if users else 'its schema needs it'}, so no row of another replica"
        " could be written; start the agent with --load MODULE:function, a Python function that"
        " gets the connection and registers it"
    )


def _users(connection: sqlite3.Connection, name: str) -> Iterator[str]:
    """The objects of the schema whose text has this name."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    rows = connection.execute(
        "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        " AND substr(name, 1, ?) <> ? ORDER BY type, name",
        (len(PREFIX), PREFIX),
    ).fetchall()
    for kind, of, text in rows:
        if word.search(text.partition(of)[2]):
            yield f"{kind} {of}"
