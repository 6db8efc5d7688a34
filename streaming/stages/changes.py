"""Plain changes, told on the driver: in a small batch that costs less than Spark's planning.

The patterns are those of stages/skim.py, and so is the claim: only what is surely good is told;
whatever else there is, is left to the rules.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.change import Change, Op
from streaming.core.csn import is_csn_of, time_of
from streaming.core.record import Kind
from streaming.core.table import Table
from streaming.stages.facts import FACTS
from streaming.stages.plain import Limits
from streaming.stages.skim import HEAD, TAIL, UNSETTLED, is_simple, pattern
from streaming.stages.validate import Known, known_tables, tables_of

_Bodies = Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]]
"""Table -> what follows the head of its changes: with all columns, or with some."""


def unsettled(records: pa.Table, topics: Mapping[str, int]) -> pa.Table:
    """Records as they were read (stages/read.py: COLUMNS), as FACTS of which nothing is told."""
    there = records.filter(pc.is_valid(records["value"]))
    said_in = there["topic"].combine_chunks().dictionary_encode()
    rids = pa.array([topics[topic] for topic in said_in.dictionary.to_pylist()], pa.int32())
    columns = {
        "rid": rids.take(said_in.indices),
        "offset": there["offset"],
        "time": there["timestamp"],
        "reason": pa.array([UNSETTLED] * there.num_rows, pa.string()),
        "partial": pa.array([False] * there.num_rows, pa.bool_()),
        "value": there["value"],
    }
    absent = pa.nulls(there.num_rows)
    arrays = [columns.get(field.name, absent) for field in FACTS]
    return pa.table(arrays, names=FACTS.names).cast(FACTS)


def changes(
    found: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, pa.Table]:
    """(the facts of plain changes, all others as they are), of FACTS to be settled."""
    bodies = _bodies(known_tables(tables))
    rows = [_told(row, bodies, limits) for row in found.to_pylist()]
    told = pa.Table.from_pylist([row for row in rows if row is not None], schema=found.schema)
    return told, found.filter(pa.array([row is None for row in rows], pa.bool_()))


def _told(row: Mapping[str, Any], bodies: _Bodies, limits: Limits) -> dict[str, Any] | None:
    """The facts of one record; None: it is left to the rules."""
    if len(row["value"]) > limits.record_bytes:
        return None
    try:
        text = row["value"].decode()
    except UnicodeDecodeError:
        return None
    head = _HEAD.match(text)
    if head is None:
        return None
    name = text[head.end() + 1 : text.find('"', head.end() + 1)]
    if name not in bodies:
        return None
    whole, partial = bodies[name]
    body = whole.match(text, head.end()) or partial.match(text, head.end())
    csn, prim_csn = head["c"], head["p"]
    if body is None or not _is_of(row, csn, limits):
        return None
    if prim_csn not in (None, csn) and not _is_of(row, prim_csn, limits):
        return None
    change = Change(
        csn,
        row["rid"],
        int(head["e"]),
        name,
        body["k0"],
        Op(body["o0"] or body["d0"]),
        body["a0"],
        body["b0"] or body["f0"],
        prim_csn,
        int(body["n"]) if body["n"] else None,
    )
    told = {field: getattr(change, field) for field in Change.__slots__}
    place = {name: row[name] for name in ("offset", "time")}
    said = {"kind": Kind.CHANGE.value, "session": head["s"], "content": change.content}
    return {**told, **place, **said, "partial": body.re is partial}


def _is_of(row: Mapping[str, Any], csn: str, limits: Limits) -> bool:
    """Claim that a CSN is of the record's replica, and not too far ahead of the record's time."""
    in_time = time_of(csn) - limits.skew_s <= row["time"].timestamp()
    return is_csn_of(csn, row["rid"]) and in_time


@lru_cache(maxsize=8)
def _bodies(known: Known) -> _Bodies:
    return {
        table.name: (_body(table, ""), _body(table, "?"))
        for table in tables_of(known)
        if is_simple(table.name)
    }


def _body(table: Table, lacking: str) -> re.Pattern[str]:
    return _compiled(pattern(0, table, lacking) + TAIL)


def _compiled(java: str) -> re.Pattern[str]:
    """A pattern of Java's as Python writes it."""
    text = re.sub(r"\(\?<(?=\w)", "(?P<", java)
    text = re.sub(r"\\k<(\w+)>", r"(?P=\1)", text)
    return re.compile(text.replace(r"\z", r"\Z"), re.ASCII)


_HEAD = _compiled(HEAD)
