"""How many rows a statement is writing at a moment: a trigger may write others before it is done.

The BEFORE trigger of a row opens a write and its AFTER trigger closes one. A row that is left out
behind its BEFORE trigger (OR IGNORE, an upsert) stays open, so the count may be too high, and never
too low. Every statement starts anew: SQLite's clock stands still within one. Two within a
millisecond count as one, which is too high again.
"""

from connectors.sqlite import sql

_SAME = f"statement_ms = {sql.NOW_MS}"

OPEN = f"""UPDATE _slackwater_origin SET
    open_writes = CASE WHEN {_SAME} THEN open_writes + 1 ELSE 1 END,
    statement = CASE WHEN {_SAME} THEN statement ELSE statement + 1 END,
    statement_ms = {sql.NOW_MS}"""  # noqa: S608 constants
CLOSE = "UPDATE _slackwater_origin SET open_writes = open_writes - 1"

THIS = "(SELECT statement FROM _slackwater_origin)"
"""The number of the statement that runs."""
DONE = "(SELECT statement FROM _slackwater_origin WHERE open_writes = 0)"
"""The same if it is writing no other row; else null."""
IS_OPEN = "EXISTS (SELECT 1 FROM _slackwater_origin WHERE open_writes > 0)"
"""A condition: it is writing another row."""
