"""From changelog rows to the records of an agreement's updates topic."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.wire import items_text, update_text
from streaming.core.judge import Verdict
from streaming.core.record import ItemType, Update
from streaming.core.ruv import Ruv
from streaming.core.state import AgreementState
from streaming.stages.facts import Bools, bools, ints, texts
from streaming.stages.log import CHANGE


@dataclass(frozen=True, slots=True)
class Chunks:
    """How large one record of an updates topic may be."""

    items: int
    bytes: int


def for_consumer(log: pa.Table, consumer: int, tables: frozenset[str], ruv: Ruv) -> Bools:
    """Mark the changelog rows that go to this consumer: core's `is_for`, in columns."""
    change = bools(pc.equal(log["kind"], CHANGE))
    rid = ints(log["rid"])
    fresh = (
        change
        & (rid != consumer)
        & bools(pc.equal(log["verdict"], Verdict.ACCEPTED.value))
        & bools(pc.is_in(log["table"], pa.array(sorted(tables), pa.string())))
    )
    csn = texts(log["csn"])
    for known, largest in ruv.max_csns().items():
        fresh &= ~((rid == known) & (csn <= largest.encode()))
    return np.asarray(fresh | (~change & (ints(log["to"]) == consumer)), dtype=np.bool_)


def records(
    log: pa.Table,
    agreement: AgreementState,
    tables: frozenset[str],
    ruvs: Mapping[int, Ruv],
    generation: int,
    limits: Chunks,
) -> Iterator[tuple[str, bytes]]:
    """The (id, bytes) of what this batch sends to one agreement, in order.

    `log`: the changelog rows of its hub epochs, in hub order. `ruvs`: hub epoch -> the RUV
    behind it. Each hub epoch with something for the consumer is one batch in chunks; the last
    one is sent also when it is empty, for its covers.
    """
    own = log.filter(pa.array(for_consumer(log, agreement.consumer, tables, agreement.send_ruv)))
    epochs = ints(own["hub_epoch"])
    prev = agreement.send_prev
    for hub_epoch in sorted({*epochs.tolist(), agreement.send_to}):
        rows = own.filter(pa.array(epochs == hub_epoch))
        chunks = list(_cut(items_text(_items(rows)).to_pylist(), limits))
        for number, items in enumerate(chunks):
            header = Update(
                agreement.name,
                generation,
                agreement.session or "",
                hub_epoch,
                prev,
                hub_epoch,
                ruvs[hub_epoch],
                number,
                len(chunks),
                (),
            )
            yield header.id, update_text(header, items)
        prev = hub_epoch


def _items(rows: pa.Table) -> pa.Table:
    """Changelog rows under the names of the wire's items."""
    change = pc.equal(rows["kind"], CHANGE)
    types = pc.if_else(change, ItemType.CHANGE.value, ItemType.REFRESH.value)
    columns: dict[str, object] = {name: rows[name] for name in ("table", "key", "op", "csn")}
    columns |= {
        "type": types,
        "after": rows["image"],
        "author": rows["rid"],
        "prim_csn": rows["prim_csn"],
        "cause": rows["cause"],
    }
    return pa.table(columns)


def _cut(items: list[str], limits: Chunks) -> Iterator[list[str]]:
    """Chunks of at most so many items, none larger than so many bytes unless of one item."""
    if not items:
        yield []
    chunk: list[str] = []
    size = 0
    for item in items:
        if chunk and (len(chunk) >= limits.items or size + len(item) > limits.bytes):
            yield chunk
            chunk, size = [], 0
        chunk.append(item)
        size += len(item) + 1
    if chunk:
        yield chunk


Deliver = Callable[[str, str, bytes], None]
"""(agreement, id, bytes): hands one record to the broker."""
