"""The agent's loop over a store in memory: it needs nothing of any one database."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from connectors import wire
from connectors.agent.clock import ClockWatch
from connectors.agent.contract import (
    AppliedBatch,
    HeldLog,
    JournalEntry,
    KeptRows,
    StoreBusyError,
)
from connectors.agent.loop import PUBLISH_ROWS, Agent
from connectors.agent.own_topic import OwnTopic
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import CsnParts, Generator, format_csn, time_of
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import Ruv
from streaming.core.records.local_writes import TableWrites
from streaming.core.records.record import (
    Applied,
    Commit,
    Goodbye,
    Heartbeat,
    Hello,
    LocalWrites,
    PublishedSchema,
    Record,
    Snapshot,
    Stopped,
    Update,
)
from tests.reference.wire import encode_update

RID = 7
CSN = "65e0f1c0000000070000"
CHANGE = Change(CSN, RID, 1, "t", '{"id":"1"}', Op.INSERT, '{"id":"1"}')


@dataclass(slots=True)
class MemoryStore:
    """A replica without rows.

    `busy` calls of `apply` and `busy_marking` of `mark_published` find a transaction in the way.
    """

    entries: list[JournalEntry] = field(default_factory=list)
    published: int = 0
    position: Position = field(default_factory=Position)
    epoch: int = 1
    updates_offset: int = 0
    busy: int = 0
    busy_marking: int = 0
    held: HeldLog | None = None
    abandoned_groups_closed: int = 0
    schema: PublishedSchema | None = None
    staying: dict[str, TableWrites] = field(default_factory=dict)
    ids: Iterator[int] = field(default_factory=lambda: count(1))

    def write(self, record: Record, session: str | None = None) -> None:
        """Append to the journal."""
        self.entries.append(JournalEntry(next(self.ids), record, session))

    def check_schema(self) -> None:
        """It has none."""

    def unpublished(self, rows_max: int, bytes_max: int) -> list[JournalEntry]:
        """The entries behind the mark."""
        assert bytes_max > 0
        return [entry for entry in self.entries if entry.id > self.published][:rows_max]

    def unpublished_schema(self) -> PublishedSchema | None:
        """The schema, until it is published."""
        return self.schema

    def mark_schema_published(self, schema: PublishedSchema) -> None:
        """There is no other one."""
        assert schema == self.schema
        self.schema = None

    def backlog(self) -> int:
        """The entries behind the mark."""
        return sum(entry.id > self.published for entry in self.entries)

    def kept_rows(self) -> KeptRows:
        """None."""
        return KeptRows()

    def local_writes(self) -> dict[str, TableWrites]:
        """What a test has set."""
        return self.staying

    def held_log(self) -> HeldLog | None:
        """What a test has set."""
        return self.held

    def mark_published(self, entry: JournalEntry) -> None:
        """Move the mark."""
        if self.busy_marking:
            self.busy_marking -= 1
            raise StoreBusyError("database is locked")
        self.published = entry.id

    def journal_snapshot(self, rows_max: int) -> bool:
        """There were no rows."""
        del rows_max
        return False

    def find(self, record: Change | Commit | Snapshot) -> int | None:
        """The entry of this record."""
        return next((entry.id for entry in self.entries if entry.record == record), None)

    def publish_again(self, behind: str) -> bool:
        """Its topic is never lost."""
        raise AssertionError(behind)

    def published_own(self) -> str | None:
        """The largest CSN below the mark."""
        published = [e.record for e in self.entries if e.id <= self.published]
        return max((r.csn for r in published if isinstance(r, Change)), default=None)

    def close_abandoned_group(self) -> None:
        """Count the calls."""
        self.abandoned_groups_closed += 1

    def compared_up_to(self) -> tuple[int, OwnTopic]:
        """Nothing was compared."""
        return 0, OwnTopic()

    def mark_compared(self, offset: int, past: OwnTopic) -> None:
        """Remember nothing."""

    def renumber(self, after: int, above: str, clock_ms: int) -> int:
        """Number what stands behind this entry by the clock."""
        generator = Generator.behind(RID, above)
        for place, entry in enumerate(self.entries):
            if entry.id > after and isinstance(entry.record, Change):
                csn, generator = generator.next(clock_ms // 1_000)
                self.entries[place] = replace(entry, record=entry.record._replace(csn=csn))
        return sum(entry.id > after for entry in self.entries)

    def reconcile(self, past: OwnTopic) -> str | None:
        """What the topic holds counts as published."""
        self.published = max(self.published, past.found)
        return past.own

    def follow(self, agreement: str | None) -> None:
        """It has no other agreement."""

    def start_session(
        self, session: str, own: str | None, *, lost: bool, position: Position | None = None
    ) -> Hello:
        """Start from the position."""
        self.position = (position or self.position).in_session(session)
        return self.position.hello(own, lost=lost)

    def apply(self, batch: ApplyBatch, next_offset: int, clock_ms: int) -> AppliedBatch:
        """Store the position."""
        if self.busy:
            self.busy -= 1
            raise StoreBusyError("database is locked")
        assert clock_ms > 0
        self.position = replace(batch.position, epoch=self.epoch)
        self.write(self.position.applied(), self.position.session)
        self.epoch, self.updates_offset = self.epoch + 1, next_offset
        return AppliedBatch(self.position, ())


@dataclass(slots=True)
class MemoryTopics:
    """The two topics of a replica in memory."""

    changes: list[bytes] = field(default_factory=list)
    updates: list[tuple[int, bytes]] = field(default_factory=list)
    is_connected: bool = True

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """What is there."""
        yield from list(enumerate(self.changes))[offset:]

    def last(self) -> bytes | None:
        """The last of them."""
        return self.changes[-1] if self.changes else None

    def publish(self, values: list[bytes]) -> None:
        """Write them."""
        self.changes += values

    def poll(self, timeout_ms: int) -> list[tuple[int, bytes]]:
        """What came since."""
        assert timeout_ms >= 0
        found, self.updates = self.updates, []
        return found

    def records(self, *but: type[Record]) -> list[Record]:
        """What the agent published, except these kinds."""
        decoded = [wire.decode(value)[1] for value in self.changes]
        return [record for record in decoded if not isinstance(record, but)]


@pytest.fixture
def store() -> MemoryStore:
    """A new replica's."""
    return MemoryStore()


@pytest.fixture
def topics() -> MemoryTopics:
    """Both empty."""
    return MemoryTopics()


@pytest.fixture
def agent(store: MemoryStore, topics: MemoryTopics) -> Agent:
    """In its first session."""
    started = Agent(RID, store, topics, topics)
    started.start()
    return started


def batch(session: str, offset: int = 0) -> tuple[int, bytes]:
    """The hub's first batch, without items."""
    update = Update("to-r7", 1, session, 1, 0, 1, Ruv("5f00"), 0, 1, ())
    return offset, encode_update(update)


def test_a_round_publishes_then_applies_and_the_next_answers(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """Any store that keeps the contract is a replica."""
    store.write(CHANGE)
    topics.updates.append(batch(agent.session, 5))

    agent.run_once()
    agent.run_once()

    assert topics.records(Hello) == [
        CHANGE,
        Heartbeat(1),
        Applied(1, 1, 1, Ruv("5f00"), reached=1),
    ]
    assert (store.published, store.updates_offset) == (2, 6)


def test_log_that_a_server_keeps_is_counted_and_named_once(
    agent: Agent, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever holds it must end before the disk is full."""
    agent.check_schema()
    assert (agent.counts.log_held_bytes, agent.counts.log_room_bytes) == (0, math.inf)
    store.held = HeldLog(2_000_000_000, 500_000_000, "process 7, open for 900 seconds")

    for _ in range(2):
        agent.schema_checked_s = 0
        agent.check_schema()

    assert (agent.counts.log_held_bytes, agent.counts.log_room_bytes) == (2e9, 5e8)
    (said,) = [one.getMessage() for one in caplog.records if "of its log" in one.getMessage()]
    assert "process 7, open for 900 seconds" in said


def test_an_agent_counts_what_it_does(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """What a monitoring system shows of it is no estimate."""
    store.write(CHANGE)
    store.write(CHANGE)
    topics.updates.append(batch(agent.session, 5))

    agent.check_schema()
    before = replace(agent.counts)
    agent.schema_checked_s = time.monotonic()
    agent.run_once()

    assert (before.backlog, before.published, before.batches) == (2, 0, 0)
    assert (agent.counts.published, agent.counts.batches, agent.counts.sessions) == (2, 1, 1)
    assert agent.counts.held_s() == 0


def test_records_that_wait_for_the_database_are_seen(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """A long transaction of an application is the usual reason why a replica lags."""
    store.busy = 1
    topics.updates.append(batch(agent.session))

    agent.run_once()
    held_s = agent.counts.held_s()
    agent.run_once()

    assert held_s > 0
    assert agent.counts.held_s() == 0


def test_a_transaction_that_blocks_publishing_is_told(agent: Agent, store: MemoryStore) -> None:
    """Nothing is received meanwhile, and the agent waits all the same."""
    store.write(CHANGE)
    store.busy_marking = 1

    agent.run_once()
    held_s = agent.counts.held_s()
    agent.run_once()

    assert held_s > 0
    assert agent.counts.held_s() == 0


def test_a_busy_store_is_tried_again_and_reported_once(
    agent: Agent, store: MemoryStore, topics: MemoryTopics, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch that a local transaction held up is neither lost nor applied twice."""
    caplog.set_level("INFO")
    store.busy = 3
    topics.updates.append(batch(agent.session))

    for _ in range(5):
        agent.run_once()

    assert [r for r in topics.records() if isinstance(r, Applied)] == [
        Applied(1, 1, 1, Ruv("5f00"), reached=1)
    ]
    assert caplog.text.count("a long transaction blocks the agent") == 1
    assert caplog.text.count("the database is free again") == 1


def test_a_journal_without_news_closes_what_a_client_abandoned(
    agent: Agent, store: MemoryStore
) -> None:
    """Only then nothing of that group can still be on its way."""
    store.write(CHANGE)

    assert agent.publish()
    assert store.abandoned_groups_closed == 0
    assert not agent.publish()
    assert store.abandoned_groups_closed == 1


def test_changes_of_a_clock_ahead_are_named_before_they_are_sent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They go on behind what its topic holds, whether the hub has taken that or not.

    If not, it will put them into quarantine: the agent's log is where somebody looks first.
    """
    store, topics = MemoryStore(), MemoryTopics()
    agent = Agent(RID, store, topics, topics, clock_ms=lambda: 1_000, watch=ClockWatch(RID))
    agent.own_csn = CSN
    store.write(CHANGE._replace(csn=Generator.behind(RID, CSN).next(0)[0]))

    agent.publish()

    assert "correct it; the hub puts such changes into quarantine as `skew`" in caplog.text


def test_a_hello_names_what_is_not_published_yet(store: MemoryStore, topics: MemoryTopics) -> None:
    """What was written while no agent ran comes behind it, part by part."""
    store.write(CHANGE)
    store.write(CHANGE)
    agent = Agent(RID, store, topics, topics)

    agent.start()
    agent.run_once()

    hello, *told = topics.records()
    assert isinstance(hello, Hello)
    assert hello.unpublished == 2
    assert told == [CHANGE, CHANGE, Heartbeat(1)]


def test_a_transaction_that_is_too_large_for_one_turn_is_said_to_have_a_rest(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """The hub holds back what it has of it, and would take all replicas for level."""
    agent.run_once()
    part = CHANGE._replace(prim_csn=CSN)
    for _ in range(PUBLISH_ROWS):
        store.write(part)
    store.write(Commit(CSN))

    agent.run_once()
    cut_off = topics.records(Hello, Change)
    agent.run_once()

    assert cut_off == [Heartbeat(1), Heartbeat(1, 1)]
    assert topics.records(Hello, Change)[2:] == [Commit(CSN), Heartbeat(1)]


def test_a_transaction_that_nobody_ends_is_told_once(agent: Agent, topics: MemoryTopics) -> None:
    """The journal is empty: there is no rest of it."""
    agent.open_group = True

    agent.run_once()
    agent.run_once()

    assert topics.records(Hello) == [Heartbeat(1)]


def test_a_change_keeps_the_csn_with_which_it_was_given_to_the_topic() -> None:
    """A clock that is corrected between two attempts must not make two changes of one.

    What was written behind it by the wrong clock, and given to nobody, gets a CSN of the right one.
    """
    store, topics, clock_s = MemoryStore(busy_marking=1), MemoryTopics(), time_of(CSN)
    agent = Agent(RID, store, topics, topics, lambda: clock_s * 1_000, ClockWatch(RID))
    agent.session = "s"
    store.write(CHANGE)

    agent.run_once()
    clock_s -= 30 * 3_600
    store.write(CHANGE._replace(csn=format_csn(CsnParts(time_of(CSN) + 3_600, 0, RID, 0))))
    agent.run_once()

    first, again, behind = (r for r in topics.records() if isinstance(r, Change))
    assert first == again == CHANGE
    assert behind.csn == Generator.behind(RID, CSN).next(0)[0]


def test_a_goodbye_names_what_is_left_unpublished(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """Who reads it knows that the database has more than the topic."""
    store.write(CHANGE)

    agent.say_goodbye()

    assert topics.records(Hello) == [Goodbye(1, 1)]


def test_an_agent_without_its_broker_ends_without_a_goodbye(
    agent: Agent, topics: MemoryTopics
) -> None:
    """Silence tells as much, and the end waits for nobody."""
    topics.is_connected = False

    agent.say_goodbye()

    assert topics.records(Hello) == []


def test_an_agent_that_starts_says_goodbye_for_one_that_could_not(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """It was killed and its file put back: the comparison with the topic may take minutes."""
    killed = agent.session

    Agent(RID, store, topics, topics).start()

    told = [wire.decode(value) for value in topics.changes]
    assert [type(record) for _, record in told] == [Hello, Goodbye, Hello]
    assert told[1][0] == killed


def test_a_goodbye_is_said_once(agent: Agent, store: MemoryStore, topics: MemoryTopics) -> None:
    """The next agent has nothing to add to it."""
    agent.say_goodbye()

    Agent(RID, store, topics, topics).start()

    assert [type(record) for record in topics.records()] == [Hello, Goodbye, Hello]


def test_an_agent_that_the_hub_stopped_ends_with_the_reason() -> None:
    """It would run on for ever, and nobody would know."""
    store, topics = MemoryStore(), MemoryTopics()
    agent = Agent(RID, store, topics, topics)
    agent.start()
    for session in ("another", agent.session):
        stopped = Stopped("a", 1, session, "hub_behind", "put back a newer state")
        topics.updates.append((len(topics.updates), wire.encode_stopped(stopped)))

    with pytest.raises(StateError, match=r"stopped this replica \(hub_behind\): put back a newer"):
        agent.receive(0)


def test_a_schema_is_published_behind_the_hello_and_once(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """The hub takes nothing before the session starts."""
    store.schema = PublishedSchema("digest", "{}")

    agent.start()
    agent.run_once()

    kinds = [type(wire.decode(value)[1]) for value in topics.changes]
    assert kinds[kinds.index(PublishedSchema) - 1] is Hello
    assert kinds.count(PublishedSchema) == 1


def test_writes_that_stay_are_told_when_they_grow_and_in_each_session(
    agent: Agent, store: MemoryStore, topics: MemoryTopics
) -> None:
    """A hub that was restored may lack what was told to the one before."""
    told = []
    agent.start()
    for rows in (0, 2, 2, 5):
        store.staying = {"t": TableWrites(rows, 7)} if rows else {}
        agent.schema_checked_s = 0
        agent.run_once()
    agent.start()
    agent.schema_checked_s = 0
    agent.run_once()

    for value in topics.changes:
        session, record = wire.decode(value)
        if isinstance(record, LocalWrites):
            told.append((session == agent.session, record.tables))
    texts = [f'{{"t":{{"rows":{rows},"last_ms":7}}}}' for rows in (2, 5, 5)]
    assert told == [(False, texts[0]), (False, texts[1]), (True, texts[2])]
