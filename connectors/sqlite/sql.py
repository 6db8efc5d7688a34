"""Pieces of SQL text that run in every SQLite client: names, strings, clocks; and tokens."""

import re

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


def literal(value: str) -> str:
    """An SQL expression: a literal of this value, whatever bytes its text has.

    quote() ends text at a character U+0000. A literal has no affinity, which the + sees to.
    """
    text = f"'+CAST(x''' || hex(CAST({value} AS BLOB)) || ''' AS TEXT)'"
    return f"CASE typeof({value}) WHEN 'text' THEN {text} ELSE quote({value}) END"


def any_row(table: str) -> str:
    """A query that returns a row if the table has one."""
    return f"SELECT 1 FROM {name(table)} LIMIT 1"  # noqa: S608 the name is quoted


_TOKEN = re.compile(
    r"""--[^\n]* | /\*.*?(?:\*/|$) | '(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*`"""
    r"""| \[[^\]]*\] | \w+ | \s+ | .""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> list[str]:
    """The tokens of an SQL text, with its blanks and comments."""
    return _TOKEN.findall(text)


def is_blank(token: str) -> bool:
    """Return whether a token means nothing: blanks, or a comment."""
    return token.isspace() or token.startswith(("--", "/*"))


def words(text: str) -> list[str]:
    """The tokens of an SQL text that mean something, words in lower case, names without quotes."""
    return [_word(token) for token in tokens(text) if not is_blank(token)]


def _word(token: str) -> str:
    quote, end = token[0], token[-1]
    if quote in "\"`'" and len(token) > 1:
        return token[1:-1].replace(quote * 2, quote).lower()
    return token[1:-1].lower() if quote == "[" and end == "]" else token.lower()
