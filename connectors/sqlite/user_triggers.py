"""The user's triggers that would change a replicated row again when it is applied.

What such a trigger wrote at the origin was captured there and is replicated. Fired again here,
where it is not captured, it would make the replicas differ (for example one that sets a row's
timestamp). Triggers that write other tables, such as a search index or an audit, are ignored.
"""

import re
import sqlite3
from collections.abc import Iterable

from streaming.core.model.table import Table

GUARD = "WHEN (SELECT applying FROM _slackwater_origin) = 0"
"""With this condition a trigger does not fire while the agent applies."""


def complaints(connection: sqlite3.Connection, tables: Iterable[Table]) -> list[str]:
    """The triggers that would write a replicated table again, each with what to do."""
    names = {table.name.lower() for table in tables}
    triggers = connection.execute(
        "SELECT name, tbl_name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
    ).fetchall()
    found = list[str]()
    for name, on, text in triggers:
        if on.lower() not in names or "_slackwater_origin" in text:
            continue
        written = sorted(table for table in names if _writes(text, table))
        if written:
            found.append(
                f"trigger {name} on table {on} writes the replicated table {written[0]} and would"
                f" do so again for rows that the agent applies: give it {GUARD}"
            )
    return found


def _writes(trigger: str, table: str) -> bool:
    """Return whether a statement of the trigger's body writes this table."""
    body = re.split(r"\bbegin\b", trigger, maxsplit=1, flags=re.IGNORECASE)[-1]
    name = re.escape(table)
    named = rf"""(?:"{name}"|\[{name}\]|`{name}`|'{name}'|{name}(?![\w$]))"""
    verb = r"\b(?:into|delete\s+from|update(?:\s+or\s+\w+)?)\s+"
    return re.search(verb + named, body, re.IGNORECASE) is not None
