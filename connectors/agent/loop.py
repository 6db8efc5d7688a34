"""The agent of one SQLite replica: says what was written here, applies what others wrote.

One process, one thread. What must not be lost is in the database; Kafka is told again whatever it
may not have got, in the same order and with the same content.
"""

import fcntl
import logging
import sqlite3
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from connectors import wire
from connectors.agent.own_topic import OwnTopic
from connectors.agent.settings import AgentSettings
from connectors.agent.topics import ChangesTopic, Outage, StopRequested, UpdatesTopic
from connectors.sqlite.journal import JournalEntry
from connectors.sqlite.store import SqliteStore
from streaming.core.delivery.consumer import Apply, Buffer, Drop, Position, SayHello, Skip, receive
from streaming.core.model.change import Change
from streaming.core.model.csn import rid_of
from streaming.core.model.errors import StateError, WireError
from streaming.core.model.record import Commit, Heartbeat, Record

ROUND_ROWS = 500
ROUND_BYTES = 8_000_000
"""How much of the journal is published at a time, at most."""
POLL_MS = 20
"""How long the agent waits for an update before it looks at the journal again."""
BEAT_MOVED_S = 1.0
BEAT_S = 10.0
"""How long it keeps silent about its epoch, if it moved and if it did not."""

log = logging.getLogger(__name__)


def wall_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def run(settings: AgentSettings, stop: threading.Event) -> None:
    """Run one replica's agent until `stop` is set; HubError if it cannot go on."""
    outage = Outage(stop)
    with (
        alone(settings.database),
        closing(
            SqliteStore.open(
                settings.database,
                settings.rid,
                settings.tables,
                record_bytes=settings.record_bytes,
                rows_are_shared=settings.rows_are_shared,
            )
        ) as store,
        closing(ChangesTopic(settings, outage)) as changes,
    ):
        updates = None
        if settings.updates_topic is not None:
            offset = store.updates_offset
            updates = UpdatesTopic(settings, settings.updates_topic, offset, outage)
        agent = Agent(settings, store, changes, updates)
        try:
            agent.start()
            while not stop.is_set():
                agent.turn()
        except StopRequested:
            log.info("stopped while Kafka was away; the journal keeps what it was not told")
        finally:
            if updates is not None:
                updates.close()
    log.info("ended")


@contextmanager
def alone(database: Path) -> Iterator[None]:
    """Keep a second agent off the same database; StateError if there is one."""
    with database.with_name(f"{database.name}.agent").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(f"another agent has {database} open: end that one first") from error
        yield


class Changes(Protocol):
    """The replica's own topic, in whatever broker."""

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Every record from this offset to the end as it is now, as (offset, value)."""

    def publish(self, values: list[bytes]) -> None:
        """Write records in order and return when all are in the topic."""


class Updates(Protocol):
    """The topic in which the hub speaks to the replica."""

    def poll(self, timeout_ms: int) -> list[tuple[int, bytes]]:
        """The next records as (offset, value); none if none comes in that time."""


@dataclass(slots=True)
class Agent:
    """A store between its two topics."""

    settings: AgentSettings
    store: SqliteStore
    changes: Changes
    updates: Updates | None
    clock_ms: Callable[[], int] = wall_ms
    inbox: deque[tuple[int, bytes]] = field(default_factory=deque)
    open_group: bool = False  # a transaction is in the topic without its commit
    session: str = ""
    told_epoch: int = -1
    told_at_s: float = 0.0
    is_busy: bool = False

    # -- the start of a session -------------------------------------------------------------

    def start(self) -> None:
        """Compare the database with its own topic, then say hello."""
        offset, past = self.store.past()
        end = offset
        for place, value in self.changes.read(offset):
            self._remember(past, value)
            end = place + 1
        own = self.store.reconcile(past)
        self._finish(past)
        if past.missing:
            log.warning(
                "the topic holds %d changes that the database lost, from %s on: the hub is told",
                len(past.missing),
                min(past.missing),
            )
        self._say_hello(own, lost=bool(past.missing))
        self.store.greeted(end, past)

    def _remember(self, past: OwnTopic, value: bytes) -> None:
        try:
            session, record = wire.decode(value)
        except WireError as error:
            log.warning("a record of the own topic is left aside: %s", error)
            return
        if not isinstance(record, Change) or rid_of(record.csn) == self.settings.rid:
            past.take(session, record, self.store.find)

    def _finish(self, past: OwnTopic) -> None:
        """Publish the rest of a transaction that was cut off, in the session that began it.

        A hello would abort it, although it is committed here.
        """
        cut_off = past.unfinished()
        while entries := self.store.unpublished(ROUND_ROWS, ROUND_BYTES):
            rest = [entry for entry in entries if _group(entry.record) in cut_off]
            if not rest or rest[0] is not entries[0]:
                return
            self._tell(rest, past.session or "")

    def _say_hello(self, own: str | None, *, lost: bool, position: Position | None = None) -> None:
        hello = self.store.greet(str(uuid.uuid4()), own, lost=lost, position=position)
        self.session = self.store.position.session or ""
        self._say(hello)
        log.info("session %s starts: covers %d", self.session, hello.covers)

    # -- one turn after the other -----------------------------------------------------------

    def turn(self) -> None:
        """Say what is new here, hear what is new elsewhere, give a sign of life."""
        try:
            said = self.publish()
            self.hear(0 if said else POLL_MS)
            self.beat()
            self.is_busy = False
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise
            if not self.is_busy:
                log.warning("a long transaction holds up the agent, it goes on trying: %s", error)
            self.is_busy = True

    def publish(self) -> bool:
        """Say the next journal rows; False: there was none."""
        entries = self.store.unpublished(ROUND_ROWS, ROUND_BYTES)
        if not entries:
            self.store.end_forgotten_group()
            return False
        self._tell(entries, self.session)
        return True

    def hear(self, timeout_ms: int) -> None:
        """Take the next records of the updates topic, if any comes in that time."""
        if self.updates is None:
            time.sleep(timeout_ms / 1000)
            return
        if not self.inbox:
            self.inbox.extend(self.updates.poll(timeout_ms))
        while self.inbox:
            self._take(*self.inbox[0])
            self.inbox.popleft()

    def beat(self) -> None:
        """Say the epoch every second if it moved, else every ten."""
        epoch, silent_s = self.store.epoch, time.monotonic() - self.told_at_s
        if silent_s >= (BEAT_S if epoch == self.told_epoch else BEAT_MOVED_S):
            self._say(Heartbeat(epoch))
            self.told_epoch, self.told_at_s = epoch, time.monotonic()

    def _take(self, offset: int, value: bytes) -> None:
        try:
            update = wire.decode_update(value)
        except WireError as error:  # a gap that it makes is noticed by the next batch
            log.warning("update at offset %d is left aside: %s", offset, error)
            return
        outcome = receive(self.store.position, update)
        match outcome:
            case Apply():
                self.store.apply(outcome, offset + 1, self.clock_ms())
            case Buffer(position):
                self.store.position = position
            case SayHello(position, why):
                log.warning("a new session is needed: %s", why)
                while self.open_group and self.publish():
                    pass
                self._say_hello(self.store.published_own(), lost=False, position=position)
            case Skip() | Drop():
                pass

    # -- saying -----------------------------------------------------------------------------

    def _tell(self, entries: list[JournalEntry], session: str) -> None:
        """Publish journal rows in order, then mark them."""
        values = [wire.encode(entry.session or session, entry.record) for entry in entries]
        self.changes.publish(values)
        self.store.mark_published(entries[-1].id)
        groups = [entry.record for entry in entries if _group(entry.record) is not None]
        if groups:
            self.open_group = not isinstance(groups[-1], Commit)

    def _say(self, record: Record) -> None:
        self.changes.publish([wire.encode(self.session, record)])


def _group(record: Record) -> str | None:
    """The transaction that a journal row belongs to, if it is one of several rows."""
    return record.prim_csn if isinstance(record, Change | Commit) else None
