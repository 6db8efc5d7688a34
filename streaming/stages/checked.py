"""Checked records: the schemas of the check, and the columns that bulk decisions need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.core.conflict.winner import needs_before
from streaming.core.model.change import Op
from streaming.core.model.table import Table
from streaming.core.model.values import json_text
from streaming.core.records.record import RecordKind

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Texts = NDArray[np.bytes_]

PLACED = pa.schema(
    [
        ("rid", pa.int32()),  # the replica of the topic
        ("offset", pa.int64()),  # in the topic's one partition
        ("time", pa.timestamp("us", tz="UTC")),  # CreateTime
        ("value", pa.binary()),  # the record's bytes
    ]
)
"""A record as it was read, with its place."""

CHECKED = pa.schema(
    [
        ("rid", pa.int32()),  # rid, offset, time: as in PLACED
        ("offset", pa.int64()),
        ("time", pa.timestamp("us", tz="UTC")),
        ("reason", pa.string()),  # why it is in quarantine (core: Reason); null: it is valid
        ("detail", pa.string()),  # what was expected and what was found; null: it is valid
        ("kind", pa.string()),  # core: RecordKind
        ("session", pa.string()),  # the session that wrote it
        ("csn", pa.string()),  # of a change
        ("prim_csn", pa.string()),  # its transaction; null: a transaction of its own
        ("epoch", pa.int64()),  # the origin's epoch
        ("table", pa.string()),  # of a change
        ("key", pa.string()),  # canonical text if the change is valid, as are the images
        ("op", pa.string()),  # core: Op
        ("before", pa.string()),  # the before-image; null: none
        ("after", pa.string()),  # the after-image; null: a delete or truncate
        ("opno", pa.int64()),  # null: its replica does not number its changes
        ("content", pa.string()),  # of a change with a CSN: Change.content
        ("partial", pa.bool_()),  # the after-image lacks columns
        ("app", pa.string()),  # the application that wrote it
        ("value", pa.binary()),  # the record's bytes; null for a valid change
        ("size", pa.int64()),  # bytes of its item if its images are on the executors, else null
        ("snapshot", pa.string()),  # of a row of a snapshot: its id
    ]
)
"""A checked record: core's CheckedRecord with its place, time and bytes."""

NO_CHECKED = CHECKED.empty_table()

Column: TypeAlias = pa.Array | pa.ChunkedArray | Sequence[object]

CSN_BYTES = 20

Fetch = Callable[[pa.Table], pa.Table]
"""(rid, offset) of changes -> before and after of each, in the same order."""


@dataclass(frozen=True, slots=True)
class CheckedRecords:
    """One row per record, ordered by (rid, offset); see CHECKED.

    `table`: CHECKED. `plain[i]`: a valid change whose CSN is unique in the batch; only the rules of
    CSNs, sessions, opnos and transactions can keep it from becoming eligible. `commit[i]`: a valid
    commit. `csn`: of a valid change; `prim_csn`: of a valid change or commit; empty: none.
    """

    table: pa.Table
    rid: Ints
    opno: Ints
    csn: Texts
    prim_csn: Texts
    plain: Bools
    commit: Bools

    def __len__(self) -> int:
        return len(self.rid)

    def with_images(self, lacking: Bools, fetch: Fetch) -> "CheckedRecords":
        """Return the records with the images of these changes fetched."""
        return replace(self, table=with_images(self.table, lacking, fetch))


def checked(columns: Mapping[str, Column], count: int) -> pa.Table:
    """Return CHECKED of these columns of `count` values; a column that is absent is null."""
    absent = pa.nulls(count)
    arrays = [_array(columns.get(field.name, absent), field.type) for field in CHECKED]
    return pa.table(arrays, names=CHECKED.names).cast(CHECKED)


def _array(column: Column, kind: pa.DataType) -> pa.Array | pa.ChunkedArray:
    is_array = isinstance(column, pa.Array | pa.ChunkedArray)
    return column if is_array else pa.array(column, kind)


def checked_records(table: pa.Table, tables: Mapping[str, Table]) -> CheckedRecords:
    """Sort CHECKED by (rid, offset) and derive the arrays that bulk decisions need."""
    table = (
        table.cast(CHECKED)
        .combine_chunks()
        .sort_by([("rid", "ascending"), ("offset", "ascending")])
    )
    valid = pc.is_null(table["reason"])
    change = pc.and_(pc.equal(table["kind"], RecordKind.CHANGE.value), valid)
    commit = pc.and_(pc.equal(table["kind"], RecordKind.COMMIT.value), valid)
    plain = pc.and_(change, pc.not_equal(table["op"], Op.TRUNCATE.value))
    rid, csn = ints(table["rid"]), texts(pc.if_else(change, table["csn"], ""))
    return CheckedRecords(
        table,
        rid,
        ints(table["opno"]),
        csn,
        texts(pc.if_else(pc.or_(change, commit), table["prim_csn"], "")),
        bools(plain) & ~_repeated(rid, csn) & _has_compared(table, tables),
        bools(commit),
    )


def _has_compared(records: pa.Table, tables: Mapping[str, Table]) -> Bools:
    """Mark the changes that have the column that their table's function compares.

    Core's `missing` decides about the others. Text is canonical, so a quoted name before a colon
    is never a part of a value, in which quotes are escaped.
    """
    surely = np.ones(records.num_rows, dtype=np.bool_)
    for name, table in tables.items():
        column = table.function.column
        if column is None:
            continue
        here = bools(pc.equal(records["table"], name))
        delete = bools(pc.equal(records["op"], Op.DELETE.value))
        named = json_text(column) + ":"
        before = bools(pc.match_substring(records["before"], named))
        for op in (Op.INSERT, Op.UPDATE, Op.DELETE):
            if needs_before(table, op):
                surely &= ~(here & bools(pc.equal(records["op"], op.value))) | before
        surely &= ~here | delete | ~bools(records["partial"])
    return surely


def _repeated(rid: Ints, csn: Texts) -> Bools:
    """Mark the changes whose CSN is not unique in this batch; core compares their contents."""
    named = csn != b""
    rises = (csn[1:] > csn[:-1]) | (rid[1:] != rid[:-1])
    if bool(named.all() and rises.all()):
        return np.zeros(len(csn), dtype=np.bool_)
    _, where, counts = np.unique(csn, return_inverse=True, return_counts=True)
    return np.asarray(named & (counts[where] > 1), dtype=np.bool_)


def compared_tables(tables: Mapping[str, Table]) -> list[str]:
    """Return the tables whose function compares a column: their images are sent to the driver."""
    return [table.name for table in tables.values() if table.function.column is not None]


def is_away(rows: pa.Table) -> Bools:
    """Mark the rows whose images are kept on the executors."""
    return bools(pc.is_valid(rows["size"]))


def with_images(rows: pa.Table, lacking: Bools, fetch: Fetch) -> pa.Table:
    """Return the rows with before and after fetched, and size null, where `lacking` marks them."""
    if not lacking.any():
        return rows
    rows, mask = rows.combine_chunks(), pa.array(lacking)
    found = fetch(rows.select(["rid", "offset"]).filter(mask))
    found = found.append_column("size", pa.nulls(found.num_rows, pa.int64()))
    for name in ("before", "after", "size"):
        column, values = rows[name].combine_chunks(), found[name].combine_chunks()
        column = pc.replace_with_mask(column, mask, values.cast(column.type))
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), column)
    return rows


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column without chunks."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def ints(column: pa.ChunkedArray | pa.Array) -> Ints:
    """A column as int64; null is 0."""
    return np.asarray(pc.fill_null(column, 0).to_numpy(), dtype=np.int64)


def bools(column: pa.ChunkedArray | pa.Array) -> Bools:
    """A column as booleans; null is False."""
    return np.asarray(pc.fill_null(column, False), dtype=np.bool_)  # noqa: FBT003


def texts(column: pa.ChunkedArray | pa.Array) -> Texts:
    """A column of CSNs as fixed-width bytes, which compare as the text does; null is empty."""
    return fixed(column, CSN_BYTES)


def fixed(column: pa.ChunkedArray | pa.Array, width: int) -> Texts:
    """A column of texts as bytes of this width, cut short or filled with zeros; null is empty."""
    given = one_array(pc.fill_null(column.cast(pa.binary()), b""))
    if not bools(pc.equal(pc.binary_length(given), width)).all():
        given = pc.binary_join_element_wise(given, bytes(width), b"")
        given = pc.binary_slice(given, 0, width)
    array = given.cast(pa.binary(width))
    return np.frombuffer(array.buffers()[1], f"S{width}", len(array), array.offset * width)
