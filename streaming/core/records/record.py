"""The records of the wire as values: those of changes topics and those of updates topics."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.change import Change, Op
from streaming.core.model.ruv import Ruv


class RecordKind(StrEnum):
    """The kinds of record in a replica's topic (docs/wire.md, Kinds of a changes topic)."""

    CHANGE = "change"
    """one row operation"""
    COMMIT = "commit"
    """commits the transaction of this prim_csn"""
    ABORT = "abort"
    """discards the transaction of this prim_csn"""
    APPLIED = "applied"
    """in this epoch the replica had applied all that was sent up to covers"""
    HELLO = "hello"
    """a session starts; the replica's true position"""
    HEARTBEAT = "heartbeat"
    """the replica is alive; its epoch"""
    GOODBYE = "goodbye"
    """the session's agent has ended: what is written from now on is unknown until a hello"""
    REFUSED = "refused"
    """the database refused an item"""
    SNAPSHOT = "snapshot"
    """initial load of a replica that has data"""
    SCHEMA = "schema"
    """what the replica's database declares of the replicated tables"""
    LOCAL_WRITES = "local_writes"
    """how many rows were written that stay in the replica's database"""


_WRITES_NONE = {*RecordKind} - {RecordKind.CHANGE, RecordKind.REFUSED, RecordKind.SNAPSHOT}


def writes_rows(kind: str | None) -> bool:
    """Return whether a record that could not be processed may stand for a row of its replica.

    kind: None: it could not be read that far.
    """
    return kind not in _WRITES_NONE


class UpdateKind(StrEnum):
    """The kinds of record in an updates topic (docs/wire.md, Kinds of an updates topic)."""

    UPDATE = "update"
    """one hub epoch's batch for one consumer, or a chunk of it"""
    STOPPED = "stopped"
    """the hub reads nothing more of the replica and sends it nothing more: why"""
    PACKET = "packet"
    """the hub exported a packet, whose content is in no topic; no consumer does anything with it"""


WIRE_VERSIONS = (1,)
"""The versions of the wire that this release reads and writes, the newest last (docs/wire.md)."""

RECORD_BYTES = 1_000_000
"""The default limit of a change, in bytes."""


class Reason(StrEnum):
    """Why a record is in quarantine (docs/protocol.md, Reasons)."""

    UNREADABLE = "unreadable"
    """not written as Kafka's records are, or endless"""
    JSON = "json"
    """not a JSON object in UTF-8"""
    VERSION = "version"
    """written by a newer wire format"""
    KIND = "kind"
    """an unknown kind, or a field of the kind is missing or of the wrong form"""
    CSN = "csn"
    """the CSN is not 20 lower-case hex digits"""
    RID = "rid"
    """the CSN is of another replica than the topic"""
    RIGHTS = "rights"
    """a write in a table that the replica may not write"""
    SESSION = "session"
    """before the first hello, of an old session, or `applied` of what was not sent"""
    TABLE = "table"
    """an unknown table, or a value that does not fit its column"""
    COLUMN = "column"
    """an unknown column: it goes on by itself once the configuration has that"""
    KEY = "key"
    """the key is not an object of the key columns in schema order, or differs from the image"""
    SIZE = "size"
    """the record, or the row that it makes, is too large to be ever sent"""
    BEFORE = "before"
    """a function or filter needs a before-image that is missing"""
    FUNCTION = "function"
    """a user's conflict function failed"""
    SKEW = "skew"
    """the CSN is more than a day ahead of the record's own time, and follows no accepted one"""
    LATE = "late"
    """below a CSN of the same replica that had become eligible"""
    PURGED = "purged"
    """not above the purge RUV: it may be a duplicate"""
    REUSED = "reused"
    """the CSN or the opno belongs to other content"""
    ENDED = "ended"
    """of a transaction that a hello or an operator aborted"""
    HIDDEN = "hidden"
    """a write on a row that the replica's filter hides"""

    @property
    def is_uncarried(self) -> bool:
        """Return whether the record cannot be taken as it is: what it wrote stays at its writer.

        Such a change is uncarried: its row is neither refreshed nor realigned, and neither is any
        other of its transaction (docs/protocol.md, What a quarantined change leaves behind).
        """
        return self in _UNCARRIED


_UNCARRIED = frozenset(
    {
        *(Reason.UNREADABLE, Reason.JSON, Reason.VERSION, Reason.KIND, Reason.CSN, Reason.RID),
        *(Reason.RIGHTS, Reason.TABLE, Reason.COLUMN, Reason.KEY, Reason.SIZE, Reason.SKEW),
        Reason.BEFORE,
    }
)
"""What a record alone gives as reasons, but for its session: by itself, by the time that its CSN
gives, and by what the function of its table needs."""


@dataclass(frozen=True, slots=True)
class Commit:
    """Commits all changes of this replica with this prim_csn."""

    prim_csn: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Discards all changes of this replica with this prim_csn."""

    prim_csn: str


@dataclass(frozen=True, slots=True)
class Applied:
    """In its `epoch` the replica had applied everything it was sent up to `covers`.

    `reached`: the hub epoch of the batch, which may be above `covers`; None: its agent is an older
    one, which does not tell.
    """

    epoch: int
    covers: int
    generation: int
    ruv: Ruv
    reached: int | None = None


@dataclass(frozen=True, slots=True)
class Hello:
    """The start of a session: the replica's true position.

    `epoch` is the one in which `covers` was stored. `own`: the largest own CSN up to which the
    database has every own CSN that its topic holds. `lost`: the topic holds one that it lacks.
    `versions`: the versions of the wire that its agent understands; None: only the first.
    `reinit`: the database was emptied, and gets everything anew, its own changes included.
    `unreplicated`: columns of configured tables that are not configured, each as table.column.
    `reached`: the hub epoch that it applied last, in any session; None: not told. `snapshot`: the
    id of the snapshot whose `end` is not known to be in the topic; None: there is none.
    `unpublished`: see Goodbye; None: not told. `agreement`: the one whose updates it reads; None:
    not told. `ruv_of`: the agreement that brought its RUV, if that is another one; its hub epochs
    count nothing then.
    """

    epoch: int
    covers: int
    generation: int
    ruv: Ruv
    own: str | None
    lost: bool
    versions: tuple[int, ...] | None = None
    reinit: bool | None = None
    unreplicated: tuple[str, ...] | None = None
    reached: int | None = None
    snapshot: str | None = None
    unpublished: int | None = None
    agreement: str | None = None
    ruv_of: str | None = None

    def is_answered_by(self, agreement: str | None) -> bool:
        """Return whether a hub with this agreement to its replica answers it, and no other hub.

        None: the hub has none. An agent of before names no agreement.
        """
        return self.agreement in (None, agreement)


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The replica is alive, and this is its epoch; `unpublished`: see Goodbye; None: not told."""

    epoch: int
    unpublished: int | None = None


@dataclass(frozen=True, slots=True)
class Goodbye:
    """The session's agent has ended; nobody reads what is written until the next hello.

    `epoch`: the replica's. `unpublished`: about how many entries of its journal are not in the
    topic.
    """

    epoch: int
    unpublished: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The database refused one item; precedes the `applied` of its batch."""

    hub_epoch: int
    csn: str
    table: str
    key: str
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The begin of a table in a snapshot, or the end of the snapshot with its number of rows.

    Its rows are changes (`Change.snapshot`).
    """

    phase: str
    id: str
    table: str | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class PublishedSchema:
    """The schema of the replica's database (streaming/core/schema/document.py).

    `document` None: that of an earlier record with this digest. `lacking`: the columns that the
    hub may send and the database cannot take, each as table.column; None: there are none.
    """

    digest: str
    document: str | None = None
    lacking: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class LocalWrites:
    """The writes that stay in the replica's database, by table (core/records/local_writes.py)."""

    tables: str


Record = (
    Change
    | Commit
    | Abort
    | Applied
    | Hello
    | Heartbeat
    | Goodbye
    | Refused
    | Snapshot
    | PublishedSchema
    | LocalWrites
)


@dataclass(frozen=True, slots=True)
class ReceivedRecord:
    """A record as it was read from a replica's topic; `reason`: why it is invalid, or None.

    `content`: of a change, its content hash; None: not computed yet. `kind`: of one that is
    invalid, as far as it could be read.
    """

    rid: int
    offset: int
    time_ms: int
    session: str | None
    record: Record | None
    reason: Reason | None = None
    detail: str = ""
    content: str | None = None
    kind: RecordKind | None = None


class ItemType(StrEnum):
    """What the consumer does with an item of an updates batch."""

    CHANGE = "change"
    """an accepted change of another replica"""
    REFRESH = "refresh"
    """the row as the hub has it, whatever the consumer has"""
    RANGE = "range"
    """the refreshes behind it are all rows of a range of keys"""
    UPSERTS = "upserts"
    """the same, for a consumer that is sent no deletes: its other rows of the range stay"""
    KEPT = "kept"
    """a row in a range that stays, or stays away, as the consumer wrote it"""


KEEP = "keep"
"""The op of an item of the type `kept`."""


@dataclass(frozen=True, slots=True)
class RangeItem:
    """The `count` items behind it are all rows of the table with `after` < key <= `to`.

    None is an open end. Rows of the range that are not among them are deleted. One of the type
    `kept` is neither written nor deleted. `hidden`: so many more rows of the range the hub has,
    which a filter keeps from the consumer; 0: none, or it does not vouch for what is deleted.
    `deletes`: False: it deletes nothing (`ItemType.UPSERTS`).
    """

    table: str
    after: str | None
    to: str | None
    count: int
    hidden: int = 0
    deletes: bool = True

    @property
    def type(self) -> ItemType:
        """What it is on the wire."""
        return ItemType.RANGE if self.deletes else ItemType.UPSERTS


@dataclass(frozen=True, slots=True)
class Item:
    """One row operation for a consumer, in hub order; `cause`: why a refresh was sent.

    `unset`: the columns that the consumer is sent and the row has no value of; there they have
    their default everywhere.
    """

    type: ItemType
    table: str
    key: str
    op: str
    after: str | None
    csn: str | None
    author: int
    prim_csn: str | None = None
    cause: str | None = None
    unset: tuple[str, ...] = ()

    @property
    def is_of_table(self) -> bool:
        """Whether it concerns all rows of the table."""
        return self.op == Op.TRUNCATE


@dataclass(frozen=True, slots=True)
class Update:
    """One record of an updates topic: a chunk of one hub epoch's batch for one agreement.

    `epochs`: of a page over several hub epochs (hub epoch, how many of its items are of that), in
    the order of the items. A consumer that has some of them leaves those items out.
    """

    agreement: str
    generation: int
    session: str
    hub_epoch: int
    prev: int
    covers: int
    ruv: Ruv
    chunk: int
    chunks: int
    items: tuple[Item | RangeItem, ...]
    epochs: tuple[tuple[int, int], ...] = ()

    def items_behind(self, hub_epoch: int) -> tuple[Item | RangeItem, ...]:
        """The items of later hub epochs than this one; all, where it is none of several."""
        return self.items[sum(count for of, count in self.epochs if of <= hub_epoch) :]

    @property
    def rows(self) -> list[Item]:
        """The items of single rows."""
        return [item for item in self.items if isinstance(item, Item)]

    @property
    def id(self) -> str:
        """The deterministic id: the same batch sent again has the same."""
        return f"{self.agreement}:{self.generation}:{self.session}:{self.hub_epoch}:{self.chunk}"


@dataclass(frozen=True, slots=True)
class Stopped:
    """The hub's answer to a session in which it stopped the replica; `state`: as `status` shows it.

    `remedy`: what to do, in one sentence.
    """

    agreement: str
    generation: int
    session: str
    state: str
    remedy: str

    @property
    def id(self) -> str:
        """The deterministic id: the same answer sent again has the same."""
        return f"{self.agreement}:{self.generation}:{self.session}:stopped"


@dataclass(frozen=True, slots=True)
class PacketMarker:
    """A packet that the hub exported: by it a hub whose state was put back sees what it had sent.

    `session`: the one that is answered; None: its consumer has said no hello. `number`: of the
    packet; `hub_epoch`: up to which the consumer is sent everything by it and those before.
    `row_before`, `row_after`: origin's name -> the number up to which the consumer is taken to have
    its changes.
    """

    agreement: str
    generation: int
    session: str | None
    number: int
    hub_epoch: int
    row_before: Mapping[str, int]
    row_after: Mapping[str, int]

    @property
    def id(self) -> str:
        """The deterministic id: that of a packet which is exported again is the same."""
        return f"{self.agreement}:{self.generation}:packet:{self.number}"
