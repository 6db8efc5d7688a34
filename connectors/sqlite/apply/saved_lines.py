"""Saved rows in a file: a line of JSON each, with the values as SQLite held them.

Integers, floats, text and null are JSON's own. Bytes are {"blob": base64}, text that is no valid
Unicode is {"text_bytes": base64}, and an infinite float is {"real": "inf"}.
"""

import base64
import json
import math
import os
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path

from connectors.sqlite.values.spellings import Stored
from connectors.sqlite.values.text import stored_bytes
from streaming.core.model.foreign_json import as_written, loads
from streaming.core.model.values import is_utf8


def line(table: str, key: str, row: Mapping[str, Stored], **more: str) -> str:
    """A saved row; `key`: as the wire has it."""
    values = {name: stored_json(value) for name, value in row.items()}
    saved = {"table": table, "key": loads(key, as_written), "row": values, **more}
    return json.dumps(saved, ensure_ascii=False) + "\n"


def stored_json(value: Stored) -> object:
    """A value as it stands in such a line."""
    match value:
        case bytes():
            return {"blob": base64.b64encode(value).decode()}
        case str() if not is_utf8(value):
            return {"text_bytes": base64.b64encode(stored_bytes(value)).decode()}
        case float() if math.isinf(value):
            return {"real": str(value)}
        case _:
            return value


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
