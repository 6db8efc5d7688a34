"""Batches of a hub for a store, and what its journal holds."""

from connectors.agent.contract import ReplicaStore
from streaming.core.delivery.consumer import ApplyBatch, receive
from streaming.core.model.change import Change, Op
from streaming.core.model.ruv import Ruv
from streaming.core.records.record import Item, ItemType, Record, Refused, Update
from tests.connectors.conformance.database_under_test import ITEMS

CLOCK_S = 1_800_000_000
CSN = f"{CLOCK_S:08x}000500020000"
RUV = Ruv("5f00").with_csn(CSN)


def item(id_: int, name: str | None = None, *, price: str | None = None) -> Item:
    """A whole row that replica 2 wrote."""
    texts = ("null" if one is None else f'"{one}"' for one in (name, price))
    image = '{{"id":"{}","name":{},"price":{}}}'.format(id_, *texts)
    return Item(ItemType.CHANGE, ITEMS.name, f'{{"id":"{id_}"}}', Op.UPDATE, image, CSN, 2)


def delete(id_: int) -> Item:
    """A delete of replica 2."""
    return Item(ItemType.CHANGE, ITEMS.name, f'{{"id":"{id_}"}}', Op.DELETE, None, CSN, 2)


def apply(store: ReplicaStore, *items: Item, hub_epoch: int = 4) -> tuple[Refused, ...]:
    """What an agent does with a batch that came as one record at the offset of its hub epoch."""
    position = store.position
    update = Update(
        "a", 1, position.session or "", hub_epoch, position.last, hub_epoch, RUV, 0, 1, items
    )
    outcome = receive(position, update)
    assert isinstance(outcome, ApplyBatch)
    return store.apply(outcome, hub_epoch + 1, CLOCK_S * 1000).refused


def journalled(store: ReplicaStore) -> list[Record]:
    """The records that are not published."""
    return [entry.record for entry in store.unpublished(10**6, 10**9)]


def changes(store: ReplicaStore) -> list[Change]:
    """The changes among them."""
    return [record for record in journalled(store) if isinstance(record, Change)]


def in_session(store: ReplicaStore, session: str = "s1") -> ReplicaStore:
    """The store within a session."""
    store.start_session(session, None, lost=False)
    return store
