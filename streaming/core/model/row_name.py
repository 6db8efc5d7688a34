"""The name of a row: one text for its table and key, because the stages make it in columns."""

from streaming.core.model.change import RowKey

SEPARATOR = "\x1f"


def text_of(row: RowKey) -> str:
    """The name of a row."""
    return f"{row[0]}{SEPARATOR}{row[1]}"


def key_of(text: str) -> RowKey:
    """Return the key of the row with this name."""
    table, key = text.split(SEPARATOR, 1)
    return table, key
