"""Pattern: one regular expression over all tables tells whether a change is canonical as it came.

Canonical text is what `json.dumps` writes without blanks and without needless escapes, columns in
the order of the table. Nearly all input comes like that. What does not match may still be good:
stages/tokens.py looks closer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.model.change import FIELD_SEPARATOR
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text

_MONTH_DAY = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_YEAR = r"(?:\d{3}[1-9]|\d\d[1-9]0|\d[1-9]00|[1-9]000)"
_BY_FOUR = r"(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"(?:\d\d{_BY_FOUR}|{_BY_FOUR}00)"
DECIMAL = r'"-?(?:0|[1-9]\d*+)(?:\.\d++)?"'
BYTES = r'"(?:[A-Za-z0-9+/]{4})*+(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"'
TIMESTAMP = (
    rf'"(?:{_YEAR}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)'
    r'T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z"'
)
_PLAIN = r'[^"\\\x00-\x1f]'
_ESCAPE = r'\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))'
NOT_NUMBERS = '"NaN"|"-?Infinity"'

CANONICAL: dict[ColumnType, str] = {
    ColumnType.BOOL: r"(?:true|false)",
    ColumnType.INT32: r"(?:0|-?[1-9]\d{0,8}|-?1\d{9}|-?20\d{8})",
    ColumnType.INT64: r'"(?:0|-?[1-9]\d{0,17}|-?[1-8]\d{18})"',
    ColumnType.FLOAT64: (
        rf"(?:-?(?:0|[1-9]\d{{0,30}})(?:\.\d{{1,40}})?(?:[eE][+-]?\d\d?)?|{NOT_NUMBERS})"
    ),
    ColumnType.DECIMAL: DECIMAL,
    ColumnType.TEXT: rf'"{_PLAIN}*+(?:{_ESCAPE}{_PLAIN}*+)*+"',
    ColumnType.BYTES: BYTES,
    ColumnType.TIMESTAMP: TIMESTAMP,
}
"""What surely is a canonical value of the type; numbers near its limits are left to `_fits`."""

_PATTERN_CHARS = 20_000
"""A longer pattern is cut; a table that needs more than this is looked at more closely."""

WHOLE = 2
"""The after-image has every column of its table, or there is none."""
PARTIAL = 1
"""The after-image lacks columns."""


def form(tables: Iterable[Table], *fields: Column) -> Column:
    """WHOLE or PARTIAL if (table, key, after, before) are canonical and fit their table.

    Else null: one must look closer. Null images fit. The key of `after` is that of `key`.
    """
    parts = [F.coalesce(text, F.lit("")) for text in fields]
    subject = F.concat_ws(FIELD_SEPARATOR, *parts)
    known = list(tables)
    whole, partial = (_matches(subject, known, lacking) for lacking in ("", "?"))
    return F.when(whole, F.lit(WHOLE)).when(partial, F.lit(PARTIAL))


def _matches(subject: Column, tables: Iterable[Table], lacking: str) -> Column:
    claims = [subject.rlike(pattern) for pattern in _patterns(tables, lacking)]
    return reduce(or_, claims, F.lit(False))  # noqa: FBT003


def _patterns(tables: Iterable[Table], lacking: str) -> Iterator[str]:
    """Few patterns over all tables, each of several alternatives."""
    pack: list[str] = []
    for number, table in enumerate(tables):
        text = _pattern(number, table, lacking)
        if len(text) > _PATTERN_CHARS:
            continue
        if sum(map(len, pack)) + len(text) > _PATTERN_CHARS:
            yield _either(pack)
            pack = []
        pack.append(text)
    if pack:
        yield _either(pack)


def _either(pack: Iterable[str]) -> str:
    return rf"\A(?:{'|'.join(pack)})\z"


def _pattern(number: int, table: Table, lacking: str) -> str:
    """Of table, key, after and before; the key of `after` is that of `key`.

    `number` names the groups of the key, so that the patterns of several tables can be one.
    `lacking`: the quantifier of the columns that `after` may lack.
    """
    groups = {name: f"k{number}x{place}" for place, name in enumerate(table.key)}
    kinds = {name: CANONICAL[kind] for name, kind in table.columns.items()}
    nullable = {name: f"(?:{kind}|null)" for name, kind in kinds.items()}
    named = {name: (f"(?<{group}>{kinds[name]})", "") for name, group in groups.items()}
    same = {name: (rf"\k<{group}>", "") for name, group in groups.items()}
    after = _object({**{name: (value, lacking) for name, value in nullable.items()}, **same})
    old = {**nullable, **{name: kinds[name] for name in table.key}}
    before = _object({name: (value, "?") for name, value in old.items()})
    parts = [re.escape(table.name), _object(named), f"(?:{after})?", f"(?:{before})?"]
    return FIELD_SEPARATOR.join(parts)


def _object(members: Mapping[str, tuple[str, str]]) -> str:
    """Name -> (value, quantifier): an object with these members in their order."""
    texts = [(f"{re.escape(json_text(n))}:{value}", q) for n, (value, q) in members.items()]
    if not any(q for _, q in texts):
        return rf"\{{{','.join(text for text, _ in texts)}\}}"
    there = [rf"(?:(?:(?<=\{{)|(?<!\{{),){text}){q}" for text, q in texts]
    return rf"\{{{''.join(there)}\}}"
