"""The log as the agent's journal: what is read of it and not known to be in the topic.

It holds nothing durable. What was published is stored as a checkpoint, from which a next start
reads the log again and gives the same entries.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from connectors.agent.contract import JournalEntry
from connectors.postgres.log.fold import (
    AS_LOGGED,
    ORDINAL_BITS,
    Captured,
    FoldState,
    Numbering,
    numbered,
)
from connectors.postgres.log.transactions import LogTransaction
from streaming.core.model.change import Change
from streaming.core.model.errors import StateError
from streaming.core.records.record import Applied, Commit, Snapshot

Capture = Callable[[LogTransaction], Sequence[Captured]]
"""The changes of a transaction, or a part, in configured tables, each image as on the wire."""

READ_AHEAD, READ_AHEAD_BYTES = 10_000, 32_000_000
"""So many entries are read ahead of what is published, and so many bytes, and one part more."""


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """A place in the log before which all is in the topic.

    `lsn`: the end of a transaction, or a later place before the next one. `state`: of the numbers
    there. `csn`: the largest own CSN that the topic has; None: none. `published`: the id of the
    last entry that it has, which may be one of the transaction behind `lsn`.
    """

    lsn: int
    state: FoldState
    csn: str | None = None
    published: int = 0


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a transaction: the id of its last entry, and what is behind it.

    `staying`: oid of a table -> the rows that it wrote and that stay in this database.
    """

    id: int
    lsn: int
    state: FoldState
    staying: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class LogJournal:
    """The entries behind a checkpoint, in commit order; `capture`: see Capture.

    `answered`: the epoch of the last hello. An `applied` of that epoch or an earlier one is left
    out, because the hello says the same; what is numbered behind it counts it all the same.
    `passed_staying`: oid of a table -> the rows that stay in this database, of the transactions
    that the checkpoint has passed, and that are not stored with it yet; `unpassed_staying`: how
    many transactions with such rows it has not passed.
    """

    checkpoint: LogCheckpoint
    capture: Capture
    answered: int = -1
    numbering: Numbering = AS_LOGGED
    state: FoldState = field(init=False)
    entries: deque[JournalEntry] = field(default_factory=deque)
    ends: deque[_End] = field(default_factory=deque)
    bytes: int = 0
    read: int = 0
    read_csn: str = ""
    unpassed_staying: int = 0
    passed_staying: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.state = self.checkpoint.state

    def add(self, transaction: LogTransaction) -> None:
        """Number the next transaction of the log, or the next part of it."""
        captured = self.capture(transaction)
        told, self.state = numbered(self.state, transaction, captured, self.numbering)
        for entry in told:
            self.read = entry.id
            if isinstance(entry.record, Change):
                self.read_csn = entry.record.csn
            if self._is_to_be_told(entry):
                self.entries.append(entry)
                self.bytes += _size(entry)
        if transaction.end_lsn is not None:
            last = told[-1].id if told else transaction.lsn << ORDINAL_BITS
            end = _End(last, transaction.end_lsn, self.state, transaction.staying)
            self.ends.append(end)
            self.unpassed_staying += bool(end.staying)

    def answer(self, epoch: int) -> None:
        """A hello with this epoch is published: leave out what it says."""
        self.answered = epoch
        self.entries = deque(filter(self._is_to_be_told, self.entries))

    def first(self, rows_max: int, bytes_max: int) -> list[JournalEntry]:
        """The next entries, at most so many, and none behind that which exceeds the bytes."""
        found, size = list[JournalEntry](), 0
        for entry in self.entries:
            if len(found) == rows_max or size > bytes_max:
                break
            found.append(entry)
            size += _size(entry)
        return found

    def leaves(self, table: str, key: str, image: str) -> bool:
        """Return whether the last change that waits leaves this image of the row."""
        changes = (one.record for one in reversed(self.entries))
        of_row = (
            one.after
            for one in changes
            if isinstance(one, Change) and (one.table, one.key) == (table, key)
        )
        return next(of_row, None) == image

    def holds_staying(self) -> bool:
        """Return whether rows stay in this database that are not stored as such yet."""
        return bool(self.unpassed_staying or self.passed_staying)

    def is_full(self) -> bool:
        """Return whether no more should be read before some of it is published."""
        return len(self.entries) >= READ_AHEAD or self.bytes >= READ_AHEAD_BYTES

    def find(self, record: Change | Commit | Snapshot) -> int | None:
        """The id of the entry with the same content; 0: it is before the checkpoint."""
        name = record.csn if isinstance(record, Change) else getattr(record, "prim_csn", None)
        is_known = name is not None and name <= (self.checkpoint.csn or "")
        if is_known and isinstance(record, Change):
            return 0
        found = next((one.id for one in self.entries if one.record == record), None)
        return 0 if found is None and is_known else found

    def may_follow(self, record: Change | Commit | Snapshot) -> bool:
        """Return whether this record of the topic may be in what is not read yet."""
        if self.is_within_transaction() and self.read < self.checkpoint.published:
            return True
        match record:
            case Change(csn=csn):
                return csn > max(self.read_csn, self.checkpoint.csn or "")
            case Commit(prim_csn=prim):
                is_open = self.state.within is not None and self.state.within.prim == prim
                return is_open or prim > max(self.read_csn, self.checkpoint.csn or "")
            case Snapshot():
                return not self.is_full()

    def mark_published(self, entry: JournalEntry) -> LogCheckpoint:
        """Count everything up to this entry as published; return the checkpoint to be stored.

        It moves at the ends of transactions only. StateError: this entry was not read from here.
        """
        if entry not in self.entries:
            raise StateError(
                f"entry {entry.id} of the log is not the one that was published: the log was read"
                " again in between; start the agent again"
            )
        return self.count_published(entry.id)

    def count_published(self, id_: int) -> LogCheckpoint:
        """Count what was read up to this id as published; return the checkpoint to be stored."""
        csn = self.checkpoint.csn
        while self.entries and self.entries[0].id <= id_:
            entry = self.entries.popleft()
            self.bytes -= _size(entry)
            if isinstance(entry.record, Change):
                csn = max(csn or "", entry.record.csn)
        published = max(id_, self.checkpoint.published)
        self.checkpoint = replace(self.checkpoint, csn=csn, published=published)
        return self._pass_up_to(id_)

    def is_within_transaction(self) -> bool:
        """Return whether the topic has a part of the transaction behind the checkpoint's place."""
        return self.checkpoint.published >> ORDINAL_BITS >= self.checkpoint.lsn

    def is_rest_unread(self) -> bool:
        """Return whether the topic has a part of a transaction whose next part is not read yet."""
        return not self.entries and self.is_within_transaction()

    def pass_idle(self, decoded: int) -> LogCheckpoint:
        """The checkpoint when nothing waits; `decoded`: no transaction ends before this place.

        So the server may forget what others write, and what this agent applies.
        """
        if self.entries or self.state.within is not None:
            return self.checkpoint
        passed = self._pass_up_to(self.ends[-1].id) if self.ends else self.checkpoint
        if decoded > passed.lsn:
            self.checkpoint = replace(passed, lsn=decoded)
        return self.checkpoint

    def _pass_up_to(self, id_: int) -> LogCheckpoint:
        """Move to the end of the last transaction of which nothing waits."""
        waits = self.entries[0].id if self.entries else None
        while self.ends and self.ends[0].id <= id_ and (waits is None or self.ends[0].id < waits):
            end = self.ends.popleft()
            self.passed_staying.update(end.staying)
            self.unpassed_staying -= bool(end.staying)
            self.checkpoint = replace(self.checkpoint, lsn=end.lsn, state=end.state)
        return self.checkpoint

    def _is_to_be_told(self, entry: JournalEntry) -> bool:
        record = entry.record
        is_answered = isinstance(record, Applied) and record.epoch <= self.answered
        return entry.id > self.checkpoint.published and not is_answered


def _size(entry: JournalEntry) -> int:
    record = entry.record
    if not isinstance(record, Change):
        return 0
    return len(record.after or "") + len(record.before or "")
