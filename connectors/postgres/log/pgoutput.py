"""The messages of the output plugin pgoutput, protocol version 1, from bytes to values.

The source is the manual of PostgreSQL, "Logical Replication Message Formats". A transaction comes
whole and committed: Begin, Origin where it has one, its rows and messages, Commit. A Relation comes
before the first row of a table, and again when its definition may have changed. A class has a
longer name where the short one means something else in this project.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from connectors.agent.contract import StoreError

EPOCH_S = 946_684_800
"""The seconds from 1970 to 2000, from which PostgreSQL counts."""


class MessageError(StoreError):
    """The server sent what is no message of this protocol."""


class Unchanged(Enum):
    """In place of a value that the log does not hold, because the update left it as it was."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED

Value = str | None | Unchanged
"""A value of a tuple: its text, None for null."""

Tuple = tuple[Value, ...]
"""The values of a row, in the order of its Relation's columns."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins; `final_lsn`: of its commit record; `time_us`: of its commit, 1970.

    The time of one with an origin is what the origin gave.
    """

    final_lsn: int
    time_us: int
    xid: int


@dataclass(frozen=True, slots=True)
class CommitMessage:
    """A transaction ends; `end_lsn`: the place behind it, from which reading goes on."""

    commit_lsn: int
    end_lsn: int
    time_us: int


@dataclass(frozen=True, slots=True)
class OriginMessage:
    """The transaction was written in a session of this replication origin."""

    lsn: int
    name: str


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column; `type_oid` and `modifier`: of its type."""

    name: str
    type_oid: int
    modifier: int
    is_in_identity: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it is from here on; `identity`: d, n, f or i, its replica identity."""

    oid: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class TypeMessage:
    """A type that is not built in."""

    oid: int
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Insert:
    """A row was inserted."""

    oid: int
    new: Tuple


@dataclass(frozen=True, slots=True)
class UpdateMessage:
    """A row was updated; `old` None: it is not logged. `is_whole`: it is, and not its key alone."""

    oid: int
    old: Tuple | None
    is_whole: bool
    new: Tuple


@dataclass(frozen=True, slots=True)
class Delete:
    """A row was deleted; `is_whole`: all of `old` is logged, and not its key alone."""

    oid: int
    old: Tuple
    is_whole: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables were emptied together, those of the cascade among them."""

    oids: tuple[int, ...]
    cascades: bool
    restarts_identity: bool


@dataclass(frozen=True, slots=True)
class Message:
    """A logical message; anybody may have written it."""

    is_transactional: bool
    lsn: int
    prefix: str
    content: bytes


LogMessage = (
    Begin
    | CommitMessage
    | OriginMessage
    | Relation
    | TypeMessage
    | Insert
    | UpdateMessage
    | Delete
    | Truncate
    | Message
)

ROW_KINDS = b"IUDT"
"""The first bytes of messages about rows."""


def parse(data: bytes) -> LogMessage:
    """The value of one message; MessageError if the bytes are none."""
    if not data or data[:1] not in _PARSERS:
        raise MessageError(f"the log sends a message of unknown kind {data[:1]!r}")
    reader = _Reader(data)
    try:
        found = _PARSERS[data[:1]](reader)
    except (struct.error, ValueError, IndexError) as error:
        raise MessageError(f"the log sends a message {data[:1]!r} that is cut: {error}") from error
    if reader.at != len(data):
        raise MessageError(
            f"the log sends a message {data[:1]!r} of {len(data)} bytes, of which"
            f" {reader.at} are known"
        )
    return found


def written_tables(data: bytes) -> tuple[int, ...]:
    """The oids of the tables that a message about a row, or a truncate, is of."""
    if data[:1] == b"T":
        found = parse(data)
        assert isinstance(found, Truncate)  # noqa: S101 of this first byte
        return found.oids
    try:
        return _OID.unpack_from(data, 1)
    except struct.error as error:
        raise MessageError(f"the log sends a message {data[:1]!r} that is cut: {error}") from error


class _Reader:
    """Reads the fields of a message one by one, behind its first byte."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 1

    def numbers(self, form: struct.Struct) -> tuple[int, ...]:
        """The next numbers; struct.error if there are no more."""
        found = form.unpack_from(self.data, self.at)
        self.at += form.size
        return found

    def letter(self) -> str:
        """The next byte as a letter."""
        (code,) = self.numbers(_BYTE)
        return chr(code)

    def text(self) -> str:
        """The next text, up to its zero byte."""
        end = self.data.index(0, self.at)
        found = self.data[self.at : end].decode()
        self.at = end + 1
        return found

    def bytes(self) -> bytes:
        """The next bytes, behind their length."""
        (size,) = self.numbers(_SIZE)
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise ValueError(f"{size} bytes are announced, {len(self.data) - self.at} follow")
        found = self.data[self.at : end]
        self.at = end
        return found

    def tuple(self) -> Tuple:
        """The next values of a row."""
        (count,) = self.numbers(_COUNT)
        return tuple(self._value() for _ in range(count))

    def _value(self) -> Value:
        kind = self.letter()
        if kind == "t":
            return self.bytes().decode()
        if kind not in "nu":
            raise ValueError(f"a value of kind {kind!r} was not asked for")
        return None if kind == "n" else UNCHANGED


_BYTE, _SIZE, _COUNT, _OID = (struct.Struct(f"!{form}") for form in ("B", "i", "H", "I"))
_BEGIN, _COMMIT, _LSN = struct.Struct("!QqI"), struct.Struct("!BQQq"), struct.Struct("!Q")
_COLUMN_TYPE, _TRUNCATE, _MESSAGE = struct.Struct("!Ii"), struct.Struct("!IB"), struct.Struct("!BQ")


def _since_1970(time_us: int) -> int:
    return time_us + EPOCH_S * 1_000_000


def _begin(reader: _Reader) -> Begin:
    lsn, time_us, xid = reader.numbers(_BEGIN)
    return Begin(lsn, _since_1970(time_us), xid)


def _commit(reader: _Reader) -> CommitMessage:
    _, lsn, end, time_us = reader.numbers(_COMMIT)
    return CommitMessage(lsn, end, _since_1970(time_us))


def _origin(reader: _Reader) -> OriginMessage:
    (lsn,) = reader.numbers(_LSN)
    return OriginMessage(lsn, reader.text())


def _relation(reader: _Reader) -> Relation:
    (oid,) = reader.numbers(_OID)
    schema, name, identity = reader.text(), reader.text(), reader.letter()
    (count,) = reader.numbers(_COUNT)
    return Relation(oid, schema, name, identity, tuple(_column(reader) for _ in range(count)))


def _column(reader: _Reader) -> RelationColumn:
    (flags,) = reader.numbers(_BYTE)
    name = reader.text()
    type_oid, modifier = reader.numbers(_COLUMN_TYPE)
    return RelationColumn(name, type_oid, modifier, is_in_identity=bool(flags & 1))


def _type(reader: _Reader) -> TypeMessage:
    (oid,) = reader.numbers(_OID)
    return TypeMessage(oid, reader.text(), reader.text())


def _insert(reader: _Reader) -> Insert:
    (oid,) = reader.numbers(_OID)
    _expect(reader.letter(), "N")
    return Insert(oid, reader.tuple())


def _update(reader: _Reader) -> UpdateMessage:
    (oid,) = reader.numbers(_OID)
    kind, old = reader.letter(), None
    if kind in "KO":
        old = reader.tuple()
        _expect(reader.letter(), "N")
    else:
        _expect(kind, "N")
    return UpdateMessage(oid, old, kind == "O", reader.tuple())


def _delete(reader: _Reader) -> Delete:
    (oid,) = reader.numbers(_OID)
    kind = reader.letter()
    _expect(kind, "KO")
    return Delete(oid, reader.tuple(), kind == "O")


def _truncate(reader: _Reader) -> Truncate:
    count, options = reader.numbers(_TRUNCATE)
    oids = tuple(reader.numbers(_OID)[0] for _ in range(count))
    return Truncate(oids, cascades=bool(options & 1), restarts_identity=bool(options & 2))


def _message(reader: _Reader) -> Message:
    flags, lsn = reader.numbers(_MESSAGE)
    prefix = reader.text()
    return Message(bool(flags & 1), lsn, prefix, reader.bytes())


def _expect(kind: str, allowed: str) -> None:
    if kind not in allowed:
        raise ValueError(f"a tuple of kind {kind!r} stands where {' or '.join(allowed)} must")


_PARSERS: Mapping[bytes, Callable[[_Reader], LogMessage]] = {
    b"B": _begin,
    b"C": _commit,
    b"O": _origin,
    b"R": _relation,
    b"Y": _type,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
    b"M": _message,
}
