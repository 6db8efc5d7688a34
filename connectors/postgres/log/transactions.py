"""From messages of the log to transactions: what each wrote, whose it is, and where it ends.

A large one is handed over in parts, for it may be larger than the memory. Of the agent's own
transactions the rows are skipped by their first byte, unparsed, and only its messages count; a
message of anybody else counts nothing, for anybody may write one. Rows that stay in this database
are counted by table, unparsed too.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from connectors.postgres.log.pgoutput import (
    ROW_KINDS,
    UNCHANGED,
    Begin,
    CommitMessage,
    Delete,
    Insert,
    Message,
    MessageError,
    OriginMessage,
    Relation,
    Truncate,
    Tuple,
    TypeMessage,
    UpdateMessage,
    parse,
    written_tables,
)
from connectors.postgres.messages import PREFIX, OwnMessage, decode

PART_WRITES, PART_BYTES = 5_000, 4_000_000
"""A transaction of more writes, or with more bytes of log, is handed over in parts."""

Row = Mapping[str, str | None]
"""Column -> its text, None for null; a column that is absent is not in the log."""


class Whose(StrEnum):
    """Who wrote a transaction, by its replication origin."""

    LOCAL = "local"
    """a client of this database"""
    OWN = "own"
    """this replica's agent"""
    OTHER = "other"
    """another replication into this database; its times are not this server's"""
    STAYS = "stays"
    """a client whose writes stay in this database"""


_NOT_TOLD = (Whose.OWN, Whose.STAYS)


@dataclass(frozen=True, slots=True)
class RowWrite:
    """A row was inserted (`old` None), deleted (`new` None) or updated.

    `is_whole`: `old` has all columns that are logged, and not its key alone. An update of which
    nothing old is logged has the new key as `old`, for that is what it was.
    """

    relation: Relation
    old: Row | None
    new: Row | None
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class TableTruncate:
    """A table was emptied."""

    relation: Relation


@dataclass(frozen=True, slots=True)
class LogTransaction:
    """A committed transaction, or the next part of it; `lsn`: of its commit, by which it is known.

    `end_lsn`: the place behind it; None: another part follows. `commit_s`: of its commit, 1970; 0
    where another origin gave the time. `writes`: in their order; none of the agent's own.
    `messages`: of the agent's own transactions alone. `staying`: oid of a table -> how many rows of
    it were written that stay in this database; in the last part.
    """

    lsn: int
    end_lsn: int | None
    commit_s: int
    whose: Whose
    writes: tuple[RowWrite | TableTruncate, ...] = ()
    messages: tuple[OwnMessage, ...] = ()
    staying: Mapping[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Assembler:
    """Puts messages together; `origin`: the name of the agent's own replication origin.

    `local`: of the origin of writes that stay in this database. `part_writes`: so many writes are
    handed over at once, at most, but for those of a TRUNCATE.
    """

    origin: str
    local: str = ""
    part_writes: int = PART_WRITES
    relations: dict[int, Relation] = field(default_factory=dict)
    begun: Begin | None = None
    whose: Whose = Whose.LOCAL
    writes: list[RowWrite | TableTruncate] = field(default_factory=list)
    messages: list[OwnMessage] = field(default_factory=list)
    staying: Counter[int] = field(default_factory=Counter)
    size: int = 0

    def add(self, data: bytes) -> LogTransaction | None:
        """Add the next message; the transaction, or a part, if it ends one. MessageError: none."""
        if self.whose in _NOT_TOLD and data[:1] and data[0] in ROW_KINDS:
            if self.whose is Whose.STAYS:
                self.staying.update(written_tables(data))
            return None
        self.size += len(data)
        match parse(data):
            case Begin() as begin:
                if self.begun is not None:
                    raise MessageError("the log begins a transaction within another one")
                self.begun, self.whose = begin, Whose.LOCAL
            case OriginMessage(name=name):
                of = {self.origin: Whose.OWN, self.local: Whose.STAYS}
                self.whose = of.get(name, Whose.OTHER)
            case Relation() as relation:
                self.relations[relation.oid] = relation
            case Message() as message:
                if self.whose is Whose.OWN and message.prefix == PREFIX:
                    self.messages.append(decode(message.content))
            case CommitMessage(end_lsn=end):
                return self._end(end)
            case Insert(oid=oid, new=new):
                relation = self._relation(oid)
                self.writes.append(RowWrite(relation, None, _row(relation, new)))
            case UpdateMessage() as update:
                self.writes.append(self._update(update))
            case Delete(oid=oid, old=old, is_whole=is_whole):
                relation = self._relation(oid)
                row = _row(relation, old) if is_whole else _key(relation, old)
                self.writes.append(RowWrite(relation, row, None, is_whole))
            case Truncate(oids=oids):
                self.writes += [TableTruncate(self._relation(oid)) for oid in oids]
            case TypeMessage():
                pass
        is_large = len(self.writes) >= self.part_writes or self.size >= PART_BYTES
        return self._part(self.begun, None) if is_large and self.begun else None

    def _end(self, end_lsn: int) -> LogTransaction:
        if self.begun is None:
            raise MessageError("the log sends a commit without the beginning of its transaction")
        last = self._part(self.begun, end_lsn)
        self.begun, self.whose = None, Whose.LOCAL
        return last

    def _part(self, begun: Begin, end_lsn: int | None) -> LogTransaction:
        """What was put together since the part before."""
        commit_s = 0 if self.whose is Whose.OTHER else max(begun.time_us // 1_000_000, 0)
        writes, messages = tuple(self.writes), tuple(self.messages)
        staying = {} if end_lsn is None else dict(self.staying)
        self.writes, self.messages, self.size = [], [], 0
        if end_lsn is not None:
            self.staying.clear()
        known = (begun.final_lsn, end_lsn, commit_s, self.whose)
        return LogTransaction(*known, writes, messages, staying)

    def _update(self, update: UpdateMessage) -> RowWrite:
        """What the update left as it was and the log does not repeat is taken from the old row."""
        relation = self._relation(update.oid)
        new = dict(_row(relation, update.new))
        if update.old is None:
            return RowWrite(relation, _key(relation, update.new), new, is_whole=False)
        if not update.is_whole:
            return RowWrite(relation, _key(relation, update.old), new, is_whole=False)
        old = _row(relation, update.old)
        return RowWrite(relation, old, {**old, **new})

    def _relation(self, oid: int) -> Relation:
        relation = self.relations.get(oid)
        if relation is None:
            raise MessageError(f"the log sends a row of table {oid}, which it has not described")
        return relation


def _row(relation: Relation, values: Tuple) -> Row:
    if len(values) != len(relation.columns):
        raise MessageError(
            f"the log sends a row of {len(values)} values of table {relation.name}, which has"
            f" {len(relation.columns)} columns"
        )
    named = zip(relation.columns, values, strict=True)
    return {column.name: value for column, value in named if value is not UNCHANGED}


def _key(relation: Relation, values: Tuple) -> Row:
    """The key's columns of a row; the others are null in it, whatever they are."""
    names = {column.name for column in relation.columns if column.is_in_identity}
    return {name: value for name, value in _row(relation, values).items() if name in names}
