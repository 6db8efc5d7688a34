"""A PostgreSQL database as a replica's store, whose log is the journal.

What is stored is the position, in the transaction that applies a batch, and a checkpoint of what
the topic has of the log, before the server may forget it.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

import psycopg

from connectors.agent.applying import behind_applied
from connectors.agent.contract import AppliedBatch, HeldLog, JournalEntry, KeptRows
from connectors.agent.found import IsKnown
from connectors.agent.lacking import all_lacking
from connectors.agent.new_start import NewStart
from connectors.agent.own_topic import OwnTopic
from connectors.agent.schema_publication import known_as
from connectors.postgres import snapshot
from connectors.postgres.apply import saved, uncarried
from connectors.postgres.apply.batch import apply_batch
from connectors.postgres.apply.lock_wait import LockWait
from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.connection import agent_conninfo
from connectors.postgres.errors import store_error
from connectors.postgres.install.reinit import reinit
from connectors.postgres.install.system import (
    Capture,
    StoredPosition,
    read_position,
    write_capture,
    write_position,
)
from connectors.postgres.log import local_writes
from connectors.postgres.log.captured import TableCapture
from connectors.postgres.log.captured_tables import (
    OtherFormError,
    note_logged,
    with_gone,
    write_known,
)
from connectors.postgres.log.checkpoint import captured, checkpoint_of
from connectors.postgres.log.fold import Cut, FoldState, Limit, Numbering
from connectors.postgres.log.held import held_log
from connectors.postgres.log.journal import LogJournal
from connectors.postgres.log.lsn import parse_lsn
from connectors.postgres.log.numbering import further, is_overtaken, later, parse_numbering
from connectors.postgres.log.opening import (
    OpenedDatabase,
    log_unreplicated,
    look_at_tables,
    open_database,
)
from connectors.postgres.log.reader import LogReader, is_idle_due
from connectors.postgres.messages import EpochMessage, emit
from connectors.postgres.schema.declared import DeclaredSchema
from connectors.postgres.sql import Session
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Change
from streaming.core.model.csn import MAX_SKEW_S, Generator
from streaming.core.model.table import Table
from streaming.core.records.local_writes import TableWrites
from streaming.core.records.record import RECORD_BYTES, Commit, Hello, PublishedSchema, Snapshot

KEPT_S = 10.0
"""So often it is looked up which rows are in this database only, and how much log is kept."""


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
    reader: LogReader
    opened: OpenedDatabase
    capture: Capture
    stored: StoredPosition
    position: Position
    record_bytes: int = RECORD_BYTES
    skew_s: int = MAX_SKEW_S
    agreement: str | None = None
    lock_wait: LockWait = field(default_factory=LockWait)
    stored_at_s: float = field(default_factory=time.monotonic)
    kept: KeptRows = field(default_factory=KeptRows)
    kept_at_s: float | None = None
    held: HeldLog | None = None
    held_at_s: float | None = None
    declared: DeclaredSchema = field(default_factory=DeclaredSchema)
    staying: Mapping[str, TableWrites] = field(default_factory=dict)

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
        """Open an attached database; errors as open_database, and those of the log's stream."""
        session = psycopg.connect(agent_conninfo(dsn), autocommit=True)
        try:
            found = open_database(session, replica, tables, skew_s)
            journal = LogJournal(
                checkpoint_of(found.capture, found.stored.rid),
                TableCapture(found.by_oid, record_bytes, found.forms),
                found.stored.answered,
                parse_numbering(found.capture.numbering, found.stored.rid),
            )
            reader = LogReader.open(dsn, found.name, journal)
        except BaseException:
            session.close()
            raise
        return cls(
            session,
            reader,
            found,
            found.capture,
            found.stored,
            found.stored.position,
            record_bytes,
            skew_s,
            staying=local_writes.read(session),
        )

    def close(self) -> None:
        """Close both connections; nothing is lost by not doing so."""
        self.reader.stream.close()
        self.session.close()

    @property
    def writers(self) -> Mapping[str, RowWriter]:
        """The replicated tables, by name."""
        return self.opened.writers

    @property
    def journal(self) -> LogJournal:
        """What is read of the log and not published."""
        return self.reader.journal

    # -- schema -----------------------------------------------------------------------------

    @store_errors()
    def check_schema(self) -> None:
        """Raise if the log lacks something of a table, which nobody else says (check_captured).

        A column that was added is logged: nobody replicates it.
        """
        now, others = look_at_tables(self.session, self.writers, self.opened.tables)
        log_unreplicated(others, self.opened.unreplicated)
        kept = with_gone(self.opened.tables, now)
        if kept != self.opened.tables:  # a varchar is longer: it must not become shorter unseen
            with self.session.transaction():
                write_known(self.session, kept)
        self.opened = replace(self.opened, tables=kept, unreplicated=others)

    @store_errors()
    def unpublished_schema(self) -> PublishedSchema | None:
        """The schema, if this process has not published it yet; its document, if it is new."""
        found = self.declared.read(self.session, self.writers, self.record_bytes)
        lacking = all_lacking(one.lacking for one in self.writers.values())
        return found.unpublished(self.position.generation, self.capture.schema, lacking)

    @store_errors()
    def mark_schema_published(self, schema: PublishedSchema) -> None:
        """Store that the topic holds the document of this schema."""
        published = known_as(self.position.generation, schema.digest)
        if schema.document is not None:
            self.capture = replace(self.capture, schema=published)
            write_capture(self.session, self.capture)
        self.declared.publication.note_published(published, schema)

    @store_errors()
    def kept_rows(self) -> KeptRows:
        """The rows that are only in this database; counted now and then, for there may be many."""
        now_s = time.monotonic()
        if self.kept_at_s is None or now_s - self.kept_at_s >= KEPT_S:
            listed = uncarried.count(self.session)
            first = uncarried.first(self.session) if listed else None
            self.kept = KeptRows(listed, saved.count(self.session), first)
            self.kept_at_s = now_s
        return self.kept

    def local_writes(self) -> Mapping[str, TableWrites]:
        """Table -> the writes that stay in this database, as they are stored."""
        return self.staying

    @store_errors()
    def held_log(self) -> HeldLog | None:
        """What the server keeps of its log for this agent, looked up now and then."""
        now_s = time.monotonic()
        if self.held_at_s is None or now_s - self.held_at_s >= KEPT_S:
            self.held, self.held_at_s = held_log(self.session, self.opened.name), now_s
        return self.held

    # -- journal ----------------------------------------------------------------------------

    @store_errors()
    def unpublished(self, rows_max: int, bytes_max: int) -> list[JournalEntry]:
        """The next entries that are not known to be in the topic.

        What follows in a transaction that the topic has in part is waited for: a hello ends that.
        """
        is_read = self._catch_up()
        while not is_read and self.journal.is_rest_unread():
            is_read = self._catch_up()
        entries = self.journal.first(rows_max, bytes_max)
        if is_read and not entries:
            self._pass_idle()
        return entries

    @store_errors()
    def backlog(self) -> int:
        """How many entries are read and not published; 1 more while the log is not read to its end.

        It is 0 only if all that was committed when it was called is published.
        """
        return int(not self._catch_up()) + len(self.journal.entries)

    @store_errors()
    def mark_published(self, entry: JournalEntry) -> None:
        """Store that the topic has the log up to this entry, then let the server forget it."""
        published = [one for one in self.journal.entries if one.id <= entry.id]
        self.journal.mark_published(entry)
        self._store_checkpoint(published)
        if isinstance(entry.record, Snapshot):
            snapshot.forget(self.session)

    @store_errors()
    def find(self, record: Change | Commit | Snapshot) -> int | None:
        """The id of the entry with the same content; 0: it is before the checkpoint.

        The server may take a while to decode the log, so it is waited for.
        """
        end, is_read = self._end_of_log(), False
        while (found := self.journal.find(record)) is None and not is_read:
            if not self.journal.may_follow(record):
                break
            is_read = self._read(end, beyond=True)
        return found

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
        return self._read(self._end_of_log())

    def _read(self, end: int, *, beyond: bool = False) -> bool:
        """Read the log as LogReader.catch_up; a form that it should not have is noted."""
        try:
            return self.reader.catch_up(end, beyond=beyond)
        except OtherFormError as error:
            note_logged(self.session, error.table, error.logged, is_told=False)
            raise

    def _pass_idle(self) -> None:
        """Let the server forget what nobody has to publish: what others write, and own applies."""
        silent_s, passed = time.monotonic() - self.stored_at_s, self.reader.stream.decoded
        held = passed - self.journal.checkpoint.lsn
        if is_idle_due(silent_s, held) or self.journal.holds_staying():
            self.journal.pass_idle(passed)
            self._store_checkpoint()

    def _end_of_log(self) -> int:
        query = "SELECT pg_current_wal_insert_lsn()::text"
        (text,) = self.session.execute(query).fetchone() or ("0/0",)
        return parse_lsn(str(text))

    def _store_checkpoint(self, published: Sequence[JournalEntry] = ()) -> None:
        """Store it durably, with what these entries list; only then the server is told."""
        found = self.journal.checkpoint
        self.capture = captured(self.capture, found, self.journal.numbering)
        concerns, staying = uncarried.concerns(self.session, published), self._passed_staying()
        if concerns or staying:
            with self.session.transaction():
                if concerns:
                    uncarried.note(self.session, self.writers, published, self.record_bytes)
                local_writes.add(self.session, staying)
                write_capture(self.session, self.capture)
            self.kept_at_s = None
            self.staying = local_writes.read(self.session)
        else:
            write_capture(self.session, self.capture)
        self.journal.passed_staying.clear()
        self.stored_at_s = time.monotonic()
        self.reader.stream.release(found.lsn)

    def _passed_staying(self) -> dict[str, int]:
        """Table -> the rows that stay here, of what the checkpoint has passed."""
        passed = self.journal.passed_staying
        tables = self.opened.by_oid if passed else {}
        return {tables[oid].name: rows for oid, rows in passed.items() if oid in tables}

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
        if self.stored.reinit and self.capture.csn is None:
            anew = started.hello(None, lost=False, agreement=self.agreement)
            hello = replace(anew, reinit=True)
        else:
            hello = started.hello(own, lost=lost, agreement=self.agreement)
        told, left_out = snapshot.named(self.session), self.opened.unreplicated
        return replace(hello, unreplicated=left_out or None, snapshot=told)

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
        if torn is not None or is_overtaken(self.journal, past):
            self._number_behind(past)
        else:
            self._store_checkpoint()
        if not past.missing:
            return past.own
        shared = (*known, self.journal.checkpoint.csn, self.capture.own)
        return max((csn for csn in shared if csn and csn < past.first_missing), default=None)

    def _number_behind(self, past: OwnTopic) -> None:
        """Go on behind the topic's CSN and opno, and read the log again from the checkpoint."""
        state = self.journal.checkpoint.state
        generator = further(state.generator, past.csn)
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
        before = self.journal
        self.reader.journal = LogJournal(found, before.capture, before.answered, numbering)
        self.journal.passed_staying = before.passed_staying
        self._store_checkpoint()
        self.reader.begin_again()

    def _raise_epoch(self, epoch: int) -> None:
        """Raise the replica's epoch at its place in the log: what was written keeps its own."""
        with self.session.transaction():
            self._write_position(replace(self.stored, replica_epoch=epoch))
            emit(self.session, EpochMessage(epoch))

    def _write_position(self, stored: StoredPosition) -> None:
        write_position(self.session, stored)
        self.stored = read_position(self.session)

    @store_errors()
    def reinit(self, start: NewStart, is_known: IsKnown, path: Path) -> int:
        """Empty the database so that it starts anew; returns how many rows were saved.

        This store reads on no more: the next one opens the database as it is then.
        """
        self._catch_up()
        ruv, clock_s = self.position.ruv, time.time_ns() // 10**9
        applied = behind_applied(self.stored.rid, "", ruv, clock_s, self.skew_s)
        generator = later(self.journal.state.generator, applied)
        known = (self.writers, self.capture, self.stored, generator)
        return reinit(self.session, *known, start, is_known, path)

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
            self.record_bytes,
            self.journal.leaves,
        )
        self.stored = read_position(self.session)
        self.position = done.position
        self.kept_at_s = None if done.saved else self.kept_at_s
        command = f"slackwater agent saved --database {quote(self.reader.dsn)}"
        return replace(done, saved_shown_by=command)
