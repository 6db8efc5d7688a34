"""Validate columns of CSNs: whether each is of its record's replica and near its record's time."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.intake.check import Limits
from streaming.stages.checked import Bools, Ints, Texts, bools, ints

CSN = r"\A[0-9a-f]{20}\z"
"""The pattern of a CSN, for RE2."""


def are_of_record(placed: pa.Table, csn: Texts, limits: Limits) -> Bools:
    """Mark the records (PLACED) within the size limit whose CSN has their rid and a valid time.

    `csn`: one CSN per record. The mark of a text that is no CSN is undefined.
    """
    small = bools(pc.less_equal(pc.binary_length(placed["value"]), limits.record_bytes))
    own = _number(csn, 12, 16) == ints(placed["rid"])
    time_ms = ints(placed["time"].cast(pa.int64())) // 1000
    in_time = (_number(csn, 0, 8) - limits.skew_s) * 1000 <= time_ms
    return np.asarray(small & own & in_time, dtype=np.bool_)


def _number(csn: Texts, start: int, end: int) -> Ints:
    """Convert these hex digits of each CSN to a number; undefined for a text that is no CSN."""
    codes = csn.view(np.uint8).reshape(len(csn), csn.itemsize)[:, start:end].astype(np.int64)
    digits = np.where(codes > ord("9"), codes - ord("a") + 10, codes - ord("0"))
    return np.asarray(digits @ (16 ** np.arange(end - start)[::-1]), dtype=np.int64)
