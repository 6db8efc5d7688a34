"""Numbers what the log holds: CSN, opno and epoch of each change, by the log alone.

Nothing but the log and the state at its beginning goes in: no clock, no random value. So whoever
reads it again from a stored checkpoint gives the same numbers (docs/wire.md, Capture).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from connectors.agent.contract import JournalEntry
from connectors.agent.images import WireImage, null_faults
from connectors.postgres.log.transactions import LogTransaction
from connectors.postgres.messages import AppliedMessage, EpochMessage, OwnMessage, SnapshotRows
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import MAX_TIME_S, Csn, Generator
from streaming.core.records.record import Commit, Record, Refused, Snapshot

ORDINAL_BITS = 24
"""An entry's id is the place of its transaction's commit in the log, and its place within it."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A change without its numbers; `key`, `old` and `new` as on the wire.

    A change of a key is two: a delete and an insert.
    """

    table: str
    op: Op
    key: WireImage
    old: WireImage | None = None
    new: WireImage | None = None


@dataclass(frozen=True, slots=True)
class Within:
    """A place within a transaction of which more follows; `next`: the id of its next entry.

    `prim`: its name; None: it is not known to have several changes. `held`: its last change so
    far, which waits until it is known whether another one follows.
    """

    next: int
    prim: str | None = None
    held: Captured | None = None


@dataclass(frozen=True, slots=True)
class FoldState:
    """What numbers depend on at a place in the log; `within`: a transaction, None: between two.

    `generator`: of the last CSN given or seen. `opno`: the last one given. `epoch`: what a change
    behind this place carries.
    """

    generator: Generator
    opno: int = 0
    epoch: int = 1
    within: Within | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """Within a transaction numbers go on otherwise behind this entry, which the topic has.

    `is_ended`: the topic has ended what it has, so the rest is a transaction of its own.
    """

    id: int
    generator: Generator
    opno: int
    is_ended: bool


@dataclass(frozen=True, slots=True)
class Limit:
    """What was committed up to `until_lsn` counts as of `time_s` at the latest.

    A clock that was ahead, and was corrected, has written it.
    """

    time_s: int
    until_lsn: int


@dataclass(frozen=True, slots=True)
class Numbering:
    """What was decided once about numbers, and is stored: it is part of the log from then on."""

    cut: Cut | None = None
    limit: Limit | None = None


AS_LOGGED = Numbering()


def numbered(
    state: FoldState,
    transaction: LogTransaction,
    captured: Sequence[Captured],
    numbering: Numbering = AS_LOGGED,
) -> tuple[list[JournalEntry], FoldState]:
    """The journal entries of a transaction, and the state behind it; `captured`: its changes.

    In parts it has the same entries, whatever the parts are.
    """
    limit, limit_s = numbering.limit, MAX_TIME_S
    if limit is not None and transaction.lsn < limit.until_lsn:
        limit_s = limit.time_s
    begun = state.within or Within(transaction.lsn << ORDINAL_BITS)
    commit_s = min(transaction.commit_s, limit_s)
    fold = _Fold(state, commit_s, limit_s, begun.next, numbering.cut, begun.prim)
    waiting = [*([] if begun.held is None else [begun.held]), *captured]
    is_complete = transaction.end_lsn is not None
    held = waiting.pop() if waiting and not is_complete else None
    is_several = begun.prim is not None or held is not None or len(waiting) > 1
    entries = [*fold.changes(waiting, is_several=is_several)]
    if is_complete:
        entries += fold.commit()
    entries += fold.own(transaction.messages)
    within = None if is_complete else Within(fold.at, fold.prim, held)
    return entries, replace(fold.state, within=within)


@dataclass(slots=True)
class _Fold:
    """`at`: the id of the next entry; `prim`: the name of the transaction, if it has one."""

    state: FoldState
    commit_s: int
    limit_s: int
    at: int
    cut: Cut | None
    prim: str | None

    @property
    def _is_cut(self) -> bool:
        return self.cut is not None and self.at == self.cut.id + 1

    def _entry(
        self,
        record: Record,
        session: str | None = None,
        faults: tuple[str, ...] = (),
        within: str | None = None,
    ) -> JournalEntry:
        self.at += 1
        return JournalEntry(self.at - 1, record, session, faults, within)

    def _next(self) -> tuple[Csn, int]:
        if self.cut is not None and self._is_cut:
            generator, opno = self.cut.generator, self.cut.opno
            self.state = replace(self.state, generator=generator, opno=opno)
        csn, generator = self.state.generator.next(self.commit_s)
        self.state = replace(self.state, generator=generator, opno=self.state.opno + 1)
        return csn, self.state.opno

    def changes(self, captured: Sequence[Captured], *, is_several: bool) -> Iterator[JournalEntry]:
        """The changes; `is_several`: the transaction has more than one."""
        for one in captured:
            is_ended = self.cut is not None and self._is_cut and self.cut.is_ended
            csn, opno = self._next()
            if is_several and (self.prim is None or is_ended):
                self.prim = csn
            yield self._change(one, csn, opno)

    def commit(self) -> Iterator[JournalEntry]:
        """The end of a transaction of several changes."""
        if self.prim is not None:
            yield self._entry(Commit(self.prim))

    def _change(self, one: Captured, csn: Csn, opno: int) -> JournalEntry:
        """A delete whose key no replica can take is published by itself: no other has the row."""
        faults = null_faults(one.key.text) + (one.new or one.key).faults
        goes_alone = bool(faults) and one.op is Op.DELETE
        change = Change(
            csn,
            self.state.generator.rid,
            self.state.epoch,
            one.table,
            one.key.text,
            one.op,
            one.new.text if one.new else None,
            one.old.known if one.old else None,
            None if goes_alone else self.prim,
            opno,
        )
        return self._entry(change, None, faults, self.prim if goes_alone else None)

    def own(self, messages: Sequence[OwnMessage]) -> Iterator[JournalEntry]:
        """The agent's own records, which come through the log at their place."""
        for message in messages:
            match message:
                case AppliedMessage(applied, session, seen):
                    yield self._entry(applied, session)
                    generator = self.state.generator
                    is_ahead = seen > (generator.time_s, generator.sequence)
                    if is_ahead and seen[0] <= self.limit_s:
                        generator = replace(generator, time_s=seen[0], sequence=seen[1])
                    self.state = replace(self.state, generator=generator, epoch=applied.epoch + 1)
                case EpochMessage(epoch):
                    self.state = replace(self.state, epoch=max(self.state.epoch, epoch))
                case SnapshotRows(id_, table, rows):
                    for key, after in rows:
                        yield self._entry(self._told(id_, table, key, after))
                case Refused() | Snapshot():
                    yield self._entry(message)

    def _told(self, id_: str, table: str, key: str, after: str) -> Change:
        """A row of a snapshot, as a transaction of its own."""
        csn, opno = self._next()
        rid, epoch = self.state.generator.rid, self.state.epoch
        return Change(csn, rid, epoch, table, key, Op.INSERT, after, opno=opno, snapshot=id_)
