"""A replica whose agent runs until all is published, and what its topic must never hold."""

from dataclasses import dataclass, field

import orjson

from connectors import wire
from connectors.agent.loop import Agent
from connectors.postgres.store import PostgresStore
from streaming.core.model.change import Change
from streaming.core.records.record import Hello, Item
from tests.connectors.agent.test_loop import MemoryTopics
from tests.connectors.conformance.database_under_test import RID
from tests.connectors.conformance.hub_batches import CLOCK_S, apply
from tests.connectors.conformance.postgres_database import opened


@dataclass(slots=True)
class ReplicaTopic:
    """The topic of a replica, wherever its database is; `hub_epoch`: of the next batch."""

    topics: MemoryTopics = field(default_factory=MemoryTopics)
    hub_epoch: int = 4

    def run_agent(self, dsn: str, *items: Item) -> Hello:
        """Run its agent until all is published; it applies these in between. What it began with."""
        store = opened(dsn)
        try:
            agent = Agent(RID, store, self.topics, None, lambda: CLOCK_S * 1000)
            agent.start()
            hello = self.hellos()[-1]
            _publish_all(agent, store)
            if items:
                apply(store, *items, hub_epoch=self.hub_epoch)
                self.hub_epoch += 1
            _publish_all(agent, store)
        finally:
            store.close()
        check_numbers(self.topics.changes)
        return hello

    def hellos(self) -> list[Hello]:
        """Those of all sessions."""
        return [one for one in self.topics.records() if isinstance(one, Hello)]

    def told(self) -> dict[int, str | None]:
        """The names of the rows by id, as the topic alone has them."""
        return rows_of(self.topics.changes)

    def keys(self, begin: int = 0) -> list[int]:
        """The ids of the changes from this place of the topic on."""
        decoded = [wire.decode(value)[1] for value in self.topics.changes[begin:]]
        return [_id(one) for one in decoded if isinstance(one, Change)]

    def __len__(self) -> int:
        return len(self.topics.changes)


def _publish_all(agent: Agent, store: PostgresStore) -> None:
    while agent.publish() or store.backlog():
        pass


def check_numbers(values: list[bytes]) -> None:
    """No CSN names two changes, none is late, and no opno is left out."""
    seen, last, opno = dict[str, Change](), "", 0
    for value in values:
        _, record = wire.decode(value)
        if not isinstance(record, Change):
            continue
        if record.csn in seen:
            assert seen[record.csn] == record, "the same CSN, another change"
            continue
        assert record.csn > last, f"{record.csn} is late: {last} stands before it"
        assert record.opno == opno + 1, f"{opno} stands before {record.opno}"
        seen[record.csn], last, opno = record, record.csn, opno + 1


def rows_of(values: list[bytes]) -> dict[int, str | None]:
    """The names of the rows by id, as these records leave them."""
    rows = dict[int, str | None]()
    for value in values:
        _, record = wire.decode(value)
        if isinstance(record, Change) and record.after is None:
            rows.pop(_id(record), None)
        elif isinstance(record, Change):
            rows[_id(record)] = orjson.loads(record.after or "{}")["name"]
    return rows


def _id(change: Change) -> int:
    return int(orjson.loads(change.key)["id"])
