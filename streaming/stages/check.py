"""Check records: PLACED -> CHECKED, with vectorized operations where they suffice.

1. Canonical changes are recognized and parsed with vectorized operations (stages/changes.py), those
   of tables that their replicas may write.
2. So are canonical commits (stages/commits.py).
3. Changes in another spelling are canonicalized (stages/spelling.py) and parsed as in step 1.
   Changes of a replica that is not sent some columns lose them there, as in core.
4. All other records are checked one by one by core (core/records/check.py).

Steps 1 to 3 only accept records, with the same canonical texts as core; only core rejects. The
driver does this while records arrive, the executors in their Python workers.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.table import Table
from streaming.core.records.check import LIMITS, CheckedRecord, Limits, check
from streaming.core.records.record import RecordKind
from streaming.stages.changes import parse_changes
from streaming.stages.checked import (
    CHECKED,
    NO_CHECKED,
    PLACED,
    Column,
    bools,
    checked,
    one_array,
)
from streaming.stages.commits import parse_commits
from streaming.stages.spelling import canonicalized


def check_records(
    records: pa.Table,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits = LIMITS,
) -> pa.Table:
    """Return CHECKED of records (carriers/read.py: COLUMNS), in any order; null values are dropped.

    `topics`: topic -> rid of the replica that it belongs to.
    """
    placed = _placed(records, topics)
    parts = [NO_CHECKED]
    for step in (_permitted_changes, parse_commits, _other_spellings):
        if not placed.num_rows:
            break
        good, is_good = step(placed, tables, limits)
        parts.append(_with_own_columns(good, limits) if limits.columns else good)
        placed = placed.filter(pa.array(~is_good)) if good.num_rows else placed
    return pa.concat_tables([*parts, _one_by_one(placed, tables, limits)])


def _placed(records: pa.Table, topics: Mapping[str, int]) -> pa.Table:
    there = records.filter(pc.is_valid(records["value"]))
    topic = there["topic"].combine_chunks().dictionary_encode()
    rids = pa.array([topics[name] for name in topic.dictionary.to_pylist()], pa.int32())
    columns = [rids.take(topic.indices), there["offset"], there["timestamp"], there["value"]]
    return pa.table(columns, names=PLACED.names).cast(PLACED)


def _permitted_changes(
    placed: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, np.ndarray]:
    """Return (CHECKED of the canonical changes of tables that their replicas may write, a mask)."""
    good, is_good = parse_changes(placed, tables, limits)
    if not (limits.writes and good.num_rows):
        return good, is_good
    rids, names = good["rid"].to_numpy(), good["table"]
    may = np.ones(good.num_rows, dtype=np.bool_)
    for rid, allowed in limits.writes.items():
        is_allowed = pc.is_in(names, value_set=pa.array(sorted(allowed), pa.string()))
        may &= (rids != rid) | is_allowed.to_numpy()
    is_good[is_good] = may
    return good.filter(pa.array(may)), is_good


def _other_spellings(
    placed: pa.Table, tables: Mapping[str, Table], limits: Limits
) -> tuple[pa.Table, np.ndarray]:
    """Return (CHECKED of the changes that are valid once canonicalized, a mask of them)."""
    size = limits.record_bytes
    values = placed["value"].to_pylist()
    texts = list(canonicalized([value if len(value) <= size else b"" for value in values], tables))
    is_good = np.array([text is not None for text in texts], dtype=np.bool_)
    if not is_good.any():
        return NO_CHECKED, is_good
    place = placed.schema.get_field_index("value")
    column = pa.array([text for text in texts if text is not None], pa.binary())
    again = placed.filter(pa.array(is_good)).set_column(place, "value", column)
    good, fits = _permitted_changes(again, tables, limits)
    is_good[is_good] = fits
    return good, is_good


def _with_own_columns(good: pa.Table, limits: Limits) -> pa.Table:
    """Return CHECKED without the columns that replicas are not sent; see core."""
    for rid, filters in limits.columns.items():
        for table, known in filters.items():
            own = pc.and_(pc.equal(good["rid"], rid), pc.equal(good["table"], table))
            own = pc.fill_null(own, False)  # noqa: FBT003 - the value
            if bools(own).any():
                good = _cut(good, own, known)
    return good


def _cut(good: pa.Table, own: pa.ChunkedArray, known: ColumnFilter) -> pa.Table:
    for name in ("before", "after"):
        images = pa.array(known.all_shown(good[name].filter(own).to_pylist()), pa.string())
        column = pc.replace_with_mask(one_array(good[name]), one_array(own), images)
        good = good.set_column(good.schema.get_field_index(name), CHECKED.field(name), column)
    partial = pc.or_(good["partial"], pc.and_(own, pc.is_valid(good["after"])))
    place = good.schema.get_field_index("partial")
    return good.set_column(place, CHECKED.field("partial"), partial)


def _one_by_one(placed: pa.Table, tables: Mapping[str, Table], limits: Limits) -> pa.Table:
    rids, values = placed["rid"].to_pylist(), placed["value"].to_pylist()
    found = [check(value, rid, tables, limits) for rid, value in zip(rids, values, strict=True)]
    kept = [
        None if _is_good_change(one) else value for one, value in zip(found, values, strict=True)
    ]
    columns: dict[str, Column] = {name: placed[name] for name in ("rid", "offset", "time")}
    columns["value"] = kept
    if found:
        columns |= zip(CheckedRecord._fields, zip(*found, strict=True), strict=True)
    return checked(columns, len(found))


def _is_good_change(one: CheckedRecord) -> bool:
    return one.reason is None and one.kind == RecordKind.CHANGE
