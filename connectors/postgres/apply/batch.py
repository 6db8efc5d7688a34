"""Applies one batch of the hub as one local transaction (docs/wire.md, Apply).

In this order: the position row is locked and compared; rows; position, with the epoch raised by
one; the messages `refused` and `applied`; commit. Foreign keys are not checked and the user's
triggers do not fire, because the session has the role `replica`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import psycopg
from psycopg.pq import TransactionStatus

from connectors.agent.applying import advanced, check_known, lacking
from connectors.agent.contract import AppliedBatch, SavedRow, StoreBusyError
from connectors.agent.each_item import EachItem
from connectors.postgres.apply import uncarried
from connectors.postgres.apply.each_item import PostgresItemRows, code_of
from connectors.postgres.apply.fast import runs_of
from connectors.postgres.apply.lock_wait import WAIT_MS, LockWait
from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.apply.saved import IsWaiting, ServerRowAtRisk, forget_standing, save
from connectors.postgres.apply.strangers import items_of
from connectors.postgres.errors import store_error
from connectors.postgres.install.system import (
    StoredPosition,
    read_capture,
    read_position,
    write_position,
)
from connectors.postgres.messages import AppliedMessage, OwnMessage, emit, stamp
from connectors.postgres.sql import Session
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.csn import MAX_SKEW_S, Generator
from streaming.core.model.errors import StateError, WireError
from streaming.core.records.record import RECORD_BYTES, Item, Refused


def apply_batch(
    session: Session,
    writers: Mapping[str, RowWriter],
    batch: ApplyBatch,
    next_offset: int,
    clock_ms: int,
    before: StoredPosition,
    lock_wait: LockWait,
    max_skew_s: int = MAX_SKEW_S,
    record_bytes: int = RECORD_BYTES,
    is_waiting: IsWaiting = lambda *_: False,
) -> AppliedBatch:
    """Apply a batch and store the offset behind it; a refused item does not block the others.

    A row that is nowhere else is saved first (saved.py).
    The session is in autocommit mode and has set up the agent's replication origin. `before`: the
    position that the agent stored last. `max_skew_s`: how far ahead of the clock a CSN is followed.
    `record_bytes`: no record may be larger. `is_waiting`: whether an image waits to be published.
    StoreBusyError: a local transaction has rows open, and nothing was applied. StateError: the
    position in the database is another one, or an item is none that this agent knows. StoreError:
    the database failed, perhaps behind the commit: the position says whether it is applied.
    """
    check_known(batch)
    apply = BatchTransaction(session, writers, batch, before, lock_wait, record_bytes, is_waiting)
    seen_at = (clock_ms // 1000, max_skew_s)
    try:
        try:
            applied = apply.run(next_offset, seen_at, is_careful=False)
        except (psycopg.Error, WireError) as error:
            if code_of(error) is None:
                raise
            applied = apply.run(next_offset, seen_at, is_careful=True)
    except psycopg.Error as error:
        failure = store_error(error)
        if isinstance(failure, StoreBusyError):
            who = lock_wait.failed(session, [one.server.oid for one in apply.tables])
            raise StoreBusyError(f"{failure}; {who}") from error
        raise failure from error
    lock_wait.succeeded()
    return applied


@dataclass(frozen=True, slots=True)
class BatchTransaction:
    """A batch that is written in one transaction, or in another one if something is refused."""

    session: Session
    writers: Mapping[str, RowWriter]
    batch: ApplyBatch
    before: StoredPosition
    lock_wait: LockWait
    record_bytes: int
    is_waiting: IsWaiting

    @property
    def tables(self) -> list[RowWriter]:
        """The tables of the batch in one order."""
        names = {item.table for item in self.batch.items}
        return [self.writers[name] for name in sorted(names & self.writers.keys())]

    def run(self, next_offset: int, seen_at: tuple[int, int], *, is_careful: bool) -> AppliedBatch:
        """Write everything and commit; `seen_at`: the clock in seconds, and how far ahead.

        psycopg.Error, WireError: nothing was applied, unless the connection is lost.
        """
        try:
            self.session.execute("BEGIN")
            self._begin()
            items = items_of(self.session, self.writers, self.batch.items)
            at_risk = save(self.session, self.writers, items, self.record_bytes, self.is_waiting)
            refused = self._write_each(items) if is_careful else self._write_fast(items)
            reported = lacking(items, refused)
            gone = self._gone(at_risk)
            applied = self._end(items, reported, next_offset, seen_at)
            self.session.execute("COMMIT")
        except BaseException:
            if self.session.info.transaction_status is not TransactionStatus.UNKNOWN:
                self.session.execute("ROLLBACK")
            raise
        return replace(applied, saved=gone)

    def _gone(self, at_risk: Sequence[ServerRowAtRisk]) -> tuple[SavedRow, ...]:
        """The saved rows that were overwritten, which are no more rows that are not replicated."""
        gone = forget_standing(self.session, self.writers, at_risk) if at_risk else ()
        for row in gone:
            uncarried.strike_out(self.session, row.table, row.key)
        return gone

    def _begin(self) -> None:
        for setting in (
            *("session_replication_role = replica", "synchronous_commit = off"),
            f"lock_timeout = {WAIT_MS}",
        ):
            self.session.execute(f"SET LOCAL {setting}".encode())
        stored = read_position(self.session, locks=True)
        if stored != _as_stored(self.before):
            raise StateError(
                "the position in the database is not the one that this agent stored last: another"
                " database was put in its place, or another agent works for it; start the agent"
                " again once only one works for this replica"
            )
        self.lock_wait.begin(self.session, [one.server.sql for one in self.tables])

    def _write_fast(self, items: Sequence[Item]) -> dict[int, Refused]:
        """Write the items as if none were refused."""
        for run in runs_of(self.writers, items):
            run.write(self.session)
        return {}

    def _write_each(self, items: Sequence[Item]) -> dict[int, Refused]:
        rows = PostgresItemRows(self.session, self.writers, items)

        def execute(statement: str) -> None:
            self.session.execute(statement.encode())

        return EachItem(rows, execute, self.batch.hub_epoch, items).write(range(len(items)))

    def _end(
        self,
        items: Sequence[Item],
        refused: tuple[Refused, ...],
        next_offset: int,
        seen_at: tuple[int, int],
    ) -> AppliedBatch:
        """Store position and epoch, and emit the refused items and `applied` into the log."""
        epoch = self.before.replica_epoch
        position = replace(self.batch.position, epoch=epoch)
        stored = StoredPosition(
            self.before.rid, position, next_offset, epoch + 1, answered=self.before.answered
        )
        write_position(self.session, stored)
        generator = advanced(self._generator(), items, *seen_at)
        seen = generator.time_s, generator.sequence
        answer = AppliedMessage(position.applied(), position.session or "", seen)
        messages: tuple[OwnMessage, ...] = (*refused, answer)
        for message in messages:
            emit(self.session, message)
        stamp(self.session)
        return AppliedBatch(position, refused)

    def _generator(self) -> Generator:
        """The generator as the capture row has it, or later: the fold never goes back."""
        capture = read_capture(self.session)
        if capture is None:
            return Generator(self.before.rid)
        return Generator(self.before.rid, capture.time_s, capture.sequence)


def _as_stored(stored: StoredPosition) -> StoredPosition:
    """Without what of a position is in no database."""
    position = replace(stored.position, seen_generation=0, answered=False, chunks=())
    return replace(stored, position=position)
