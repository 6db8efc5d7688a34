"""What stands in the updates topic of a site's replica, item by item."""

from collections.abc import Iterator
from typing import NamedTuple

from connectors.wire import decode_answer
from streaming.core.batch.sending import PAGE
from streaming.core.records.record import Item, RangeItem, Update
from tests.harness.site import Site


class SentItems(NamedTuple):
    """The items behind an offset: those of resyncs' pages, the ranges among them, and the rest."""

    paged: list[str]
    ranges: list[RangeItem]
    live: list[str]


def sent_items(at: Site, name: str, offset: int = 0) -> SentItems:
    """The keys of the items that a replica was sent from this offset of its topic on."""
    items = list(_items(at, name, offset))
    rows = [item for item in items if isinstance(item, Item)]
    return SentItems(
        [item.key for item in rows if item.cause == PAGE],
        [item for item in items if isinstance(item, RangeItem)],
        [item.key for item in rows if item.cause != PAGE],
    )


def _items(at: Site, name: str, offset: int) -> Iterator[Item | RangeItem]:
    for _, value in at.ends.read(at.replicas[name].updates, offset):
        answer = decode_answer(value)
        if isinstance(answer, Update):
            yield from answer.items
