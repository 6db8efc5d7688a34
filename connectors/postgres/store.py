"""A PostgreSQL database as a replica's store, whose log is the journal.

What is stored is the position, in the transaction that applies a batch, and a checkpoint of what
the topic has of the log, before the server may forget it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import psycopg

from connectors.agent.applying import behind_applied
from connectors.agent.contract import AppliedBatch, JournalEntry, KeptRows, StoreBusyError
from connectors.agent.own_topic import OwnTopic
from connectors.postgres import snapshot
from connectors.postgres.apply.batch import apply_batch
from connectors.postgres.apply.lock_wait import LockWait
from connectors.postgres.apply.rows import RowWriter, writers
from connectors.postgres.connection import agent_conninfo
from connectors.postgres.errors import store_error
from connectors.postgres.install.system import (
    Capture,
    StoredPosition,
    read_capture,
    read_position,
    write_capture,
    write_position,
)
from connectors.postgres.log.captured import TableCapture
from connectors.postgres.log.fold import Cut, FoldState, Limit, Numbering
from connectors.postgres.log.journal import LogCheckpoint, LogJournal
from connectors.postgres.log.lsn import lsn_text, parse_lsn
from connectors.postgres.log.numbering import numbering_text, parse_numbering
from connectors.postgres.log.stream import LogStream
from connectors.postgres.log.transactions import Assembler
from connectors.postgres.messages import EpochMessage, emit
from connectors.postgres.names import PUBLICATION, server_name
from connectors.postgres.sql import Session
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Change
from streaming.core.model.csn import MAX_SKEW_S, Generator
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table
from streaming.core.records.record import RECORD_BYTES, Commit, Hello, PublishedSchema, Snapshot

READ_AHEAD = 10_000
"""So many entries are read ahead of what is published, at most, and the rest of a transaction."""
CATCH_UP_S = 0.05
"""How long a call waits for the server to send what is committed."""


@contextmanager
def store_errors() -> Iterator[None]:
    """Raise PostgreSQL's errors as the StoreError that the agent's loop handles."""
    try:
        yield
    except psycopg.Error as error:
        raise store_error(error) from error


@dataclass(slots=True)
class PostgresStore:
    """An open replica; one session writes, another one streams the log."""

    session: Session
    stream: LogStream
    dsn: str
    capture: Capture
    stored: StoredPosition
    writers: Mapping[str, RowWriter]
    journal: LogJournal
    assembler: Assembler
    position: Position
    skew_s: int = MAX_SKEW_S
    agreement: str | None = None
    lock_wait: LockWait = field(default_factory=LockWait)

    @classmethod
    @store_errors()
    def open(
        cls,
        dsn: str,
        replica: str,
        tables: Iterable[Table],
        *,
        record_bytes: int = RECORD_BYTES,
        skew_s: int = MAX_SKEW_S,
    ) -> "PostgresStore":
        """Open an attached database; StateError: it is none. StoreBusyError: an agent has it.

        The origin is taken before the position is read: a backend of an agent before may still
        commit what it applies.
        """
        session = psycopg.connect(agent_conninfo(dsn), autocommit=True)
        try:
            capture = _attached(session)
            name = server_name(session.info.dbname, replica)
            session.execute("SELECT pg_replication_origin_session_setup(%s)", (name,))
            stored = read_position(session)
            known = writers(session, tables)
            captured = {one.server.oid: one.table for one in known.values()}
            journal = LogJournal(
                _checkpoint(capture, stored.rid),
                TableCapture(captured, record_bytes),
                stored.answered,
                parse_numbering(capture.numbering, stored.rid),
            )
            stream = LogStream.open(dsn, capture.slot, PUBLICATION, journal.checkpoint.lsn)
        except BaseException:
            session.close()
            raise
        return cls(
            session,
            stream,
            dsn,
            capture,
            stored,
            known,
            journal,
            Assembler(name),
            stored.position,
            skew_s,
        )

    def close(self) -> None:
        """Close both connections; nothing is lost by not doing so."""
        self.stream.close()
        self.session.close()

    # -- schema -----------------------------------------------------------------------------

    @store_errors()
    def check_schema(self) -> None:
        """StateError if the log has no changes of a table any more, or of another one of its name.

        A table that was dropped and made again leaves the publication, and nobody says so.
        """
        rows = self.session.execute(
            "SELECT r.prrelid FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid"
            " WHERE p.pubname = %s",
            (PUBLICATION,),
        )
        published = {row[0] for row in rows.fetchall()}
        gone = [one.table.name for one in self.writers.values() if one.server.oid not in published]
        if gone:
            raise StateError(
                f"table {gone[0]} is not in publication {PUBLICATION}: it was dropped and made"
                " again, or taken out, so changes of it may be missing; attach the database anew"
            )

    def unpublished_schema(self) -> PublishedSchema | None:
        """None: the schema of such a database is not published."""
        return None

    def mark_schema_published(self, schema: PublishedSchema) -> None:
        """Do nothing: there is none to be published."""

    def kept_rows(self) -> KeptRows:
        """Return that none is known to be in this database only."""
        return KeptRows()

    # -- journal ----------------------------------------------------------------------------

    @store_errors()
    def unpublished(self, rows_max: int, bytes_max: int) -> list[JournalEntry]:
        """The next entries that are not known to be in the topic."""
        self._catch_up()
        return self.journal.first(rows_max, bytes_max)

    @store_errors()
    def backlog(self) -> int:
        """How many entries are read and not published; 1 more while the log is not read to its end.

        It is 0 only if all that was committed when it was called is published.
        """
        return int(not self._catch_up()) + len(self.journal.entries)

    @store_errors()
    def mark_published(self, entry: JournalEntry) -> None:
        """Store that the topic has the log up to this entry, then let the server forget it."""
        self.journal.mark_published(entry)
        self._store_checkpoint()
        if isinstance(entry.record, Snapshot):
            snapshot.forget(self.session)

    @store_errors()
    def find(self, record: Change | Commit | Snapshot) -> int | None:
        """The id of the entry with the same content; 0: it is before the checkpoint."""
        self._catch_up()
        for entry in self.journal.entries:
            if entry.record == record:
                return entry.id
        name = record.csn if isinstance(record, Change) else getattr(record, "prim_csn", None)
        known = self.journal.checkpoint.csn
        return 0 if name is not None and known is not None and name <= known else None

    def publish_again(self, behind: str) -> bool:
        """Return whether nothing that was published follows: the server has forgotten it."""
        return (self.published_own() or "") <= behind

    def published_own(self) -> str | None:
        """The largest own CSN that is known to be in the topic."""
        known = (self.journal.checkpoint.csn, self.capture.own)
        return max((csn for csn in known if csn is not None), default=None)

    @store_errors()
    def journal_snapshot(self, rows_max: int) -> bool:
        """Tell the next rows of the snapshot through the log; False: none is being told."""
        return snapshot.tell(self.session, self.writers, rows_max)

    @store_errors()
    def renumber(self, after: int, above: str, clock_ms: int) -> int:
        """Give what was never published CSNs of this clock, above this one and what was applied."""
        self._catch_up()
        clock_s = clock_ms // 1000
        rid = self.journal.checkpoint.state.generator.rid
        generator = behind_applied(rid, above, self.position.ruv, clock_s, self.skew_s)
        self.journal.count_published(after)
        waiting = [one.record for one in self.journal.entries if isinstance(one.record, Change)]
        opnos = [one.opno for one in waiting if one.opno is not None]
        opno = min(opnos) - 1 if opnos else self.journal.state.opno
        self._go_on_from(generator, opno, Limit(clock_s, self._end_of_log()), is_ended=False)
        return len(waiting)

    def close_abandoned_group(self) -> None:
        """Do nothing: only what is committed is in the log, and whole."""

    def _catch_up(self) -> bool:
        """Read what is committed; return whether all of it is read."""
        end, until_s = self._end_of_log(), time.monotonic() + CATCH_UP_S
        while len(self.journal.entries) < READ_AHEAD:
            wait_s = until_s - time.monotonic()
            if self.stream.decoded < end and wait_s > 0:
                self.stream.release(self.stream.released, asks=True)
            data = self.stream.read(min(max(wait_s, 0), 0.005))
            if data is not None:
                transaction = self.assembler.add(data)
                if transaction is not None:
                    self.journal.add(transaction)
            elif self.stream.decoded >= end or wait_s <= 0:
                break
        return self.stream.decoded >= end

    def _end_of_log(self) -> int:
        query = "SELECT pg_current_wal_insert_lsn()::text"
        (text,) = self.session.execute(query).fetchone() or ("0/0",)
        return parse_lsn(str(text))

    def _store_checkpoint(self) -> None:
        """Store it durably; only then the server is told."""
        found = self.journal.checkpoint
        generator = found.state.generator
        self.capture = replace(
            self.capture,
            lsn=lsn_text(found.lsn),
            time_s=generator.time_s,
            sequence=generator.sequence,
            opno=found.state.opno,
            epoch=found.state.epoch,
            csn=found.csn,
            published=str(found.published),
            numbering=numbering_text(self.journal.numbering),
        )
        write_capture(self.session, self.capture)
        self.stream.release(found.lsn)

    # -- sessions ---------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The replica's epoch."""
        return self.stored.replica_epoch

    @property
    def updates_offset(self) -> int:
        """The offset in the updates topic behind the last batch that was applied."""
        return self.stored.updates_offset

    def compared_up_to(self) -> tuple[int, OwnTopic]:
        """The offset from which the own topic must be read, and the state at that offset."""
        capture = self.capture
        return capture.changes_offset, OwnTopic(capture.changes_session, capture.own)

    @store_errors()
    def mark_compared(self, offset: int, past: OwnTopic) -> None:
        """Store that the own topic was compared up to here, and its losses reported."""
        self.capture = replace(
            self.capture, changes_offset=offset, changes_session=past.session, own=past.own
        )
        write_capture(self.session, self.capture)

    @store_errors()
    def follow(self, agreement: str | None) -> None:
        """Read the updates of this agreement from here on."""
        before, self.agreement = self.position, agreement
        moved = before.moved(agreement)
        if moved != before:
            offset = 0 if before.agreement else self.stored.updates_offset
            self._write_position(replace(self.stored, position=moved, updates_offset=offset))
            self.position = moved

    @store_errors()
    def start_session(
        self, session: str, own: str | None, *, lost: bool, position: Position | None = None
    ) -> Hello:
        """Store a session and return its hello, which stands for each unpublished `applied`."""
        started = (position or self.position).in_session(session)
        answered = self.stored.position.epoch if self.stored.position.generation else -1
        kept = self.stored.position.in_session(session)
        self._write_position(replace(self.stored, position=kept, answered=answered))
        self.position = started
        self.journal.answer(answered)
        hello = started.hello(own, lost=lost, agreement=self.agreement)
        return replace(hello, snapshot=snapshot.named(self.session))

    @store_errors()
    def reconcile(self, past: OwnTopic) -> str | None:
        """Move past what the own topic holds; returns the `own` of the next hello.

        What is not published and whose numbers the topic has passed is numbered anew: the state
        behind the topic is stored at the end of what it has, before anything is published.
        """
        self._catch_up()
        known = [
            one.record.csn
            for one in self.journal.entries
            if isinstance(one.record, Change) and one.id <= past.found
        ]
        torn = past.torn()
        self.journal.count_published(past.found)
        if torn is not None:
            self.journal.checkpoint = replace(self.journal.checkpoint, published=torn - 1)
        if self.stored.replica_epoch <= past.epoch:
            self._raise_epoch(past.epoch + 1)
        if torn is not None or self._is_overtaken(past):
            self._number_behind(past)
        else:
            self._store_checkpoint()
        if not past.missing:
            return past.own
        shared = (*known, self.journal.checkpoint.csn, self.capture.own)
        return max((csn for csn in shared if csn and csn < past.first_missing), default=None)

    def _is_overtaken(self, past: OwnTopic) -> bool:
        """Return whether the next change would not be above everything in the topic."""
        state = self.journal.checkpoint.state
        if state.opno < past.opno:
            return True
        if _further(state.generator, past.csn) == state.generator:
            return False
        waiting = (one.record for one in self.journal.entries)
        first = next((one.csn for one in waiting if isinstance(one, Change)), "")
        return first <= past.csn

    def _number_behind(self, past: OwnTopic) -> None:
        """Go on behind the topic's CSN and opno, and read the log again from the checkpoint."""
        state = self.journal.checkpoint.state
        generator = _further(state.generator, past.csn)
        limit = self.journal.numbering.limit
        is_ended = not past.unfinished()
        self._go_on_from(generator, max(state.opno, past.opno), limit, is_ended=is_ended)

    def _go_on_from(
        self, generator: Generator, opno: int, limit: Limit | None, *, is_ended: bool
    ) -> None:
        """Number what is not published from here on, and read it again."""
        found, cut = self.journal.checkpoint, None
        if self.journal.is_within_transaction():
            cut = Cut(found.published, generator, opno, is_ended)
        else:
            found = replace(found, state=FoldState(generator, opno, found.state.epoch))
        numbering = Numbering(cut, limit)
        self.journal = LogJournal(found, self.journal.capture, self.journal.answered, numbering)
        self._store_checkpoint()
        self.stream.close()
        self.stream = _opened_again(self.dsn, self.capture.slot, found.lsn)
        self.assembler = Assembler(self.assembler.origin)

    def _raise_epoch(self, epoch: int) -> None:
        """Raise the replica's epoch at its place in the log: what was written keeps its own."""
        with self.session.transaction():
            self._write_position(replace(self.stored, replica_epoch=epoch))
            emit(self.session, EpochMessage(epoch))

    def _write_position(self, stored: StoredPosition) -> None:
        write_position(self.session, stored)
        self.stored = read_position(self.session)

    # -- applying ---------------------------------------------------------------------------

    @store_errors()
    def apply(self, batch: ApplyBatch, next_offset: int, clock_ms: int) -> AppliedBatch:
        """Apply a batch as one local transaction, and store the offset behind it with it."""
        done = apply_batch(
            self.session,
            self.writers,
            batch,
            next_offset,
            clock_ms,
            self.stored,
            self.lock_wait,
            self.skew_s,
        )
        self.stored = read_position(self.session)
        self.position = done.position
        return done


def _further(generator: Generator, csn: str) -> Generator:
    """The generator behind this CSN, if that is further; empty: there is none."""
    behind = Generator.behind(generator.rid, csn)
    return max(generator, behind, key=lambda one: (one.time_s, one.sequence))


def _attached(session: Session) -> Capture:
    capture = read_capture(session)
    if capture is None:
        raise StateError("the database is not attached to a replica: attach it first")
    return capture


def _checkpoint(capture: Capture, rid: int) -> LogCheckpoint:
    generator = Generator(rid, capture.time_s, capture.sequence)
    state = FoldState(generator, capture.opno, capture.epoch)
    return LogCheckpoint(parse_lsn(capture.lsn), state, capture.csn, int(capture.published))


def _opened_again(dsn: str, slot: str, lsn: int) -> LogStream:
    """The stream from here, once the backend of the one before has ended."""
    for _ in range(100):
        try:
            return LogStream.open(dsn, slot, PUBLICATION, lsn)
        except StoreBusyError:
            time.sleep(0.05)
    return LogStream.open(dsn, slot, PUBLICATION, lsn)
