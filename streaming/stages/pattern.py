"""Pattern: one regular expression over all tables tells whether a change is canonical as it came.

Canonical text is what `json.dumps` writes without blanks and without needless escapes, columns in
the order of the table. Nearly all input comes like that. What does not match may still be good:
stages/tokens.py looks closer.
"""

import json
import re
from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.change import FIELD_SEPARATOR
from streaming.core.table import ColumnType, Table

_MONTH_DAY = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_LEAP_YEAR = r"(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DECIMAL = r'"-?(?:0|[1-9]\d*+)(?:\.\d++)?"'
BYTES = r'"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"'
TIMESTAMP = (
    rf'"(?!0000)(?:\d{{4}}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)'
    r'T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z"'
)
NOT_NUMBERS = '"NaN"|"-?Infinity"'

CANONICAL: dict[ColumnType, str] = {
    ColumnType.BOOL: r"(?:true|false)",
    ColumnType.INT32: r"(?:0|-?[1-9]\d{0,8}|-?1\d{9}|-?20\d{8})",
    ColumnType.INT64: r'"(?:0|-?[1-9]\d{0,17}|-?[1-8]\d{18})"',
    ColumnType.FLOAT64: (
        rf"(?:-?(?:0|[1-9]\d{{0,30}})(?:\.\d{{1,40}})?(?:[eE][+-]?\d\d?)?|{NOT_NUMBERS})"
    ),
    ColumnType.DECIMAL: DECIMAL,
    ColumnType.TEXT: rf'"[^"\\{FIELD_SEPARATOR}]*+(?:\\["\\bfnrt][^"\\{FIELD_SEPARATOR}]*+)*+"',
    ColumnType.BYTES: BYTES,
    ColumnType.TIMESTAMP: TIMESTAMP,
}
"""What surely is a canonical value of the type; numbers near its limits are left to `_fits`."""

_PATTERN_CHARS = 20_000
"""A longer pattern is cut; a table that needs more than this is taken apart into tokens."""


def is_canonical(tables: Mapping[str, Table], *fields: Column) -> Column:
    """Claim that (table, key, after, before) fit their table as they stand, no column missing.

    Null images fit. The key columns of `after` are those of `key`.
    """
    parts = [F.coalesce(text, F.lit("")) for text in fields]
    subject = F.concat_ws(FIELD_SEPARATOR, *parts)
    claim = F.lit(False)  # noqa: FBT003
    for pattern in _patterns(tables):
        claim = claim | subject.rlike(pattern)
    return claim


def _patterns(tables: Mapping[str, Table]) -> list[str]:
    """Alternatives of all tables, packed into few regular expressions."""
    packs: list[list[str]] = []
    room = 0
    for number, table in enumerate(tables.values()):
        pattern = _pattern(number, table)
        if len(pattern) > _PATTERN_CHARS:
            continue
        if room < len(pattern):
            packs.append([])
            room = _PATTERN_CHARS
        packs[-1].append(pattern)
        room -= len(pattern) + 1
    return [rf"\A(?:{'|'.join(pack)})\z" for pack in packs]


def _pattern(number: int, table: Table) -> str:
    groups = {name: f"k{number}x{place}" for place, name in enumerate(table.key)}
    kinds = {name: CANONICAL[kind] for name, kind in table.columns.items()}
    nullable = {name: f"(?:{kind}|null)" for name, kind in kinds.items()}
    key = _object({name: f"(?<{group}>{kinds[name]})" for name, group in groups.items()})
    after = _object({**nullable, **{name: rf"\k<{group}>" for name, group in groups.items()}})
    before = _object({**nullable, **{name: kinds[name] for name in groups}})
    return FIELD_SEPARATOR.join([re.escape(table.name), key, f"(?:{after})?", f"(?:{before})?"])


def _object(members: Mapping[str, str]) -> str:
    texts = [f"{re.escape(json_text(name))}:{value}" for name, value in members.items()]
    return rf"\{{{','.join(texts)}\}}"


def json_text(value: str) -> str:
    """A column's name as canonical JSON."""
    return json.dumps(value, ensure_ascii=False)
