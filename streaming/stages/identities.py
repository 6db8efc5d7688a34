"""The identities of rows: 128 bits in place of a table and a key of any length.

Multilinear hashing over 32-bit words with secret keys is strongly universal (Lemire and Kaser,
Strongly universal string hashing is fast, 2014): of two names that differ, whoever chose them, each
of the four parts is equal with a chance of 2^-32. numpy computes it for a whole batch at once.
"""

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streaming.stages.checked import Bools, Ints, Texts, fixed, one_array

Words = NDArray[np.uint64]

PARTS = 4
WORD_BYTES = 4
_UPPER = np.uint64(0xFFFF_FFFF_0000_0000)
SHORT_BYTES = 256
"""A longer name is hashed by its BLAKE2b: words take room for the longest name of a batch."""


@dataclass(frozen=True, slots=True)
class Identities:
    """One identity of two halves per row."""

    high: Words
    low: Words

    def __len__(self) -> int:
        return len(self.high)

    def take(self, places: Ints) -> "Identities":
        """Return those at these places."""
        return Identities(self.high[places], self.low[places])

    def grouped(self) -> tuple[Ints, Bools]:
        """Return (an order that brings equal ones together, which in it are the first of a kind).

        Equal ones stay in their order.
        """
        order = np.argsort(self.high)  # a stable one takes five times as long
        high = self.high[order]
        again = np.append(False, high[1:] == high[:-1])
        if again.any():
            alike = again | np.append(again[1:], False)
            places = order[alike]
            order[alike] = places[np.lexsort((places, self.low[places], high[alike]))]
        low = self.low[order]
        return order, np.append(True, (high[1:] != high[:-1]) | (low[1:] != low[:-1]))[: len(order)]

    def among(self, others: "Identities") -> Bools:
        """Mark those that are among others."""
        return np.isin(self.packed(), others.packed())

    def packed(self) -> Texts:
        """Return each as 16 bytes."""
        return np.stack([self.high, self.low], axis=1).view("S16")[:, 0]


def _keys() -> Words:
    count = SHORT_BYTES // WORD_BYTES + 2  # one for the length, and one that stands alone
    return np.frombuffer(secrets.token_bytes(8 * PARTS * count), np.uint64).reshape(count, PARTS)


@dataclass(frozen=True, slots=True)
class RowHash:
    """Identities under one secret; those under another one mean nothing."""

    keys: Words = field(default_factory=_keys, repr=False)

    def of(self, names: pa.ChunkedArray | pa.Array) -> Identities:
        """Return the identities of the rows with these names, none of which is null."""
        texts = one_array(names.cast(pa.binary()))
        length = np.asarray(pc.binary_length(texts), dtype=np.uint64)
        long = np.flatnonzero(length > SHORT_BYTES)
        if len(long):
            mask = np.zeros(len(length), dtype=np.bool_)
            mask[long] = True
            digests = [hashlib.blake2b(t).digest() for t in texts.take(pa.array(long)).to_pylist()]
            texts = pc.replace_with_mask(texts, pa.array(mask), pa.array(digests, pa.binary()))
        width = max(WORD_BYTES, int(pc.max(pc.binary_length(texts)).as_py() or 0))
        width = -(-width // WORD_BYTES) * WORD_BYTES
        words = np.empty((len(texts), 2 + width // WORD_BYTES), dtype=np.uint64)
        words[:, 0], words[:, 1] = 1, length
        words[:, 2:] = fixed(texts, width).view("<u4").reshape(len(texts), width // WORD_BYTES)
        sums = words @ self.keys[: words.shape[1]]  # the upper half of each is a part
        high, low = sums[:, ::2] & _UPPER, sums[:, 1::2] >> np.uint64(32)
        both = high | low
        return Identities(both[:, 0], both[:, 1])
