"""Validate columns of CSNs: whether each is of its record's replica, and whether it is skewed."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.csn import MAX_STEP_S, time_of
from streaming.core.records.check import Limits
from streaming.stages.checked import Bools, Ints, Texts, bools, ints

CSN = r"\A[0-9a-f]{20}\z"
"""The pattern of a CSN, for RE2."""


def are_of_record(placed: pa.Table, csn: Texts, limits: Limits) -> Bools:
    """Mark the records (PLACED) within the size limit whose CSN has their rid.

    `csn`: one CSN per record. The mark of a text that is no CSN is undefined.
    """
    small = bools(pc.less_equal(pc.binary_length(placed["value"]), limits.record_bytes))
    own = _number(csn, 12, 16) == ints(placed["rid"])
    return np.asarray(small & own, dtype=np.bool_)


def any_skewed(csn: Texts, time: pa.ChunkedArray, largest: str, skew_s: int) -> bool:
    """Return whether core's `is_skewed` holds for one of these CSNs, each behind the one before.

    `time`: of their records. `largest`: the one that precedes the first; empty: none does.
    """
    time_s, time_ms = _number(csn, 0, 8), ints(time.cast(pa.int64())) // 1000
    ahead = (time_s - skew_s) * 1000 > time_ms
    if not ahead.any():
        return False
    first = time_of(largest) if largest else -MAX_STEP_S
    before = np.append(np.int64(first), time_s[:-1])
    return bool((ahead & (time_s > before + MAX_STEP_S)).any())


def _number(csn: Texts, start: int, end: int) -> Ints:
    """Convert these hex digits of each CSN to a number; undefined for a text that is no CSN."""
    codes = csn.view(np.uint8).reshape(len(csn), csn.itemsize)[:, start:end].astype(np.int64)
    digits = np.where(codes > ord("9"), codes - ord("a") + 10, codes - ord("0"))
    return np.asarray(digits @ (16 ** np.arange(end - start)[::-1]), dtype=np.int64)
