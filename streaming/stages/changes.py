"""Plain changes, told on the driver: half of what Spark takes, and it need not plan them.

The patterns are those of stages/skim.py, and so is the claim: only what is surely good is told;
whatever else there is, is left to the rules.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.change import CONTENT_FIELDS, FIELD_SEPARATOR, NULL_TEXT, content_of
from streaming.core.record import Kind
from streaming.core.table import Table
from streaming.stages.facts import FACTS, texts
from streaming.stages.plain import Limits, are_of_record
from streaming.stages.skim import HEAD, TAIL, UNSETTLED, is_simple, pattern
from streaming.stages.validate import Known, known_tables, tables_of

_Match = Callable[[str], "re.Match[str] | None"]
_Ways = Mapping[str, tuple[_Match, _Match, tuple[int, ...]]]
"""Table -> what takes its changes apart: with all columns, or with some; and where _PARTS are."""

_PARTS = ("s", "c", "p", "e", "t0", "k0", "o0", "d0", "b0", "f0", "a0", "n")
_COLUMNS = (
    *("session", "csn", "prim_csn", "epoch", "table", "key", "op", "op_deleted"),
    *("before", "before_deleted", "after", "opno"),
)
"""The parts' names; `_deleted`: in a delete, which its pattern has apart."""

_NOTHING = (None,) * len(_PARTS)
_AT_ONCE = 500
"""How many records are tuples at a time: of more, Python's collector of cycles takes note."""

_TABLE = '"table":"'
"""What stands before a table's name, and nowhere before that: in a session quotes are escaped."""


def unsettled(records: pa.Table, topics: Mapping[str, int]) -> pa.Table:
    """Records as they were read (stages/read.py: COLUMNS), as FACTS of which nothing is told."""
    there = records.filter(pc.is_valid(records["value"]))
    said_in = there["topic"].combine_chunks().dictionary_encode()
    rids = pa.array([topics[topic] for topic in said_in.dictionary.to_pylist()], pa.int32())
    columns = {
        "rid": rids.take(said_in.indices),
        "offset": there["offset"],
        "time": there["timestamp"],
        "reason": pa.repeat(UNSETTLED, there.num_rows),
        "partial": pa.repeat(pa.scalar(value=False), there.num_rows),
        "value": there["value"],
    }
    return _facts(columns, there.num_rows)


def changes(
    found: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, pa.Table]:
    """(the facts of plain changes, all others as they are), of FACTS to be settled."""
    parts = _taken_apart(found["value"], _ways(known_tables(tables)))
    csn, prim_csn = parts["csn"], pc.coalesce(parts["prim_csn"], parts["csn"])
    good = pc.is_valid(csn)
    for written in (csn, prim_csn) if parts["prim_csn"].null_count < len(csn) else (csn,):
        good = pc.and_(good, pa.array(are_of_record(found, texts(written), limits)))
    kept = {name: found[name] for name in ("rid", "offset", "time")}
    parts["kind"] = pa.repeat(Kind.CHANGE.value, len(csn))
    told = _facts({**parts, **kept}, len(csn))
    if pc.all(good).as_py() in (True, None):
        return told, found.slice(len(csn))
    return told.filter(good), found.filter(pc.invert(good))


def _facts(columns: Mapping[str, object], count: int) -> pa.Table:
    absent = pa.nulls(count)
    arrays = [columns.get(field.name, absent) for field in FACTS]
    return pa.table(arrays, names=FACTS.names).cast(FACTS)


def _taken_apart(values: pa.ChunkedArray, ways: _Ways) -> dict[str, pa.Array]:
    """The parts of each change by the names of FACTS, all null where a record is none."""
    columns: list[list[str | None]] = [[] for _ in _COLUMNS]
    partial: list[bool] = []
    for start in range(0, len(values), _AT_ONCE):
        rows = _parts(_decoded(values.slice(start, _AT_ONCE)), ways, partial)
        for column, part in zip(columns, zip(*rows, strict=True), strict=True):
            column.extend(part)
    arrays = (pa.array(column, pa.string()) for column in columns)
    parts: dict[str, pa.Array] = dict(zip(_COLUMNS, arrays, strict=True))
    for name in ("op", "before"):
        parts[name] = pc.coalesce(parts[name], parts[f"{name}_deleted"])
    content = _content(parts)
    numbers = {name: parts[name].cast(pa.int64()) for name in ("epoch", "opno")}
    return {**parts, **numbers, "content": content, "partial": pa.array(partial, pa.bool_())}


def _content(parts: Mapping[str, pa.Array]) -> pa.Array:
    """Core's `Change.content` of each change."""
    fields = [pc.fill_null(parts[name], NULL_TEXT) for name in CONTENT_FIELDS]
    joined = pc.binary_join_element_wise(*fields, FIELD_SEPARATOR)
    return pa.array([content_of(text) for text in joined.to_pylist()], pa.string())


def _decoded(values: pa.ChunkedArray) -> list[str | None]:
    """The records as text; None where one is not UTF-8."""
    try:
        return values.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        return [_text(value) for value in values.to_pylist()]


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _parts(
    records: list[str | None], ways: _Ways, partial: list[bool]
) -> list[tuple[str | None, ...]]:
    """_PARTS of each record; `partial` is told of each whether its image lacks columns."""
    rows: list[tuple[str | None, ...]] = []
    for text in records:
        start = text.find(_TABLE) + len(_TABLE) if text else 0
        way = ways.get(text[start : text.find('"', start)]) if text else None
        match, lacks = None, False
        if text and way:
            match = way[0](text)
            if match is None:
                match, lacks = way[1](text), True
        rows.append(match.group(*way[2]) if match and way else _NOTHING)
        partial.append(lacks)
    return rows


@lru_cache(maxsize=8)
def _ways(known: Known) -> _Ways:
    return {table.name: _way(table) for table in tables_of(known) if is_simple(table.name)}


def _way(table: Table) -> tuple[_Match, _Match, tuple[int, ...]]:
    whole, partial = _compiled(table, ""), _compiled(table, "?")
    return whole.match, partial.match, tuple(whole.groupindex[name] for name in _PARTS)


def _compiled(table: Table, lacking: str) -> re.Pattern[str]:
    """Java's pattern as Python writes it."""
    text = HEAD + pattern(0, table, lacking) + TAIL
    text = re.sub(r"\(\?<(?=\w)", "(?P<", text)
    text = re.sub(r"\\k<(\w+)>", r"(?P=\1)", text)
    return re.compile(text.replace(r"\z", r"\Z"), re.ASCII)
