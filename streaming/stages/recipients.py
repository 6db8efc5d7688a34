"""Who is sent which changelog rows: the rule of core's `is_for`, on columns."""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.conflict.judge import Verdict
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Ruv
from streaming.stages.checked import Bools, bools, ints, texts
from streaming.stages.log import CHANGE

COLUMNS = ("kind", "verdict", "rid", "to", "csn", "table")
"""The columns of the changelog that decide who is sent a row."""


class Recipients:
    """Changelog rows, prepared once for all consumers; `log`: COLUMNS, and possibly others."""

    def __init__(self, log: pa.Table) -> None:
        self.is_change = bools(pc.equal(log["kind"], CHANGE))
        accepted = bools(pc.equal(log["verdict"], Verdict.ACCEPTED.value))
        self._is_accepted = np.asarray(self.is_change & accepted, dtype=np.bool_)
        self.rid, self._to = ints(log["rid"]), ints(log["to"])
        self._csn = texts(log["csn"])
        encoded = log["table"].combine_chunks().dictionary_encode()
        self._tables: list[str] = encoded.dictionary.to_pylist()
        self._table = np.asarray(encoded.indices, dtype=np.int64)

    def for_consumer(
        self, consumer: int, tables: frozenset[str], ruv: Ruv, floors: Iterable[Floor]
    ) -> Bools:
        """Mark the rows that are sent to this consumer.

        `floors`: the consumer's; the own changes that it lost are sent back to it.
        """
        served = np.array([name in tables for name in self._tables], dtype=np.bool_)
        accepted = self._is_accepted & served[self._table]
        fresh = accepted & (self.rid != consumer)
        for known, largest in ruv.max_csns().items():
            fresh &= ~((self.rid == known) & (self._csn <= largest.encode()))
        for floor in floors:
            lost = (self._csn > floor.after.encode()) & (self._csn <= floor.upto.encode())
            fresh |= accepted & (self.rid == consumer) & lost
        refresh = ~self.is_change & (self._to == consumer)
        return np.asarray(fresh | refresh, dtype=np.bool_)
