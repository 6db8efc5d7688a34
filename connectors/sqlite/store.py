"""A SQLite database as the store of a replica: journal, position, and batches applied."""

import logging
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote
from typing import Any

from connectors.agent.applying import behind_applied
from connectors.agent.contract import (
    AppliedBatch,
    HeldLog,
    JournalEntry,
    KeptRows,
    StoreLostError,
)
from connectors.agent.found import IsKnown
from connectors.agent.lacking import all_lacking
from connectors.agent.new_start import NewStart
from connectors.agent.own_topic import OwnTopic
from connectors.agent.schema_publication import SchemaPublication, known_as
from connectors.sqlite.apply import saved
from connectors.sqlite.apply.batch import apply_batch
from connectors.sqlite.apply.rows import RowWriter, writers
from connectors.sqlite.connections import connect
from connectors.sqlite.errors import store_errors
from connectors.sqlite.file import OpenedFile, replaced_text
from connectors.sqlite.install import local_writes
from connectors.sqlite.install.install import install
from connectors.sqlite.install.reinit import reinit
from connectors.sqlite.install.system import lost_tables, lost_tables_text
from connectors.sqlite.journal import entries as journal
from connectors.sqlite.journal import snapshot, uncaptured, uncarried
from connectors.sqlite.journal.entries import JOURNAL_BOUND, JournalBound
from connectors.sqlite.journal.reconcile import cut_at, opno_before, reconcile, renumber
from connectors.sqlite.load import Prepare, nothing
from connectors.sqlite.position import store_position, stored_position
from connectors.sqlite.schema.conflict_clauses import leave_to_clauses
from connectors.sqlite.schema.document import database_schema
from connectors.sqlite.schema.inspection import constraint_summaries
from connectors.sqlite.transaction import atomic
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Change
from streaming.core.model.csn import MAX_SKEW_S
from streaming.core.model.errors import StateError
from streaming.core.model.table import Table
from streaming.core.records.local_writes import TableWrites
from streaming.core.records.record import RECORD_BYTES, Commit, Hello, PublishedSchema, Snapshot
from streaming.core.schema.document import DatabaseSchema

log = logging.getLogger(__name__)


class _SchemaChangedError(Exception):
    """Somebody changed the schema since the agent adapted to it."""


@dataclass(slots=True)
class SqliteStore:
    """The open database of one replica: a ReplicaStore, used by one agent at a time."""

    connection: sqlite3.Connection
    file: OpenedFile
    rid: int
    tables: dict[str, Table]
    writers: dict[str, RowWriter]
    record_bytes: int = RECORD_BYTES
    skew_s: int = MAX_SKEW_S
    journal_bound: JournalBound = JOURNAL_BOUND
    position: Position = field(default_factory=Position)
    published: int = 0
    schema_version: int = -1
    warnings: set[str] = field(default_factory=set)
    unreplicated: tuple[str, ...] = ()
    schema: SchemaPublication = field(
        default_factory=lambda: SchemaPublication(DatabaseSchema("", "", ""))
    )
    wal: OpenedFile | None = None
    agreement: str | None = None

    @classmethod
    @store_errors()
    def open(
        cls,
        database: Path,
        rid: int,
        tables: Iterable[Table],
        *,
        record_bytes: int = RECORD_BYTES,
        skew_s: int = MAX_SKEW_S,
        rows_are_shared: bool = False,
        takes_snapshot: bool = False,
        journal_bound: JournalBound = JOURNAL_BOUND,
        prepare: Prepare = nothing,
    ) -> "SqliteStore":
        """Open the database and make it a replica; ConfigError or StateError if it cannot be."""
        connection = connect(database, prepare=prepare)
        known = {table.name: table for table in tables}
        try:
            file = OpenedFile.at(database)
            store = cls(connection, file, rid, known, {}, record_bytes, skew_s, journal_bound)
            store._install(rows_are_shared=rows_are_shared, takes_snapshot=takes_snapshot)
            wal = database.with_name(f"{database.name}-wal")
            store.wal = OpenedFile.at(wal) if wal.exists() else None
            store.position = stored_position(connection)
            store.published = store._stored_published()
        except BaseException:
            connection.close()
            raise
        return store

    @store_errors()
    def check_schema(self) -> None:
        """Adapt to a changed schema, warn of what is new in it; ConfigError if it does not fit.

        StateError if the file is not the one that was opened. StoreLostError: rows are to be told,
        so the agent begins another session.
        """
        self.file.check()
        if self.wal:
            self.wal.check_wal()
        with self._transaction("BEGIN"):
            (version,) = self._row("PRAGMA schema_version")
        if version != self.schema_version and self._install():
            raise StoreLostError(
                "a column was added that has values already: the rows that have them are told"
            )

    def _check_content(self) -> None:
        """Raise StateError if the database is not as this agent left it: it was written over.

        In each transaction that goes on from what the agent knows of it: what it writes there may
        hide from its next start that the database is another one.
        """
        lost = lost_tables(self.connection)
        if lost:
            raise StateError(lost_tables_text(lost))
        query = "SELECT 1 FROM sqlite_schema WHERE name = '_slackwater_position'"
        known = (self.position.session, self.position.covers, self.published)
        if not self.connection.execute(query).fetchone() or (
            self._row("SELECT session, covers, published FROM _slackwater_position") != known
        ):
            raise StateError(replaced_text(self.file.path))

    @contextmanager
    def _transaction(self, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
        """A transaction in the database that this agent left; StateError if it is another."""
        with atomic(self.connection, begin):
            self._check_content()
            yield

    def _install(self, *, rows_are_shared: bool = False, takes_snapshot: bool = False) -> bool:
        """Adapt the database; return whether rows are to be told, which a hello must name."""
        leave_to_clauses(self.connection)
        found = install(
            self.connection,
            self.rid,
            self.tables.values(),
            record_bytes=self.record_bytes,
            rows_are_shared=rows_are_shared,
            takes_snapshot=takes_snapshot,
        )
        warnings = (*found.warnings, *constraint_summaries(found.constraints), *found.actions)
        for warning in warnings:
            if warning not in self.warnings:
                log.warning("%s", warning)
        self.warnings = set(warnings)
        self.unreplicated = tuple(found.unreplicated)
        self.writers = writers(self.connection, found.known.values(), self.tables)
        (self.schema_version,) = self._row("PRAGMA schema_version")
        whole = database_schema(self.connection, "", [*self.tables])
        self.schema = self.schema.changed(whole, self.record_bytes)
        return bool(found.to_snapshot or found.own_values)

    def close(self) -> None:
        """Close the database; nothing is lost by not doing so."""
        self.connection.close()

    # -- journal ----------------------------------------------------------------------------

    @store_errors()
    def unpublished(self, rows_max: int, bytes_max: int) -> list[JournalEntry]:
        """The next journal rows that are not yet known to be in the topic."""
        with self._transaction("BEGIN"):
            return journal.unpublished(self.connection, self.rid, rows_max, bytes_max)

    @store_errors()
    def unpublished_schema(self) -> PublishedSchema | None:
        """The schema, if this process has not published it yet; its document, if it is new."""
        (stored,) = self._row("SELECT schema FROM _slackwater_position")
        lacking = all_lacking(one.lacking for one in self.writers.values())
        return self.schema.unpublished(self.position.generation, stored, lacking)

    @store_errors()
    def mark_schema_published(self, schema: PublishedSchema) -> None:
        """Store that the topic holds the document of this schema."""
        published = known_as(self.position.generation, schema.digest)
        if schema.document is not None:
            with self._transaction():
                self.connection.execute("UPDATE _slackwater_position SET schema = ?", (published,))
        self.schema.note_published(published, schema)

    @store_errors()
    def backlog(self) -> int:
        """About how many entries are not yet known to be in the topic, and uncaptured tables."""
        return journal.backlog(self.connection) + len(uncaptured.listed(self.connection))

    @store_errors()
    def mark_published(self, entry: JournalEntry) -> None:
        """Store that the topic holds the journal up to this row; StateError if it is another."""
        with self._transaction():
            if not journal.holds(self.connection, entry, self.rid):
                raise StateError(replaced_text(self.file.path))
            uncarried.note(self.connection, entry.id)
            journal.mark_published(self.connection, entry.id, self.journal_bound)
        self.published = entry.id

    @store_errors()
    def renumber(self, after: int, above: str, clock_ms: int) -> int:
        """Give what was never published CSNs of this clock, above this one and what was applied."""
        clock_s = clock_ms // 1000
        generator = behind_applied(self.rid, above, self.position.ruv, clock_s, self.skew_s)
        with self._transaction():
            last = max(after, self._stored_published())
            opno = opno_before(self.connection, last)
            going_on = cut_at(self.connection, last)
            return renumber(self.connection, last, generator, opno, clock_s, going_on)

    @store_errors()
    def kept_rows(self) -> KeptRows:
        """The rows that are only in this database."""
        first = next(uncarried.listed(self.connection, 1), None)
        return KeptRows(uncarried.count(self.connection), saved.count(self.connection), first)

    @store_errors()
    def local_writes(self) -> dict[str, TableWrites]:
        """Table -> the writes that stay in this database."""
        return local_writes.local_writes(self.connection)

    def held_log(self) -> HeldLog | None:
        """None: the journal is a table."""
        return None

    @store_errors()
    def close_abandoned_group(self) -> None:
        """Close a group that a client committed without ending it, or it would stay pending."""
        (depth,) = self._row("SELECT depth FROM _slackwater_origin")
        if not depth:
            return
        log.warning("a client committed a group of changes without ending it: the agent ends it")
        with atomic(self.connection):
            self.connection.execute("UPDATE _slackwater_origin SET depth = min(depth, 1)")
            self.connection.execute("INSERT INTO _slackwater_write (op) VALUES ('commit')")

    @property
    @store_errors()
    def epoch(self) -> int:
        """The replica's epoch."""
        return int(self._row("SELECT epoch FROM _slackwater_origin")[0])

    # -- sessions ---------------------------------------------------------------------------

    @store_errors()
    def compared_up_to(self) -> tuple[int, OwnTopic]:
        """The offset from which the own topic must be read, and the state at that offset."""
        offset, session, own = self._row(
            "SELECT changes_offset, changes_session, own FROM _slackwater_position"
        )
        return offset, OwnTopic(session, own)

    @store_errors()
    def journal_snapshot(self, rows_max: int) -> bool:
        """Journal the next rows of the snapshot; False: none is being told."""
        return snapshot.journal_snapshot(self.connection, self.writers, rows_max)

    @store_errors()
    def find(self, record: Change | Commit | Snapshot) -> int | None:
        """The id of the journal row with the same content as a record of the own topic."""
        return journal.find(self.connection, record)

    @store_errors()
    def reconcile(self, past: OwnTopic) -> str | None:
        """Advance past what the own topic holds; returns the `own` of the next hello."""
        own = reconcile(self.connection, past)
        self.published = self._stored_published()
        return own

    @store_errors()
    def follow(self, agreement: str | None) -> None:
        """Read the updates of this agreement from here on."""
        before, self.agreement = self.position, agreement
        moved = before.moved(agreement)
        if moved == before:
            return
        with self._transaction():
            store_position(self.connection, moved)
            if before.agreement:
                self.connection.execute("UPDATE _slackwater_position SET updates_offset = 0")
        self.position = moved

    @store_errors()
    def start_session(
        self, session: str, own: str | None, *, lost: bool, position: Position | None = None
    ) -> Hello:
        """Store a session and return its hello, which replaces each unpublished `applied`.

        `position`: where the session starts; None: the one in force. The hello of a database that
        was emptied says so until the first batch is applied or a change of its own is published:
        the hub may not take a later session for a new start, if it has not read that change.
        """
        with self._transaction():
            journal.remove_unpublished_applied(self.connection)
            self.connection.execute(
                "UPDATE _slackwater_position SET session = ?, last = covers", (session,)
            )
        self.position = (position or self.position).in_session(session)
        if self._row("SELECT reinit AND published = 0 FROM _slackwater_position")[0]:
            anew = self.position.hello(None, lost=False, agreement=self.agreement)
            hello = replace(anew, reinit=True)
        else:
            hello = self.position.hello(own, lost=lost, agreement=self.agreement)
        told = snapshot.named(self.connection)
        return replace(hello, unreplicated=self.unreplicated or None, snapshot=told)

    @store_errors()
    def reinit(self, start: NewStart, is_known: IsKnown, path: Path) -> int:
        """Empty the database so that it starts anew; returns how many rows were saved."""
        saved = reinit(
            self.connection, [one.table for one in self.writers.values()], start, is_known, path
        )
        self.position = stored_position(self.connection)
        self.published = self._stored_published()
        return saved

    @store_errors()
    def mark_compared(self, offset: int, past: OwnTopic) -> None:
        """Store that the own topic was compared up to here, and its losses reported."""
        self.connection.execute(
            "UPDATE _slackwater_position SET changes_offset = ?, changes_session = ?, own = ?",
            (offset, past.session, past.own),
        )

    @store_errors()
    def publish_again(self, behind: str) -> bool:
        """Count what was written behind this own CSN as not published; False: some is trimmed."""
        with self._transaction():
            is_there = journal.publish_again(self.connection, behind)
        self.published = self._stored_published()
        return is_there

    @store_errors()
    def published_own(self) -> str | None:
        """The largest own CSN that is known to be in the topic."""
        found = self._row(
            "SELECT (SELECT max(csn) FROM _slackwater_journal WHERE kind = 'change'"
            "  AND id <= published), own, trimmed_csn FROM _slackwater_position"
        )
        return max((csn for csn in found if csn is not None), default=None)

    # -- applying ---------------------------------------------------------------------------

    @property
    @store_errors()
    def updates_offset(self) -> int:
        """The offset in the updates topic behind the last batch that was applied."""
        return int(self._row("SELECT updates_offset FROM _slackwater_position")[0])

    @store_errors()
    def apply(self, batch: ApplyBatch, next_offset: int, clock_ms: int) -> AppliedBatch:
        """Apply a batch as one local transaction, and store the offset behind it with it.

        Its statements are made for the schema as it stands: a trigger that was created a moment
        ago may keep a row from being stored.
        """
        while True:
            with suppress(_SchemaChangedError):
                done = apply_batch(
                    self.connection,
                    self.writers,
                    batch,
                    next_offset,
                    clock_ms,
                    self._check_same,
                    self.skew_s,
                )
                self.position = done.position
                command = f"slackwater agent saved --database {quote(str(self.file.path))}"
                return replace(done, saved_shown_by=command)
            self.check_schema()

    def _check_same(self) -> None:
        """Raise if the database, or its schema, is not as this agent knows it."""
        self._check_content()
        if self._row("PRAGMA schema_version") != (self.schema_version,):
            raise _SchemaChangedError

    def _stored_published(self) -> int:
        return int(self._row("SELECT published FROM _slackwater_position")[0])

    def _row(self, query: str) -> tuple[Any, ...]:
        with closing(self.connection.execute(query)) as cursor:
            row: tuple[Any, ...] = cursor.fetchone()
        return row
