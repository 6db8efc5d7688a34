"""Output: tables for people, JSON for programs, errors on stderr."""

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import Enum
from itertools import zip_longest
from pathlib import Path
from unicodedata import combining, east_asian_width

from connectors.log_format import write_failure
from streaming.core.model.errors import ConfigError
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.facts.documents import document_text

_GREEN, _YELLOW, _RED = "32", "33", "31"
"""Codes of ANSI (SGR)."""

_OF_STATUS = {
    str(status): _RED if status.is_stopped else _YELLOW
    for status in (*ReplicaStatus, *AgreementStatus)
    if status not in (ReplicaStatus.RETIRED, AgreementStatus.RETIRED)
} | {str(ReplicaStatus.LIVE): _GREEN, str(AgreementStatus.IN_SYNC): _GREEN}

PIPE_COLUMNS = 10_000
"""The width of a table that is not written to a terminal: its lines are not broken."""
GAP = 2
"""The columns between two cells of a table, and between a name and its value."""
TABLE_GAP = 3
"""Between two cells of a table that has room for that."""


def write_json(value: object) -> None:
    """One JSON document."""
    sys.stdout.write(document_text(value, indent=2) + "\n")


def write_line(text: str = "") -> None:
    """One line, unchanged."""
    sys.stdout.write(text + "\n")


def write_sentence(text: str) -> None:
    """A sentence, broken between words on a terminal that is too narrow for it."""
    for line in _lines(text, terminal_columns()):
        write_line(line)


def write_error(text: str) -> None:
    """What went wrong, a line for each mistake; an object in the log of a hub that writes those."""
    write_failure("slackwater", text)


def write_file(path: Path, text: str) -> None:
    """A file in UTF-8; ConfigError if it cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error


def write_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table; columns of numbers are right-aligned.

    Where it is too wide each row takes several lines, and so does the head. Where a single cell is
    too wide each row becomes a record of its own, so that no cell is broken.
    """
    cells = [list(row) for row in rows]
    widths, room = _widths(columns, cells), terminal_columns()
    if sum(widths) + GAP * (len(widths) - 1) <= room:
        _write_table(columns, cells, widths, room)
    elif max(widths) + GAP <= room and not _has_breaks(cells):
        _write_packed(columns, cells, widths, room)
    else:
        _write_stacked(columns, cells)


def terminal_columns() -> int:
    """The width of the terminal, or the one that COLUMNS gives; else `PIPE_COLUMNS` of a pipe."""
    is_known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()
    return shutil.get_terminal_size().columns if is_known else PIPE_COLUMNS


def _widths(columns: Sequence[str], cells: Sequence[Sequence[object]]) -> list[int]:
    widths = [_width(column) for column in columns]
    for row in cells:
        widths = [
            max(width, *(_width(line) for line in as_text(cell).splitlines() or [""]))
            for width, cell in zip(widths, row, strict=True)
        ]
    return widths


def _coloured(text: str) -> str:
    """A status in its colour, where the output is a terminal and NO_COLOR is not set.

    What follows the status, such as its detail, has the colour too; any other text has none.
    """
    status, _, _ = text.strip().replace(":", " ").partition(" ")
    code = _OF_STATUS.get(status)
    if code is None or not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


def _has_breaks(cells: Sequence[Sequence[object]]) -> bool:
    """Return whether a cell has several lines."""
    return any("\n" in as_text(cell) for row in cells for cell in row)


def _write_packed(
    columns: Sequence[str], cells: Sequence[Sequence[object]], widths: Sequence[int], room: int
) -> None:
    """Each row on as few lines as hold it, its columns below each other; later lines indented.

    A later line without a value is left out.
    """
    lines = _lines_of_columns(widths, room)
    for row_number, row in enumerate([columns, *cells]):
        for number, places in enumerate(lines):
            if number and all(row[place] in _NO for place in places):
                continue
            texts = (
                _filled(as_text(row[place]), widths[place], is_number=False) for place in places
            )
            line = (" " * GAP).join(_coloured(text) for text in texts)
            write_line(f"{' ' * GAP * bool(number)}{line}".rstrip())
        if row_number == 0:
            write_line("─" * room)


def _lines_of_columns(widths: Sequence[int], room: int) -> list[list[int]]:
    """The places of the columns, line by line, as many on each as it has room for."""
    lines, used = list[list[int]](), room
    for place, width in enumerate(widths):
        if used + GAP + width > room:
            lines.append([])
            used = 0 if len(lines) > 1 else -GAP
        lines[-1].append(place)
        used += GAP + width
    return lines


def _write_stacked(columns: Sequence[str], cells: Iterable[Sequence[object]]) -> None:
    """Each row as names and values; without a value a name says nothing."""
    for number, row in enumerate(cells):
        if number:
            write_line()
        write_pairs(
            (name, cell) for name, cell in zip(columns, row, strict=True) if cell not in _NO
        )


_NO = (None, "")


def _write_table(
    columns: Sequence[str], cells: Sequence[Sequence[object]], widths: Sequence[int], room: int
) -> None:
    """Each row on a line, or on as many as its longest cell has."""
    gaps = max(len(widths) - 1, 1)
    gap = min(TABLE_GAP, (room - sum(widths)) // gaps)
    numeric = [_is_numeric([row[place] for row in cells]) for place in range(len(widths))]
    for number, row in enumerate([columns, *cells]):
        parts = [as_text(value).splitlines() or [""] for value in row]
        for texts in zip_longest(*parts, fillvalue=""):
            line = zip(texts, widths, numeric, strict=True)
            write_line((" " * gap).join(_coloured(_filled(*one)) for one in line).rstrip())
        if number == 0:
            write_line("─" * (sum(widths) + gap * (len(widths) - 1)))


def _is_numeric(values: Sequence[object]) -> bool:
    there = [value for value in values if value is not None]
    return bool(there) and all(isinstance(value, int | float) for value in there)


def _filled(text: str, width: int, is_number: bool) -> str:  # noqa: FBT001 - of a zip
    blanks = " " * (width - _width(text))
    return f"{blanks}{text}" if is_number else f"{text}{blanks}"


def _width(text: str) -> int:
    """How many columns of a terminal a line takes."""
    if text.isascii():
        return len(text)
    wide = sum(east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(bool(combining(letter)) for letter in text)


def write_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Names and values below each other; a value of several lines stays in its column.

    On a terminal a long value is broken between words, and never within one.
    """
    listed = list(pairs)
    width = max((len(name) for name, _ in listed), default=0)
    room = max(terminal_columns() - width - GAP, 1)
    for name, value in listed:
        first, *others = _lines(as_text(value), room) or [""]
        write_line(f"{name:<{width}}  {_coloured(first)}".rstrip())
        for other in others:
            write_line(f"{'':<{width}}  {other}")


def _lines(text: str, columns: int) -> list[str]:
    """The lines of a text, broken between words where they are longer than this.

    A key, an image or a record stays as it is: somebody may copy it.
    """
    return [part for line in text.splitlines() for part in _broken(line, columns)]


def _broken(line: str, columns: int) -> list[str]:
    if len(line) <= columns:
        return [line]
    first, end = line.find("{"), line.rfind("}") + 1
    if 0 <= first < end:
        line = line[:first] + line[first:end].replace(" ", _BLANK) + line[end:]
    parts = textwrap.wrap(line, columns, break_long_words=False, break_on_hyphens=False)
    return [part.replace(_BLANK, " ") for part in parts] or [""]


_BLANK = "\x00"
"""In place of a blank at which no line may be broken."""


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
            text = str(value)
            return text if text.isprintable() else text.translate(_CONTROLS)


_BIDIRECTIONAL = (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""What turns the order of letters: a line would be read as another one."""
_CONTROLS = {
    **{n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) != "\n"},
    **{n: f"\\u{n:04x}" for n in _BIDIRECTIONAL},
}
"""A terminal would obey what somebody wrote into a row."""


def as_time(value: datetime) -> str:
    """A time in UTC, to the second."""
    return value.strftime("%Y-%m-%d %H:%M:%SZ")


def as_counts(counts: dict[str, int]) -> str:
    """Counts by name, on one line."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
