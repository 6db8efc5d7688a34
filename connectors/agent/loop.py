"""The agent's loop: publishes what was written at one replica, applies what others wrote.

One process, one thread. What must not be lost is in the database; records that Kafka may not have
received are published again, in the same order and with the same content.
"""

import logging
import math
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace

from connectors import wire
from connectors.agent.access import KafkaAccess
from connectors.agent.clock import ClockWatch, renumbered_text
from connectors.agent.contract import (
    JournalEntry,
    KeptRows,
    Publisher,
    Receiver,
    ReplicaStore,
    StoreBusyError,
)
from connectors.agent.losses import (
    UncarriedLog,
    held_text,
    log_losses,
    lost_text,
    moved_text,
    stranded_text,
)
from connectors.agent.metrics import AgentCounts, served_metrics
from connectors.agent.outage import Outage, StopRequested
from connectors.agent.own_topic import IgnoredRecords, OwnTopic, compare
from connectors.agent.settings import AgentSettings
from connectors.agent.topics import ChangesTopic, UpdatesTopic
from connectors.live_value import LiveAccess
from streaming.core.delivery.consumer import (
    ApplyBatch,
    BufferChunk,
    DropRecord,
    EndAgent,
    Position,
    SendHello,
    SkipRecord,
    receive,
)
from streaming.core.model.change import Change
from streaming.core.model.errors import HubError, StateError, WireError
from streaming.core.records.local_writes import tables_text
from streaming.core.records.record import (
    Abort,
    Applied,
    Commit,
    Goodbye,
    Heartbeat,
    LocalWrites,
    Record,
)
from streaming.core.text.wording import as_count

PUBLISH_ROWS = 2_000
PUBLISH_BYTES = 8_000_000
"""How much of the journal is published at a time, at most."""
SNAPSHOT_ROWS = 2_000
"""How many rows of a snapshot are read in one local transaction, which blocks other writers."""
POLL_MS = 20
"""How long the agent waits for an update before it checks the journal again."""
SCHEMA_CHECK_S = 1.0
"""How often the agent looks whether the database's schema was changed."""
HELD_LOG_BYTES = 1_000_000_000
"""The agent warns when the database's server keeps so much of its log for it."""
HEARTBEAT_MOVED_S = 1.0
HEARTBEAT_S = 10.0
"""The interval of heartbeats while what they say moves, and while it does not."""

log = logging.getLogger(__name__)


def wall_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def run(
    access: KafkaAccess, readers: LiveAccess, store: ReplicaStore, stop: threading.Event
) -> None:
    """Run one replica's agent on its open store until `stop` is set; HubError if it fails.

    `readers`: who may read its metrics now.
    """
    settings, outage = access.settings, Outage(stop, access)
    with outage.logged, closing(ChangesTopic(outage)) as changes:
        updates = None
        _follow(store, settings.agreement)
        if settings.updates_topic is not None:
            updates = UpdatesTopic(settings.updates_topic, store.updates_offset, outage)
        watch = ClockWatch(settings.rid, settings.skew_s)
        agent = Agent(settings.rid, store, changes, updates, watch=watch)
        try:
            port, host = settings.metrics_port, settings.metrics_host
            with served_metrics(port, settings.replica, agent.counts, host, readers):
                agent.start()
                log.info("%s", ready_text(settings, store.backlog()))
                while not stop.is_set():
                    agent.run_once()
        except StopRequested:
            log.info("stopped while it waited for Kafka; the journal keeps what is not published")
        finally:
            stop.set()  # from here on nothing waits for Kafka for longer than a moment
            agent.say_goodbye()
            if updates is not None:
                updates.close()
    log.info("ended")


def _follow(store: ReplicaStore, agreement: str | None) -> None:
    """Go on with this agreement; a position that another one brought says so in the log."""
    before = store.position
    store.follow(agreement)
    if agreement and before.is_of_another(agreement):
        log.warning("%s", moved_text(before.agreement, agreement))


def ready_text(settings: AgentSettings, unpublished: int) -> str:
    """What an agent does from its start on, for people: the last that a start says."""
    tables = as_count(len(settings.tables), "table")
    backlog = f", of which {as_count(unpublished, 'entry', 'entries')} wait" if unpublished else ""
    receives = (
        f"what others write comes from {settings.updates_topic}"
        if settings.updates_topic
        else "nothing is sent to it: no agreement names it"
    )
    return (
        f"ready: what is written to {tables} of {settings.database.shown} goes to"
        f" {settings.changes_topic}{backlog}; {receives}"
    )


@dataclass(slots=True)
class Agent:
    """A store between its two topics; without updates nothing is sent to the replica."""

    rid: int
    store: ReplicaStore
    changes: Publisher
    updates: Receiver | None
    clock_ms: Callable[[], int] = wall_ms
    watch: ClockWatch = field(default_factory=lambda: ClockWatch(0))
    inbox: deque[tuple[int, bytes]] = field(default_factory=deque)
    handed: int = 0  # the id of the last entry that was given to the topic
    own_csn: str = ""  # the largest CSN of those, and of what the topic held before
    open_group: bool = False  # a transaction is in the topic without its commit
    session: str = ""
    told: int = 0  # the hub epoch up to which the topic tells what was applied in the session
    heartbeat: Heartbeat = field(default_factory=lambda: Heartbeat(-1))  # what was last said
    heartbeat_at_s: float = 0.0
    heartbeat_s: float = HEARTBEAT_S  # between those that say the same
    schema_checked_s: float = 0.0
    local_writes: tuple[str, str] = ("", "")  # a session, and what was last told in it
    holds_much: bool = False
    is_busy: bool = False
    kept: KeptRows = field(default_factory=KeptRows)
    uncarried: UncarriedLog = field(default_factory=UncarriedLog)
    counts: AgentCounts = field(default_factory=AgentCounts)
    ignored: IgnoredRecords = field(default_factory=IgnoredRecords)

    # -- the start of a session -------------------------------------------------------------

    def start(self) -> None:
        """Compare the database with its own topic, then publish a hello."""
        self._end_session_before()
        offset, past = self.store.compared_up_to()
        end = compare(past, self.changes.read(offset), offset, self.rid, self.store.find)
        own = self.reconcile(past)
        self.greet(past, own, lost=past.missing > 0)
        self.store.mark_compared(end, past)

    def reconcile(self, past: OwnTopic) -> str | None:
        """Move the database past its own topic, end what is there in part; the hello's `own`."""
        own = self.store.reconcile(past)
        self.own_csn = max(past.csn, self.store.published_own() or "")
        self._finish_interrupted(past)
        if past.missing or past.reported:
            log.warning("%s", lost_text(past))
        if past.stranded:
            log.warning("%s", stranded_text(past))
        return own

    def greet(self, past: OwnTopic, own: str | None, *, lost: bool) -> None:
        """Start a session, and publish again in it what the hub did not take."""
        self._start_session(own, lost=lost, stranded=len(past.stranded))
        self.changes.publish([wire.encode(self.session, one) for one in past.stranded])

    def go_on(self, past: OwnTopic) -> None:
        """Go on in the session in which the run before ended, and abort what the database lacks."""
        position = self.store.position
        self.session, self.told = position.session or "", past.reached
        self.store.position = replace(position, answered=position.generation > 0)
        for prim_csn in past.open.keys() - past.unfinished():
            self._publish_record(Abort(prim_csn))
        log.info("session %s goes on: covers %d", self.session, position.covers)

    def _end_session_before(self) -> None:
        """Say goodbye for an agent that did not: its last record tells in which session it was.

        Until the hello, which may take a while, nobody knows what the database holds.
        """
        last = self.changes.last()
        try:
            found = wire.decode(last) if last is not None else None
        except WireError:  # the comparison names it
            return
        if found is not None and not isinstance(found[1], Goodbye):
            self.changes.publish([wire.encode(found[0], self._goodbye())])

    def say_goodbye(self) -> None:
        """Publish that the session has ended, if Kafka takes it at once; otherwise silence tells.

        It stands behind all that the session published.
        """
        if not self.session or not self.changes.is_connected:
            return
        try:
            self._publish_record(self._goodbye())
        except (StopRequested, HubError) as error:
            log.info("its goodbye may not be in its topic: %s", error or "Kafka does not answer")

    def _goodbye(self) -> Goodbye:
        return Goodbye(self.store.epoch, self.store.backlog())

    def _finish_interrupted(self, past: OwnTopic) -> None:
        """Publish the rest of an interrupted transaction, in the session that began it.

        A hello would abort it, although it is committed here.
        """
        interrupted = past.unfinished()
        while entries := self._next_entries():
            rest = [entry for entry in entries if entry.transaction in interrupted]
            if not rest or rest[0] is not entries[0]:
                return
            self._publish_entries(rest, past.session or "")

    def _start_session(
        self, own: str | None, *, lost: bool, position: Position | None = None, stranded: int = 0
    ) -> None:
        """Publish a hello; `stranded`: how many records are published again right behind it."""
        hello = self.store.start_session(str(uuid.uuid4()), own, lost=lost, position=position)
        self.session, self.told = self.store.position.session or "", self.store.position.last
        hello = replace(hello, unpublished=self.store.backlog() + stranded or None)
        self._publish_record(hello)
        self.heartbeat = Heartbeat(hello.epoch, hello.unpublished)
        self.counts.sessions += 1
        log.info("session %s starts: covers %d", self.session, hello.covers)

    # -- one iteration of the loop ----------------------------------------------------------

    def run_once(self) -> None:
        """Publish local changes, send a heartbeat if one is due, receive and apply updates.

        A heartbeat right behind what is published finds the journal empty as often as it is.
        """
        try:
            self.check_schema()
            published = self.publish()
            self.send_heartbeat()
            self.receive(0 if published else POLL_MS)
            self.uncarried.remind(self.kept)
            if self.is_busy:
                log.info("the database is free again, and the agent goes on")
            self.is_busy = False
            self.counts.held_since_s = None
        except StoreBusyError as error:
            if self.counts.held_since_s is None:
                self.counts.held_since_s = time.monotonic()
            if not self.is_busy:
                log.warning("a long transaction blocks the agent, which retries: %s", error)
            self.is_busy = True

    def check_schema(self) -> None:
        """Every second let the store compare the schema, publish what is new in it, and count."""
        now_s = time.monotonic()
        if now_s - self.schema_checked_s >= SCHEMA_CHECK_S:
            self.store.check_schema()
            schema = self.store.unpublished_schema()
            if schema is not None:
                self._publish_record(schema)
                self.store.mark_schema_published(schema)
            self._tell_local_writes()
            self.counts.backlog, self.counts.covers = (
                self.store.backlog(),
                self.store.position.covers,
            )
            self.kept = self.store.kept_rows()
            self.counts.uncarried, self.counts.saved = self.kept.uncarried, self.kept.saved
            self._look_at_log()
            self.schema_checked_s = now_s

    def _tell_local_writes(self) -> None:
        """Publish how many rows were written that stay in this database, if there are any."""
        found = self.store.local_writes()
        told = self.session, tables_text(found)
        if found and told != self.local_writes:
            self._publish_record(LocalWrites(told[1]))
            self.local_writes = told

    def _look_at_log(self) -> None:
        """Count what the database's server keeps of its log, and warn when that is much."""
        held = self.store.held_log()
        if held is None:
            return
        self.counts.log_held_bytes = held.bytes
        self.counts.log_room_bytes = math.inf if held.room_bytes is None else held.room_bytes
        is_much = held.bytes >= HELD_LOG_BYTES
        if is_much and not self.holds_much:
            log.warning("%s", held_text(held))
        self.holds_much = is_much

    def publish(self) -> bool:
        """Publish the next journal entries, or journal some; return whether there were any."""
        entries = self._next_entries()
        if not entries:
            self.store.close_abandoned_group()
            return self.store.journal_snapshot(SNAPSHOT_ROWS)
        self._publish_entries(entries, self.session)
        return True

    def receive(self, timeout_ms: int) -> None:
        """Apply the next records of the updates topic, if any arrive in that time."""
        if self.updates is None:
            time.sleep(timeout_ms / 1000)
            return
        if not self.inbox:
            self.inbox.extend(self.updates.poll(timeout_ms))
            self.counts.held_since_s = time.monotonic() if self.inbox else None
        while self.inbox:  # a record leaves the inbox once it is applied: the store may be busy
            self._receive_record(*self.inbox[0])
            self.inbox.popleft()
        self.counts.held_since_s = None

    def send_heartbeat(self) -> None:
        """Publish the epoch and what is unpublished: every second if they moved, else every ten.

        At once, when the last one said that there is something unpublished and there is not, and
        the other way round when that is the rest of a transaction.
        """
        due = Heartbeat(self.store.epoch, self.store.backlog() or None)
        last, silent_s = self.heartbeat, time.monotonic() - self.heartbeat_at_s
        turns = bool(last.unpublished) != bool(due.unpublished)
        is_urgent = turns and (self.open_group or not due.unpublished)
        if is_urgent or silent_s >= (self.heartbeat_s if due == last else HEARTBEAT_MOVED_S):
            self._publish_record(due)
            self.heartbeat, self.heartbeat_at_s = due, time.monotonic()

    def _receive_record(self, offset: int, value: bytes) -> None:
        try:
            update = wire.decode_answer(value)
        except WireError as error:  # the next batch detects the gap
            self.ignored.note(f"update at offset {offset}", error)
            return
        outcome = receive(self.store.position, update)
        match outcome:
            case ApplyBatch():
                self._watch_clocks(item.csn for item in outcome.rows)
                applied = self.store.apply(outcome, offset + 1, self.clock_ms())
                self.counts.batches += 1
                self.counts.items += len(outcome.items)
                self.counts.refused += len(applied.refused)
                log_losses(outcome, applied)
            case BufferChunk(position):
                self.store.position = position
            case SendHello(position, why):
                log.warning("a new session is needed: %s", why)
                while self.open_group and self.publish():
                    pass
                self._start_session(self.store.published_own(), lost=False, position=position)
            case EndAgent(why):
                raise StateError(why)
            case SkipRecord() | DropRecord():
                pass

    # -- publishing -------------------------------------------------------------------------

    def _next_entries(self) -> list[JournalEntry]:
        """The next journal entries, with CSNs that the hub takes.

        Those of a clock that was too far ahead when they were written, and was corrected before
        they were published, are given anew.
        """
        entries = self.store.unpublished(PUBLISH_ROWS, PUBLISH_BYTES)
        csns = _csns(entry for entry in entries if entry.id > self.handed)
        clock_ms = self.clock_ms()
        if not self.watch.is_any_refused(csns, self.own_csn, clock_ms):
            return entries
        changes = self.store.renumber(self.handed, self.own_csn, clock_ms)
        log.warning("%s", renumbered_text(changes))
        return self.store.unpublished(PUBLISH_ROWS, PUBLISH_BYTES)

    def _publish_entries(self, entries: list[JournalEntry], session: str) -> None:
        csns = _csns(entries)
        self._watch_clocks(csns)
        self.handed, self.own_csn = entries[-1].id, max([self.own_csn, *csns[-1:]])
        values = [wire.encode(entry.session or session, entry.record) for entry in entries]
        self.changes.publish(values)
        self.store.mark_published(entries[-1])
        applied = (entry.record for entry in entries if isinstance(entry.record, Applied))
        self.told = max([self.told, *(one.reached or 0 for one in applied)])
        self.counts.published += len(entries)
        self.uncarried.add_published(entries)
        groups = [entry.record for entry in entries if entry.transaction is not None]
        if groups:
            self.open_group = not isinstance(groups[-1], Commit)

    def _watch_clocks(self, csns: Iterable[str | None]) -> None:
        """Name the clocks that are ahead before the hub refuses what they made."""
        for finding in self.watch.look(csns, self.clock_ms()):
            log.warning(finding)

    def _publish_record(self, record: Record) -> None:
        self.changes.publish([wire.encode(self.session, record)])


def _csns(entries: Iterable[JournalEntry]) -> list[str]:
    """The CSNs of the changes among journal entries, which grow."""
    return [entry.record.csn for entry in entries if isinstance(entry.record, Change)]
