"""The compact facts of a batch on the driver: Arrow columns, and numpy arrays beside them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.core.change import Op
from streaming.core.record import Kind

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Texts = NDArray[np.bytes_]

NO_OPNO = 0
CSN_TYPE = "S20"


@dataclass(frozen=True, slots=True)
class Facts:
    """One row per record, ordered by (rid, offset); see `stages/validate.py` for the columns.

    `plain[i]`: a valid change without prim_csn that no rule but its CSN, session and opno can
    keep from becoming eligible at once. `csn` is empty bytes where the record has none.
    """

    table: pa.Table
    rid: Ints
    offset: Ints
    epoch: Ints
    opno: Ints
    csn: Texts
    plain: Bools

    def __len__(self) -> int:
        return len(self.rid)


def facts_of(table: pa.Table) -> Facts:
    """Order the validated records and lay out what bulk decisions look at."""
    table = table.combine_chunks().sort_by([("rid", "ascending"), ("offset", "ascending")])
    change = pc.and_(pc.equal(table["kind"], Kind.CHANGE.value), pc.is_null(table["reason"]))
    plain = pc.and_(
        pc.and_(change, pc.is_null(table["prim_csn"])),
        pc.not_equal(table["op"], Op.TRUNCATE.value),
    )
    return Facts(
        table,
        ints(table["rid"]),
        ints(table["offset"]),
        ints(table["epoch"]),
        ints(table["opno"]),
        texts(pc.if_else(change, table["csn"], "")),
        bools(plain),
    )


def ints(column: pa.ChunkedArray) -> Ints:
    """A column as int64; null is 0."""
    return np.asarray(pc.fill_null(column, 0).to_numpy(), dtype=np.int64)


def bools(column: pa.ChunkedArray) -> Bools:
    """A column as booleans; null is False."""
    return np.asarray(pc.fill_null(column, False).to_numpy(), dtype=np.bool_)  # noqa: FBT003


def texts(column: pa.ChunkedArray, width: str = CSN_TYPE) -> Texts:
    """A column of short ASCII text as fixed-width bytes, which compare as the text does."""
    filled = pc.fill_null(column, "")
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=width)


def strings(values: Sequence[bytes] | Texts) -> list[str]:
    """Fixed-width bytes back as text."""
    return [value.decode() for value in values]
