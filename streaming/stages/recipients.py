"""Who is sent which changelog rows.

Changes that its RUV covers a consumer is not sent, nor its own, unless it lost them. Refreshes are
skipped by covers only, because they have the CSN of an old winner (docs/traps.md, A refresh carries
an old CSN). tests/reference/sending.py says the same of one entry.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.conflict.judge import Verdict
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Ruv
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.state.agreement_state import SendRange
from streaming.core.state.topology import Subscription
from streaming.stages.checked import Bools, Ints, bools, ints, texts
from streaming.stages.filtered import LogImages
from streaming.stages.log import CHANGE, REFRESH

COLUMNS = ("kind", "verdict", "rid", "to", "csn", "table")
"""The columns of the changelog that decide who is sent a row."""


class Recipients:
    """Changelog rows, prepared once for all agreements; `log`: COLUMNS, and possibly others.

    An agreement with filters asks for theirs too (`with_filter_columns`).
    """

    def __init__(self, log: pa.Table) -> None:
        self.images = LogImages(log)
        self.is_change = bools(pc.equal(log["kind"], CHANGE))
        self._is_refresh = bools(pc.equal(log["kind"], REFRESH))
        accepted = bools(pc.equal(log["verdict"], Verdict.ACCEPTED.value))
        self._is_accepted = np.asarray(self.is_change & accepted, dtype=np.bool_)
        self.rid, self._to = ints(log["rid"]), ints(log["to"])
        self._csn = texts(log["csn"])
        encoded = log["table"].combine_chunks().dictionary_encode()
        self._tables: list[str] = encoded.dictionary.to_pylist()
        self._table = np.asarray(encoded.indices, dtype=np.int64)
        self._marked: dict[str, tuple[tuple[object, ...], Bools]] = {}

    def of(self, subscription: Subscription, ruv: Ruv, floors: Iterable[Floor]) -> Bools:
        """Mark the rows that an agreement sends.

        `ruv`: the changes that its consumer has. `floors`: the consumer's; the own changes that it
        lost are sent back to it. Asked the same of the same agreement, it answers from memory.
        """
        asked = subscription, ruv, tuple(floors)
        known = self._marked.get(subscription.name)
        if known is None or known[0] != asked:
            known = self._marked[subscription.name] = asked, self._mark(*asked)
        return known[1]

    def _mark(self, subscription: Subscription, ruv: Ruv, floors: Iterable[Floor]) -> Bools:
        consumer = subscription.consumer
        served = np.array([subscription.sends(name) for name in self._tables], dtype=np.bool_)
        accepted = self._is_accepted & served[self._table]
        fresh = accepted & (self.rid != consumer)
        for known, largest in ruv.max_csns().items():
            fresh &= ~((self.rid == known) & (self._csn <= largest.encode()))
        for floor in floors:
            lost = (self._csn > floor.after.encode()) & (self._csn <= floor.upto.encode())
            fresh |= accepted & (self.rid == consumer) & lost
        if subscription.rows:
            fresh &= ~self.images.left_out(subscription)
        refresh = self._is_refresh & (self._to == consumer)
        sent = np.asarray(fresh | refresh, dtype=np.bool_)
        return sent if subscription.sends_deletes else sent & ~self.images.deletes(subscription)


PAGE_COLUMNS = (*COLUMNS, "key", "hub_epoch", "place")
"""What `sent_rows` needs of the changelog."""


def hub_order(log: pa.Table) -> Ints:
    """Return the row numbers in hub order; `log`: hub_epoch, place, and possibly others."""
    return np.lexsort((ints(log["place"]), ints(log["hub_epoch"])))


def sent_rows(
    log: pa.Table,
    subscription: Subscription,
    to_send: SendRange,
    floors: Iterable[Floor],
    prepared: tuple[Recipients, Ints] | None = None,
) -> Ints:
    """Return the numbers of the rows that a range sends to an agreement's consumer, in hub order.

    `log`: PAGE_COLUMNS of the range's hub epochs, and possibly others. `prepared`: its recipients
    and its hub order, where they are known.
    """
    recipients, order = prepared or (Recipients(log), hub_order(log))
    found = recipients.of(subscription, to_send.known, floors)
    rows = order[found[order]]
    return _last_of_rows(log, rows) if to_send.is_page else rows


def _last_of_rows(log: pa.Table, rows: Ints) -> Ints:
    """Return, of these row numbers in hub order, the last one of each table and key.

    What stands before a truncate of its table is left out. A consumer applies a page as one local
    transaction and never shows what lay in between.
    """
    keys = log.select(["table", "key"]).take(pa.array(rows))
    truncates = np.flatnonzero(bools(pc.equal(keys["key"], ALL_KEYS)))
    if len(truncates):
        left = _behind_truncates(keys["table"], truncates)
        rows, keys = rows[left], keys.filter(pa.array(left))
    keys = keys.append_column("number", pa.array(np.arange(len(rows))))
    last = keys.group_by(["table", "key"]).aggregate([("number", "max")])["number_max"]
    return rows[np.sort(ints(last))]


def _behind_truncates(tables: pa.ChunkedArray, truncates: Ints) -> Bools:
    """Mark the rows before which no truncate of their table stands; `truncates`: in their order."""
    last = {tables[int(place)].as_py(): int(place) for place in truncates}
    left, places = np.ones(len(tables), dtype=np.bool_), np.arange(len(tables))
    for table, place in last.items():
        left &= ~bools(pc.equal(tables, table)) | (places >= place)
    return left
