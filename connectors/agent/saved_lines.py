"""A file of saved rows: each a line of JSON with its table, its key and its values."""

import json
import os
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from streaming.core.model.foreign_json import as_written, loads


def line(table: str, key: str, row: Mapping[str, object], **more: str) -> str:
    """A saved row; `key`: as the wire has it. `row`: column -> value, as JSON has it."""
    saved = {"table": table, "key": loads(key, as_written), "row": row, **more}
    return json.dumps(saved, ensure_ascii=False) + "\n"


def write(lines: Iterable[str], path: Path) -> int:
    """Write the lines and wait until they are on the disk; how many there are.

    There is no file without a line, or if it cannot be written whole.
    """
    rest = iter(lines)
    first = next(rest, None)
    if first is None:
        return 0
    with path.open("x", encoding="utf-8") as file:
        try:
            count = sum(bool(file.write(one)) for one in chain([first], rest))
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            path.unlink()
            raise
    return count
