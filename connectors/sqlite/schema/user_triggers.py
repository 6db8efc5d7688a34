"""The user's triggers: they fire for what the agent applies, too.

What such a trigger wrote at the origin was captured there and is replicated. Fired again here,
where it is not captured, it would make the replicas differ (for example one that sets a row's
timestamp): it is a complaint, also where it gets there by the trigger of another table or view.
Triggers that write other tables, such as a search index or an audit, are ignored.

One that fires before a row is written or deleted and writes that row is a matter of its own, guard
or not: SQLite leaves undefined what becomes of the row.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from connectors.sqlite import sql
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.create_table import EVENTS
from streaming.core.model.table import Table

GUARD = "WHEN (SELECT applying FROM _slackwater_origin) = 0"
"""With this condition a trigger does not fire while the agent applies."""


@dataclass(frozen=True, slots=True)
class UserTrigger:
    """A trigger on a table or view, and what it does; names of tables are in lower case.

    `is_before`: it fires before the row is written, as one does that says nothing of it. `ignores`:
    it may let a statement pass without its effect, by RAISE(IGNORE).
    """

    name: str
    on: str
    event: str
    is_before: bool
    writes: frozenset[str]
    ignores: bool
    is_guarded: bool


def user_triggers(connection: sqlite3.Connection) -> list[UserTrigger]:
    """Every trigger of the database that is not the agent's own, by name."""
    rows = connection.execute(
        "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger'"
        " AND substr(name, 1, ?) <> ? ORDER BY name",
        (len(PREFIX), PREFIX),
    )
    return [_parsed(name, on, text) for name, on, text in rows.fetchall()]


def _parsed(name: str, on: str, text: str) -> UserTrigger:
    words = sql.words(text)
    body = words.index("begin") if "begin" in words else 0
    event = next(place for place, word in enumerate(words) if place > 2 and word in EVENTS)
    return UserTrigger(
        name,
        on.lower(),
        words[event],
        {"after", "instead"}.isdisjoint(words[3:event]),
        frozenset(_written(words[body:])),
        ("ignore", ")") in pairwise(words[body:]),
        "_slackwater_origin" in words,
    )


def _written(body: Sequence[str]) -> Iterator[str]:
    """The tables and views that the statements of a trigger's body write."""
    for place, (before, word) in enumerate(pairwise(body)):
        after = body[place + 2 : place + 3]
        if before == "into" or (before == "delete" and word == "from"):
            yield word if before == "into" else after[0]
        elif before == "update" and word not in ("of", "set"):
            yield body[place + 3] if word == "or" else word


def complaints(connection: sqlite3.Connection, tables: Iterable[Table]) -> list[str]:
    """The triggers that would write a replicated table again, each with what to do."""
    names = {table.name.lower() for table in tables}
    unguarded = [one for one in user_triggers(connection) if not one.is_guarded]
    found = list[str]()
    for trigger in unguarded:
        path = _path(trigger, unguarded, names) if trigger.on in names else ()
        if path:
            written = min(path[-1].writes & names)
            found.append(
                f"trigger {trigger.name} on table {trigger.on} writes the replicated table"
                f" {written}{_by(path)} and would do so again for rows that the agent applies: give"
                f" it {GUARD}"
            )
    return found


def undefined_writes(connection: sqlite3.Connection, tables: Iterable[Table]) -> list[str]:
    """The triggers that may write the very row that is to be updated or deleted, as warnings.

    Which rows a trigger writes its text does not tell, so it is named if it writes its own table,
    also where it gets there by another trigger.
    """
    names, triggers = {table.name.lower() for table in tables}, user_triggers(connection)
    return [
        f"trigger {one.name} on table {one.on} fires before {_EVENT_TEXTS[one.event]}, and writes"
        f" {one.on}{_by(path)}: if it writes that very row, SQLite leaves undefined what becomes of"
        " it, and the journal may tell the others something else, so that they keep a row that is"
        " gone here; make it an AFTER trigger, or let it write other rows only"
        for one in triggers
        if one.on in names and one.is_before and one.event in _EVENT_TEXTS
        if (path := _path(one, triggers, {one.on}))
    ]


_EVENT_TEXTS = {"update": "a row is updated", "delete": "a row is deleted"}


def _by(path: Sequence[UserTrigger]) -> str:
    """By which further triggers the first one gets there."""
    return "".join(f" by trigger {one.name} on {one.on}" for one in path[1:])


def _path(
    trigger: UserTrigger, triggers: Sequence[UserTrigger], names: set[str]
) -> tuple[UserTrigger, ...]:
    """The triggers by which this one comes to write a table of these names; empty: it does not."""
    paths, seen = list[tuple[UserTrigger, ...]]([(trigger,)]), {trigger.name}
    for path in paths:
        if path[-1].writes & names:
            return path
        following = [one for one in triggers if one.on in path[-1].writes and one.name not in seen]
        seen |= {one.name for one in following}
        paths += [(*path, one) for one in following]
    return ()
