"""The agent's own tables, of which none may be missing in a database that is a replica.

An empty one in its place would hide that the changes, or the position, that it held are gone.
"""

import sqlite3
from collections.abc import Sequence

from connectors.sqlite.install.system import PREFIX

NEEDED_TABLES = (
    "_slackwater_origin",
    "_slackwater_position",
    "_slackwater_journal",
    "_slackwater_scales",
)
"""Those that hold changes and the position: nobody else has them."""


def lost_tables(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Those of them that are not there; empty if the database is no replica."""
    rows = connection.execute(
        "SELECT name FROM sqlite_schema WHERE substr(name, 1, ?) = ?", (len(PREFIX), PREFIX)
    )
    there = {str(name) for (name,) in rows}
    return tuple(name for name in NEEDED_TABLES if name not in there) if there else ()


def lost_tables_text(names: Sequence[str]) -> str:
    """What an agent says of a database that lacks these of its tables, and what to do."""
    what = "table" if len(names) == 1 else "tables"
    was = "was" if len(names) == 1 else "were"
    return (
        f"the agent's own {what} {', '.join(names)} {was} dropped: what the agent had not published"
        " yet may be lost, and statements of your applications that write replicated tables may"
        " fail. Stop the applications, keep saved rows with `slackwater agent saved --database FILE"
        " --export ROWS --forget`, make the file an ordinary database with `slackwater agent"
        " uninstall --database FILE --discard-unpublished`, run `slackwater reinit REPLICA"
        " --database FILE`, which saves the rows that the hub does not have and empties the tables,"
        " then start the agent, which fills them from the hub"
    )
