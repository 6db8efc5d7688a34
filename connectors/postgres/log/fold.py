"""Numbers what the log holds: CSN, opno and epoch of each change, by the log alone.

Nothing but the log and the state at its beginning goes in: no clock, no random value. So whoever
reads it again from a stored checkpoint gives the same numbers (docs/wire.md, Capture).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from connectors.agent.contract import JournalEntry
from connectors.agent.images import WireImage, null_faults
from connectors.postgres.log.transactions import LogTransaction
from connectors.postgres.messages import AppliedMessage, EpochMessage, OwnMessage, SnapshotRows
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import MAX_TIME_S, Csn, Generator
from streaming.core.records.record import Commit, Record, Refused, Snapshot

ORDINAL_BITS = 24
"""An entry's id is the end of its transaction in the log, and its place within it."""


@dataclass(frozen=True, slots=True)
class FoldState:
    """What numbers depend on at a place in the log.

    `generator`: of the last CSN given or seen. `opno`: the last one given. `epoch`: what a change
    behind this place carries.
    """

    generator: Generator
    opno: int = 0
    epoch: int = 1


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
    """The journal entries of a transaction, and the state behind it; `captured`: its changes."""
    limit = numbering.limit
    limit_s = MAX_TIME_S
    if limit is not None and transaction.end_lsn <= limit.until_lsn:
        limit_s = limit.time_s
    first = transaction.end_lsn << ORDINAL_BITS
    fold = _Fold(state, min(transaction.commit_s, limit_s), limit_s, first, numbering.cut)
    entries = list[JournalEntry]()
    for entry in chain(fold.changes(captured), fold.own(transaction.messages)):
        entries.append(replace(entry, id=first + len(entries)))
        fold.at = first + len(entries)
    return entries, fold.state


@dataclass(slots=True)
class _Fold:
    """`at`: the id of the next entry."""

    state: FoldState
    commit_s: int
    limit_s: int
    at: int
    cut: Cut | None

    @property
    def _is_cut(self) -> bool:
        return self.cut is not None and self.at == self.cut.id + 1

    def _next(self) -> tuple[Csn, int]:
        if self.cut is not None and self._is_cut:
            generator, opno = self.cut.generator, self.cut.opno
            self.state = replace(self.state, generator=generator, opno=opno)
        csn, generator = self.state.generator.next(self.commit_s)
        self.state = replace(self.state, generator=generator, opno=self.state.opno + 1)
        return csn, self.state.opno

    def changes(self, captured: Sequence[Captured]) -> Iterator[JournalEntry]:
        """The changes, and the commit of more than one."""
        prim: str | None = None
        for one in captured:
            is_ended = self.cut is not None and self._is_cut and self.cut.is_ended
            csn, opno = self._next()
            if len(captured) > 1 and (prim is None or is_ended):
                prim = csn
            yield self._change(one, csn, prim, opno)
        if prim is not None:
            yield JournalEntry(0, Commit(prim), None)

    def _change(self, one: Captured, csn: Csn, prim: str | None, opno: int) -> JournalEntry:
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
            None if goes_alone else prim,
            opno,
        )
        return JournalEntry(0, change, None, faults, prim if goes_alone else None)

    def own(self, messages: Sequence[OwnMessage]) -> Iterator[JournalEntry]:
        """The agent's own records, which come through the log at their place."""
        for message in messages:
            match message:
                case AppliedMessage(applied, session, seen):
                    yield JournalEntry(0, applied, session)
                    generator = self.state.generator
                    is_ahead = seen > (generator.time_s, generator.sequence)
                    if is_ahead and seen[0] <= self.limit_s:
                        generator = replace(generator, time_s=seen[0], sequence=seen[1])
                    self.state = replace(self.state, generator=generator, epoch=applied.epoch + 1)
                case EpochMessage(epoch):
                    self.state = replace(self.state, epoch=max(self.state.epoch, epoch))
                case SnapshotRows(id_, table, rows):
                    for key, after in rows:
                        yield JournalEntry(0, self._told(id_, table, key, after), None)
                case Refused() | Snapshot():
                    record: Record = message
                    yield JournalEntry(0, record, None)

    def _told(self, id_: str, table: str, key: str, after: str) -> Change:
        """A row of a snapshot, as a transaction of its own."""
        csn, opno = self._next()
        rid, epoch = self.state.generator.rid, self.state.epoch
        return Change(csn, rid, epoch, table, key, Op.INSERT, after, opno=opno, snapshot=id_)
