"""The user's triggers: they fire for what the agent applies, too.

What such a trigger wrote at the origin was captured there and is replicated. Fired again here,
where it is not captured, it would make the replicas differ (for example one that sets a row's
timestamp): it is a complaint, also where it gets there by the trigger of another table or view.
Triggers that write other tables, such as a search index or an audit, are ignored.
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

    `ignores`: it may let a statement pass without its effect, by RAISE(IGNORE).
    """

    name: str
    on: str
    event: str
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
    return UserTrigger(
        name,
        on.lower(),
        next(word for word in words[3:] if word in EVENTS),
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
            by = "".join(f" by trigger {one.name} on {one.on}" for one in path[1:])
            written = min(path[-1].writes & names)
            found.append(
                f"trigger {trigger.name} on table {trigger.on} writes the replicated table"
                f" {written}{by} and would do so again for rows that the agent applies: give it"
                f" {GUARD}"
            )
    return found


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
