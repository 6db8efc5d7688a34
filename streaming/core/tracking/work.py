"""Pieces of work and who has them: each piece is at one worker, and comes back if that one dies."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from streaming.core.model.errors import StateError
from streaming.core.tracking.incarnation import TableIncarnation, WorkKind


class Piece(NamedTuple):
    """One table's work in a resync; `after`: its last key that was sent, None at the beginning.

    `rows`: how many are expected, for a page the tracked ones.
    """

    table: str
    incarnation: int
    kind: WorkKind
    rows: int
    after: str | None = None

    @property
    def name(self) -> tuple[str, int]:
        """Return what names the piece in its resync."""
        return self.table, self.incarnation


Worker = str
"""The name of a worker."""


@dataclass(frozen=True, slots=True)
class WorkQueue:
    """The pieces of a resync that nobody has, and those that are at a worker.

    It lives in memory: after a restart it is made anew of what was committed (`remaining` in
    progress.py), so what a dead hub's workers had is waiting again.
    """

    waiting: tuple[Piece, ...] = ()
    taken: Mapping[Worker, tuple[Piece, ...]] = field(default_factory=dict)

    @property
    def in_flight(self) -> int:
        """Return how many pieces are at workers."""
        return sum(len(pieces) for pieces in self.taken.values())

    def with_piece(self, piece: Piece) -> "WorkQueue":
        """Return the queue with one more piece; StateError if it has that table already."""
        if piece.name in {each.name for each in self._all()}:
            raise StateError(f"table {piece.table} is twice in one resync: mark the tables again")
        return replace(self, waiting=(*self.waiting, piece))

    def _all(self) -> tuple[Piece, ...]:
        return (*self.waiting, *(piece for pieces in self.taken.values() for piece in pieces))

    def pick(self, worker: Worker, group_rows: int) -> "Picked":
        """Give a worker what it does next; one that still has pieces gets the same again."""
        if worker in self.taken:
            return Picked(self, self.taken[worker])
        pieces = next_pieces(self.waiting, group_rows)
        if not pieces:
            return Picked(self, ())
        names = {piece.name for piece in pieces}
        left = tuple(piece for piece in self.waiting if piece.name not in names)
        return Picked(WorkQueue(left, {**self.taken, worker: pieces}), pieces)

    def given_back(self, worker: Worker) -> "WorkQueue":
        """Return the queue when a worker is dead: its pieces wait again, before all others."""
        taken = dict(self.taken)
        return WorkQueue((*taken.pop(worker, ()), *self.waiting), taken)

    def finished(self, worker: Worker, piece: Piece) -> "WorkQueue":
        """Return the queue without a piece; what a worker does not have, it cannot finish."""
        taken = dict(self.taken)
        left = tuple(each for each in taken.pop(worker, ()) if each.name != piece.name)
        return WorkQueue(self.waiting, {**taken, worker: left} if left else taken)


class Picked(NamedTuple):
    """The queue after a pick, and what the worker got; nothing: no piece is waiting."""

    queue: WorkQueue
    pieces: tuple[Piece, ...]


def next_pieces(waiting: tuple[Piece, ...], group_rows: int) -> tuple[Piece, ...]:
    """Return what a worker takes next: one table alone, or several tables' tracked rows.

    If the first piece is of tracked rows, it and those behind it are taken, other kinds passed
    over, until the next would make them more than `group_rows`. A single table with more than that
    goes alone, page by page.
    """
    if not waiting:
        return ()
    if waiting[0].kind is not WorkKind.PAGE:
        return waiting[:1]
    group, rows = list[Piece](), 0
    for piece in waiting:
        if piece.kind is not WorkKind.PAGE:
            continue
        rows += piece.rows
        if group and rows > group_rows:
            break
        group.append(piece)
    return tuple(group)


def is_valid(piece: Piece, now: TableIncarnation | None) -> bool:
    """Return whether a piece is still to be sent: its incarnation is there, with its work.

    To be asked with the table as it stands in the hub epoch that sends the page: it may have been
    truncated since the piece was prepared.
    """
    return (
        now is not None
        and now.number == piece.incarnation
        and now.at_hub.holds_rows
        and now.work is piece.kind
    )


class ResyncStep(StrEnum):
    """What a resync does next."""

    QUEUE_TABLE = "queue_table"
    """put the next marked table into the queue"""
    WAIT_FOR_WORKERS = "wait_for_workers"
    """pieces are at workers, or waiting for one"""
    CATCH_UP_AND_FINISH = "catch_up_and_finish"
    """in one hub epoch: catch-up of append-only tables once more, configuration, in sync"""
    CATCH_UP_AND_LOOK_AGAIN = "catch_up_and_look_again"
    """catch-up once more, and then from the beginning: rows are still being appended"""


def next_step(
    *, has_table: bool, in_queue: int, open_appends: int, queue_size: int | None = None
) -> ResyncStep:
    """Decide what a resync does next.

    has_table: a marked table is not in the queue yet. in_queue: pieces waiting or at workers.
    open_appends: transactions that have appended to append-only tables and are not committed.
    queue_size: how many pieces may be in the queue; None: any number.
    """
    if has_table and (queue_size is None or in_queue < queue_size):
        return ResyncStep.QUEUE_TABLE
    if in_queue:
        return ResyncStep.WAIT_FOR_WORKERS
    if open_appends:
        return ResyncStep.CATCH_UP_AND_LOOK_AGAIN
    return ResyncStep.CATCH_UP_AND_FINISH
