"""Tables of the pages that are made from the code."""

from collections.abc import Iterable, Sequence


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table with these columns; each of its lines ends with a line break."""
    return "".join(map(_line, [columns, ["---"] * len(columns), *rows]))


def code(text: str) -> str:
    """A text as code."""
    return f"`{text}`"


def prose(text: str) -> str:
    """A text in which `<name>` is no markup."""
    return text.replace("<", "&lt;")


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
