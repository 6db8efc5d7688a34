"""Facts as JSON text, the same on the command line and over HTTP."""

import json
from datetime import datetime
from enum import Enum
from pathlib import Path


def document_text(value: object, indent: int | None = None) -> str:
    """One JSON document; times are ISO 8601 in UTC."""
    return json.dumps(value, indent=indent, ensure_ascii=False, default=_json_value)


def _json_value(value: object) -> object:
    match value:
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case Path() | Enum():
            return str(value)
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")
