"""Pieces of SQL text that run in every SQLite client: names, strings, clocks."""

NOW_S = "CAST(strftime('%s', 'now') AS INTEGER)"
"""Seconds since 1970; the same throughout one statement."""

NOW_MS = "CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
"""Milliseconds since 1970; the same throughout one statement."""


def name(text: str) -> str:
    """An identifier in quotes."""
    return '"' + text.replace('"', '""') + '"'


def string(text: str) -> str:
    """A string in quotes."""
    return "'" + text.replace("'", "''") + "'"


def any_row(table: str) -> str:
    """A query that returns a row if the table has one."""
    return f"SELECT 1 FROM {name(table)} LIMIT 1"  # noqa: S608 the name is quoted
