"""Build the records of an agreement's updates topic from changelog rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.wire import item_text, items_text, update_of
from streaming.core.batch.sending import PAGE, kept_item
from streaming.core.model.change import NOBODY, Op
from streaming.core.model.row import Floor
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import Table
from streaming.core.records.record import ItemType, RangeItem, Update
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.topology import Subscription
from streaming.core.tracking.ranges import KeyRange
from streaming.stages.checked import Ints, bools, ints, is_away, one_array
from streaming.stages.filtered import cut
from streaming.stages.log import CHANGE
from streaming.stages.recipients import Recipients, hub_order, sent_rows
from streaming.stages.unset import unset_columns, unset_of_tables


@dataclass(frozen=True, slots=True)
class Chunk:
    """A record of an updates topic: its header, and the rows of its items in the log."""

    header: Update
    rows: Ints


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The size limits of a record of an updates topic."""

    items: int
    bytes: int


_BESIDE = ThreadPoolExecutor(1, "items")
"""Items are encoded while the tables are written; Arrow releases Python's lock."""


class Outgoing:
    """Changelog rows, prepared once for all agreements.

    `log`: LOG. `order`: its row numbers in hub order. `away`: by row, whether its images are on
    the executors; of those that are no image lacks columns. `tables`: Topology.defaulted.
    `ahead`: its items are encoded at once, for they will be sent.
    """

    def __init__(self, log: pa.Table, tables: Mapping[str, Table], *, ahead: bool = True) -> None:
        self.log = log
        self.tables = tables
        self.order: Ints = hub_order(log)
        has_away = "size" in log.column_names
        self.away = is_away(log) if has_away else np.zeros(log.num_rows, dtype=np.bool_)
        self.recipients = Recipients(log)
        self._ahead = _BESIDE.submit(self._encoded) if ahead else None

    def sends(self, subscription: Subscription, ruv: Ruv, floors: Sequence[Floor] = ()) -> bool:
        """Return whether an agreement sends any of them; `floors`: its consumer's."""
        return bool(self.recipients.of(subscription, ruv, floors).any())

    def sent(self, subscription: Subscription, to_send: SendRange, floors: Sequence[Floor]) -> Ints:
        """Return the numbers of the rows that a range sends to the consumer, in hub order."""
        prepared = self.recipients, self.order
        return sent_rows(self.log, subscription, to_send, floors, prepared)

    @property
    def items(self) -> pa.Array:
        """Return, by row, its item as JSON text (large_binary); undefined where `away`."""
        return self._ahead.result() if self._ahead else self._encoded()

    def _encoded(self) -> pa.Array:
        everything = Subscription("", NOBODY, frozenset())
        return self.encoded(self.log, everything)

    def encoded(self, log: pa.Table, subscription: Subscription) -> pa.Array:
        """Return the item of each row of LOG as JSON text (large_binary)."""
        columns = {name: subscription.columns_of(one) for name, one in self.tables.items()}
        images = one_array(log["image"])
        may_lack = log["partial"] if "partial" in log.column_names else pc.is_valid(images)
        unset = unset_of_tables(one_array(log["table"]), images, columns, bools(may_lack))
        return items_text(_items(log).append_column("unset", unset)).cast(pa.large_binary())

    @cached_property
    def sizes(self) -> Ints:
        """Return, by row, the size of its item in bytes."""
        sizes = ints(pc.binary_length(self.items))
        return np.where(self.away, ints(self.log["size"]), sizes) if self.away.any() else sizes

    @property
    def hub_epochs(self) -> Ints:
        """Return, by row, the hub epoch that it is of."""
        return ints(self.log["hub_epoch"])

    def value(self, chunk: Chunk) -> bytes:
        """Return the record's bytes; none of its rows may be `away`."""
        return _value(chunk, self.items)


class OutgoingShown(Outgoing):
    """Changelog rows for an agreement with filters: what they hide is a delete, or left out."""

    def __init__(self, outgoing: Outgoing, subscription: Subscription) -> None:
        """`outgoing`: rows of which no images are on the executors."""
        self._prepared = outgoing
        self.log = outgoing.log
        self.order = outgoing.order
        self.away = outgoing.away
        self.recipients = outgoing.recipients
        self._subscription = subscription

    @cached_property
    def items(self) -> pa.Array:
        """Return, by row, its item as JSON text (large_binary)."""
        is_hidden = self.recipients.images.hidden(self._subscription)
        is_cut, images = cut(self.log, self._subscription)
        changed = self.log.filter(pa.array(is_hidden | is_cut))
        gone = pa.array(is_hidden[is_hidden | is_cut])
        columns = {name: changed[name] for name in changed.column_names}
        if is_cut.any():
            here = pa.array(is_cut[is_hidden | is_cut])
            columns["image"] = pc.replace_with_mask(one_array(changed["image"]), here, images)
        columns["op"] = pc.if_else(gone, Op.DELETE.value, changed["op"])
        columns["image"] = pc.if_else(gone, None, columns["image"])
        encoded = one_array(self._prepared.encoded(pa.table(columns), self._subscription))
        items = one_array(self._prepared.items)
        return pc.replace_with_mask(items, pa.array(is_hidden | is_cut), encoded)


def shown(outgoing: Outgoing, subscription: Subscription) -> Outgoing:
    """Return changelog rows as an agreement sends them."""
    return OutgoingShown(outgoing, subscription) if subscription.has_filters else outgoing


class OutgoingWithRanges:
    """Changelog rows for one agreement, and behind them the items of ranges that it is sent."""

    def __init__(self, outgoing: Outgoing, ranges: pa.Array) -> None:
        """`ranges`: items as JSON text (large_binary)."""
        self._outgoing = outgoing
        self._ranges = ranges
        self.away = outgoing.away

    def sent(self, subscription: Subscription, to_send: SendRange, floors: Sequence[Floor]) -> Ints:
        """Return the numbers of the items that are sent; those of ranges follow the log's rows."""
        count = self._outgoing.log.num_rows
        behind = np.arange(count, count + len(self._ranges))
        return np.append(self._outgoing.sent(subscription, to_send, floors), behind)

    @property
    def hub_epochs(self) -> Ints:
        """Return the hub epoch of each of the log's rows."""
        return self._outgoing.hub_epochs

    @cached_property
    def items(self) -> pa.Array:
        """Return each item as JSON text."""
        return pa.concat_arrays([one_array(self._outgoing.items), self._ranges])

    @property
    def sizes(self) -> Ints:
        """Return the size of each item in bytes."""
        return np.append(self._outgoing.sizes, ints(pc.binary_length(self._ranges)))

    def value(self, chunk: Chunk) -> bytes:
        """Return the record's bytes."""
        return _value(chunk, self.items)


def _value(chunk: Chunk, items: pa.Array) -> bytes:
    taken = items.take(pa.array(chunk.rows))
    both = pa.LargeListArray.from_arrays(pa.array([0, len(taken)], pa.int64()), taken)
    text = pc.binary_join(both, pa.scalar(b",", pa.large_binary()))[0].as_py()
    return update_of(chunk.header, text)


class RangeRows(NamedTuple):
    """A range with its rows: key, author, csn, image; `kept`: those left to its consumer.

    `hidden`: how many more the hub has and vouches for. `deletes`: the consumer's other rows of
    the range go. `columns`: those that are sent beside the key.
    """

    keys: KeyRange
    rows: pa.Table
    kept: Sequence[str] = ()
    hidden: int = 0
    deletes: bool = True
    columns: Sequence[str] = ()


def page_items(ranges: Iterable[RangeRows]) -> pa.Array:
    """Return the items of ranges: each range, and behind it the rows in it."""
    parts = [pa.array([], pa.large_binary())]
    for keys, rows, kept, not_shown, deletes, sent in ranges:
        count = rows.num_rows
        head = item_text(RangeItem(*keys, count + len(kept), not_shown, deletes)).encode()
        columns = {
            "type": pa.repeat(ItemType.REFRESH.value, count),
            "table": pa.repeat(keys.table, count),
            "key": rows["key"],
            "op": pa.repeat(Op.UPDATE.value, count),
            "after": rows["image"],
            "csn": rows["csn"],
            "author": rows["author"],
            "prim_csn": pa.nulls(count, pa.string()),
            "cause": pa.repeat(PAGE, count),
            "unset": unset_columns(one_array(rows["image"]), sent),
        }
        items = items_text(pa.table(columns)).cast(pa.large_binary())
        left = [item_text(kept_item(keys.table, key)).encode() for key in kept]
        parts += [pa.array([head], pa.large_binary()), one_array(items)]
        parts.append(pa.array(left, pa.large_binary()))
    return pa.concat_arrays(parts)


def chunks(
    outgoing: Outgoing | OutgoingWithRanges,
    agreement: AgreementState,
    to_send: SendRange,
    subscription: Subscription,
    generation: int,
    limits: ChunkLimits,
    floors: Sequence[Floor] = (),
) -> Iterator[Chunk]:
    """Yield the records that this batch sends to one agreement, in order.

    `outgoing`: the changelog rows of the hub epochs in `to_send`, or those of them that are sent.
    `floors`: those of the agreement's consumer.
    They are one batch of chunks, which is sent even without an item, for its covers.
    """
    rows = outgoing.sent(subscription, to_send, floors)
    ends = list(pairwise(cuts(outgoing.sizes[rows], limits)))
    is_of_several = to_send.is_page and not to_send.ranges
    epochs = outgoing.hub_epochs[rows] if is_of_several else rows[:0]
    for number, (start, end) in enumerate(ends):
        header = Update(
            agreement.name,
            generation,
            agreement.session or "",
            to_send.to,
            to_send.prev,
            to_send.position.covers,
            to_send.position.ruv,
            number,
            len(ends),
            (),
            _runs(epochs[start:end]),
        )
        yield Chunk(header, rows[start:end])


def _runs(epochs: Ints) -> tuple[tuple[int, int], ...]:
    """Each hub epoch with the number of its items, which stand together."""
    found, counts = np.unique(epochs, return_counts=True)
    return tuple(zip(found.tolist(), counts.tolist(), strict=True))


def _items(rows: pa.Table) -> pa.Table:
    """Return changelog rows with the column names of the wire's items."""
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


def cuts(sizes: Ints, limits: ChunkLimits) -> list[int]:
    """Return the bounds of chunks of items of these sizes, from 0 to their number.

    A chunk has at most `items` items and, unless it has one item only, at most `bytes` bytes with
    the commas between items. Without an item there is one empty chunk: [0, 0].
    """
    ends = np.cumsum(sizes + 1)
    found = [0]
    while found[-1] < len(sizes):
        start = found[-1]
        before = int(ends[start - 1]) if start else 0
        fitting = int(np.searchsorted(ends, before + limits.bytes + 1, side="right"))
        found.append(min(max(fitting, start + 1), start + limits.items))
    return found if len(sizes) else [0, 0]
