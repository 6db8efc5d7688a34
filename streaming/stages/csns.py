"""Columns of CSNs: whether each is of its record's replica or skewed, and CSNs as numbers."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.core.model.csn import MAX_STEP_S, time_of
from streaming.core.records.check import Limits
from streaming.stages.checked import CSN_BYTES, Bools, Ints, Texts, bools, ints, texts

CSN = r"\A[0-9a-f]{20}\z"
"""The pattern of a CSN, for RE2."""

_HIGH_BYTES, _LOW_BYTES = 8, 2
_DIGITS = np.frombuffer(bytes(range(256)).hex().encode(), np.uint16)


@dataclass(frozen=True, slots=True)
class CsnNumbers:
    """CSNs as numbers, which compare as the texts do: the first 16 digits, and the last 4."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint16]

    def __len__(self) -> int:
        return len(self.high)

    def take(self, places: Ints | Bools) -> "CsnNumbers":
        """Return those at these places."""
        return CsnNumbers(self.high[places], self.low[places])


def csn_numbers(column: pa.ChunkedArray | pa.Array) -> CsnNumbers:
    """Convert a column of CSNs; undefined for a text that is none, null is 0."""
    fours = texts(column).view("<u4").reshape(len(column), CSN_BYTES // 4)
    digits = (fours & 0x0F0F0F0F) + (fours >> 6 & 0x01010101) * 9  # a digit in each byte
    pairs = (digits << 4 | digits >> 8) & 0x00FF00FF
    values = ((pairs << 8 | pairs >> 16) & 0xFFFF).T.astype(np.uint64)
    high = values[0] << 48 | values[1] << 32 | values[2] << 16 | values[3]
    return CsnNumbers(high, values[4].astype(np.uint16))


def csn_texts(csns: CsnNumbers) -> pa.Array:
    """Convert numbers back to a column of CSNs."""
    codes = np.empty((len(csns), CSN_BYTES // 2), dtype=np.uint8)
    codes[:, :_HIGH_BYTES] = csns.high.astype(">u8").view(np.uint8).reshape(-1, _HIGH_BYTES)
    codes[:, _HIGH_BYTES:] = csns.low.astype(">u2").view(np.uint8).reshape(-1, _LOW_BYTES)
    digits = pa.py_buffer(np.ascontiguousarray(_DIGITS[codes]))
    fixed = pa.Array.from_buffers(pa.binary(CSN_BYTES), len(csns), [None, digits])
    return fixed.cast(pa.binary()).cast(pa.string())


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
