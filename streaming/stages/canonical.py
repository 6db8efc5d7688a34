"""Validate keys and images: whether they are canonical JSON objects of their table's columns.

RE2 matches a whole column in linear
time and without Python's lock. It has neither lookbehind nor lookahead, so an object that may lack
members is matched as text with a comma after each member.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.stages.checked import Bools, bools

_MONTH_DAY = (
    r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_YEAR = r"(?:\d{3}[1-9]|\d\d[1-9]0|\d[1-9]00|[1-9]000)"
_BY_FOUR = r"(?:0[48]|[2468][048]|[13579][26])"
_LEAP_YEAR = rf"(?:\d\d{_BY_FOUR}|{_BY_FOUR}00)"
DECIMAL = r'"(?:-?(?:(?:0|[1-9]\d*)(?:\.\d+)?|Infinity)|NaN)"'
BYTES = r'"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?"'
TIMESTAMP = (
    rf'"(?:(?:{_YEAR}-{_MONTH_DAY}|{_LEAP_YEAR}-02-29)'
    r'T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z|-?infinity)"'
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
    ColumnType.TEXT: rf'"{_PLAIN}*(?:{_ESCAPE}{_PLAIN}*)*"',
    ColumnType.BYTES: BYTES,
    ColumnType.TIMESTAMP: TIMESTAMP,
}
"""Each matches canonical values of the type only, but not all: core checks numbers near limits and
years before 1 and after 9999."""

FEW = 300
"""Up to so many texts Python's `re` is faster: RE2 compiles its pattern at each call."""


@dataclass(frozen=True, slots=True)
class ImageForm:
    """The patterns of key and images of a table's changes.

    `whole`: an after-image with every column. `partial`, `before`: images that may lack some, in
    the form of `_with_commas`. `values`: of each key column, the patterns that find its value in
    the key and in the after-image.
    """

    key: str
    whole: str
    partial: str
    before: str
    values: tuple[tuple[str, str], ...]

    def fits(self, parts: pa.RecordBatch) -> tuple[Bools, Bools]:
        """Return (which changes are canonical and have one key, which after-images lack columns).

        `parts`: binary columns key, before and after; an image is null where there is none.
        """
        key, before, after = (parts[name] for name in ("key", "before", "after"))
        good, whole = matches(key, self.key), matches(after, self.whole)
        partial = np.zeros(len(whole), dtype=np.bool_)
        if not whole.all():
            partial = ~whole & matches(_with_commas(after), self.partial)
        if before.null_count < len(before):
            good &= matches(_with_commas(before), self.before)
        for in_key, in_after in self.values:
            same = pc.equal(_found(key, in_key), _found(after, in_after))
            good &= bools(pc.is_null(after)) | bools(same)
        return good & (whole | partial), partial


def form_of(table: Table) -> ImageForm:
    """Return the patterns of a table's changes."""
    kinds = {name: CANONICAL[kind] for name, kind in table.columns.items()}
    key = {name: kinds[name] for name in table.key}
    after = {name: f"(?:{kind}|null)" for name, kind in kinds.items()} | key
    return ImageForm(
        rf"\A\{{{','.join(_members(key))}\}}\z",
        rf"\A\{{{','.join(_members(after))}\}}\z",
        _lacking(after, needed=key),
        _lacking(after, needed=()),
        tuple(
            (_value(name, kind, [*key]), _value(name, kind, [*kinds])) for name, kind in key.items()
        ),
    )


def matches(texts: pa.Array, pattern: str) -> Bools:
    """Mark the texts that match the pattern, and the nulls."""
    if len(texts) > FEW:
        return bools(pc.fill_null(pc.match_substring_regex(texts, pattern), True))  # noqa: FBT003
    search = _compiled(pattern)
    found = [text is None or search(text) is not None for text in texts.to_pylist()]
    return np.array(found, dtype=np.bool_)


def _found(texts: pa.Array, pattern: str) -> pa.Array:
    """Return the pattern's group `value` of each text; null if the pattern does not match."""
    if len(texts) > FEW:
        return pc.struct_field(pc.extract_regex(texts, pattern), "value")
    search = _compiled(pattern)
    hits = [search(text) if text is not None else None for text in texts.to_pylist()]
    return pa.array([hit and hit["value"] for hit in hits], pa.binary())


@lru_cache(maxsize=10_000)
def _compiled(pattern: str) -> Callable[[bytes], re.Match[bytes] | None]:
    return re.compile(pattern.replace(r"\z", r"\Z").encode()).search


def _with_commas(images: pa.Array) -> pa.Array:
    """Add a comma after the last member of each object: {"a":1,}; {,} if it has no member.

    A text that does not end in a brace is no object and is left unchanged.
    """
    commas = pc.binary_join_element_wise(pc.binary_slice(images, 0, -1), b",}", b"")
    return pc.if_else(pc.ends_with(images, b"}"), commas, images)


def _lacking(members: Mapping[str, str], *, needed: Collection[str]) -> str:
    texts = (
        f"{text}," if name in needed else f"(?:{text},)?"
        for name, text in zip(members, _members(members), strict=True)
    )
    nothing = "" if needed else ",|"
    return rf"\A\{{(?:{nothing}{''.join(texts)})\}}\z"


def _members(kinds: Mapping[str, str]) -> list[str]:
    return [f"{re.escape(json_text(name))}:{kind}" for name, kind in kinds.items()]


def _value(name: str, kind: str, columns: list[str]) -> str:
    """Return the pattern that finds the value of one of an object's columns.

    Quotes inside strings are escaped, so a quoted name after a comma is always a member.
    """
    start = r"\A\{" if name == columns[0] else "[{,]"
    return rf"{start}{re.escape(json_text(name))}:(?P<value>{kind})[,}}]"
