"""Output: tables for people, JSON for programs, errors as lines on stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum
from pathlib import Path

from streaming.facts.wording import as_age, as_count

__all__ = [
    "as_age",
    "as_count",
    "as_counts",
    "as_text",
    "as_time",
    "write_error",
    "write_json",
    "write_line",
    "write_pairs",
    "write_table",
]

PIPE_COLUMNS = 10_000
"""The width of a table that is not written to a terminal: its lines are not broken."""


def write_json(value: object) -> None:
    """One JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, default=_json_value) + "\n")


def write_line(text: str = "") -> None:
    """One line, unchanged."""
    sys.stdout.write(text + "\n")


def write_error(text: str) -> None:
    """What went wrong, a line for each mistake."""
    for line in text.splitlines() or [""]:
        sys.stderr.write(f"slackwater: {line}\n")


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; columns of numbers are right-aligned."""
    from rich import box  # noqa: PLC0415  # its import takes time, and JSON does without
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    cells = [list(row) for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for place, column in enumerate(columns):
        values = [row[place] for row in cells if row[place] is not None]
        numbers = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        table.add_row(*(as_text(value) for value in row))
    console = Console(
        width=None if sys.stdout.isatty() else PIPE_COLUMNS, markup=False, highlight=False
    )
    with console.capture() as page:
        console.print(table)
    for line in page.get().splitlines():
        write_line(line.rstrip())


def write_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values below each other; a value of several lines stays in its column."""
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        first, *others = as_text(value).splitlines() or [""]
        write_line(f"{name:<{width}}  {first}".rstrip())
        for other in others:
            write_line(f"{'':<{width}}  {other}")


def as_text(value: object) -> str:
    """A value for people; None is `-`."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return as_time(value)
        case Enum():
            return str(value.value)
        case _:
            return str(value)


def as_time(value: datetime) -> str:
    """A time in UTC, to the second."""
    return value.strftime("%Y-%m-%d %H:%M:%SZ")


def as_counts(counts: dict[str, int]) -> str:
    """Counts by name, on one line."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"


def _json_value(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case Path() | Enum():
            return str(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")
