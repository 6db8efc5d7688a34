"""What the agent's loop needs from a database and from a broker.

The loop knows no database. A connector implements ReplicaStore, the loop does the rest. Four rules
hold for every implementation:

1. Changes are captured in commit order, and what the agent applied itself is not captured.
2. CSN and epoch of a change are stored in the transaction that writes the row. Where the
   database's own log is the journal, they follow from that log and a stored checkpoint alone, and
   `applied` stands in the log at the place of its transaction.
3. A batch of the hub is one local transaction: rows, position, epoch and `applied`.
4. The journal, or the log, keeps a record until the changes topic is known to hold it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from connectors.agent.own_topic import OwnTopic
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Change
from streaming.core.model.errors import HubError
from streaming.core.records.local_writes import TableWrites
from streaming.core.records.record import Commit, Hello, PublishedSchema, Record, Refused, Snapshot


class StoreError(HubError):
    """The replica's database failed; the text is the database's own."""


class StoreBusyError(StoreError):
    """A local transaction holds a lock: nothing was changed, and the call can be repeated."""


class StoreLostError(StoreError):
    """The connection to the database is lost: another one goes on from what is stored."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A record in the journal; ids grow in commit order.

    `session` is set for `applied` only: the session in which the batch was applied. Any other
    record belongs to the session in which it is published. `faults`: what in the change no replica
    can take, each with what to do; the hub quarantines it. `within`: the transaction in which a
    change was written that is published by itself.
    """

    id: int
    record: Record
    session: str | None
    faults: tuple[str, ...] = ()
    within: str | None = None

    @property
    def transaction(self) -> str | None:
        """The transaction of several rows in which it was written."""
        own = self.record.prim_csn if isinstance(self.record, Change | Commit) else None
        return own or self.within


@dataclass(frozen=True, slots=True)
class UncarriedRow:
    """A row whose last write no replica can take, and why; `since_ms` 1970."""

    table: str
    key: str
    csn: str
    since_ms: int
    faults: str


@dataclass(frozen=True, slots=True)
class SavedRow:
    """A row that was saved because it was nowhere else, and why, before it was overwritten."""

    table: str
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class KeptRows:
    """How many rows are only in this database; `first`: the oldest that is not replicated.

    `uncarried` stand in their tables, `saved` do no more.
    """

    uncarried: int = 0
    saved: int = 0
    first: UncarriedRow | None = None


@dataclass(frozen=True, slots=True)
class HeldLog:
    """How many bytes of its log a server keeps for the agent, and who holds them, for people.

    `room_bytes`: how many more are written before it removes what the agent needs; None: no bound.
    """

    bytes: int
    room_bytes: int | None
    by: str


@dataclass(frozen=True, slots=True)
class AppliedBatch:
    """The position after a batch, the items that the database refused, and the rows saved before.

    `saved_shown_by`: the command that shows saved rows.
    """

    position: Position
    refused: tuple[Refused, ...]
    saved: tuple[SavedRow, ...] = ()
    saved_shown_by: str = ""


class ReplicaStore(Protocol):
    """A replica's database; every method may raise StoreBusyError or StoreError."""

    # -- capture: committed local changes and the agent's own records, in one order -------------

    def check_schema(self) -> None:
        """Adapt to a schema that was changed meanwhile, and warn of what is new in it.

        ConfigError: the tables can no longer be replicated as configured.
        """

    def unpublished_schema(self) -> PublishedSchema | None:
        """The schema, if this process has not published it yet; without what the topic has of it.

        Its document is bounded.
        """

    def mark_schema_published(self, schema: PublishedSchema) -> None:
        """Store that the topic holds the document of this schema."""

    def unpublished(self, rows_max: int, bytes_max: int) -> list[JournalEntry]:
        """The next entries behind the last one marked as published, in commit order.

        At most `rows_max`, and no further entry once their images exceed `bytes_max`; empty if
        everything is published. No change may come later with a CSN below one returned here.
        """

    def backlog(self) -> int:
        """About how many entries are behind the last one marked as published; it must be quick.

        A table of which writes were not captured counts as one, until a full copy of it is applied.
        """

    def mark_published(self, entry: JournalEntry) -> None:
        """Store durably that the changes topic holds the journal up to this entry.

        StateError: the database does not have it as it was read, so another one is in its place.
        """

    def renumber(self, after: int, above: str, clock_ms: int) -> int:
        """Give the changes behind this entry new CSNs of this clock; how many there are.

        A clock that was wrong has written them, and no topic has one of them. In one local
        transaction, in their order and groups, above this CSN and those that were applied, unless
        these are too far ahead; the generator goes on behind them.
        """

    def kept_rows(self) -> KeptRows:
        """The rows that are only in this database, for the log and the metrics; it must be quick.

        A row whose change has faults is listed durably until it is written again or overwritten.
        """

    def local_writes(self) -> Mapping[str, TableWrites]:
        """Table -> the writes that stay in this database since it is a replica; of others none.

        They are not captured. The numbers never become others for the same writes.
        """

    def held_log(self) -> HeldLog | None:
        """What the database's server keeps of its log for the agent; None: its log is no journal.

        It must be quick.
        """

    def journal_snapshot(self, rows_max: int) -> bool:
        """Journal the next rows of the snapshot, at most so many; False: none is being told.

        They are read, numbered and journalled in one local transaction. A snapshot is of the rows
        that the database had before it was captured; the hello names it until its end is known to
        be in the topic.
        """

    def find(self, record: Change | Commit | Snapshot) -> int | None:
        """The id of the entry with the same content as a record of the own topic, if any."""

    def publish_again(self, behind: str) -> bool:
        """Count what was written behind this own CSN as not published, atomically.

        The rest of its transaction counts so too. False: the journal has not all of it any more,
        and nothing was changed.
        """

    def published_own(self) -> str | None:
        """The largest own CSN that is known to be in the changes topic, if any."""

    def close_abandoned_group(self) -> None:
        """End a transaction group that a client committed without ending it, if there is one.

        Otherwise its changes stay pending at the hub.
        """

    # -- position: how far the replica has applied the hub's batches, and its sessions ----------

    position: Position
    """The position in force; only `follow`, `apply` and `start_session` store it."""

    @property
    def epoch(self) -> int:
        """The replica's epoch, which every applied batch raises by one."""

    @property
    def updates_offset(self) -> int:
        """The offset in the updates topic behind the last batch that was applied."""

    def follow(self, agreement: str | None) -> None:
        """Read the updates of this agreement from here on; before the first session of a run.

        A position that another agreement brought becomes `Position.moved`, and the offset in the
        updates topic 0, for it is another topic. Every hello names the agreement. None: nothing is
        sent to the replica.
        """

    def compared_up_to(self) -> tuple[int, OwnTopic]:
        """The offset of the own topic from which to compare, and the state at that offset."""

    def mark_compared(self, offset: int, past: OwnTopic) -> None:
        """Store that the own topic was compared up to this offset, and its losses reported."""

    def reconcile(self, past: OwnTopic) -> str | None:
        """Move CSN generator, epoch and opno past what the own topic holds, atomically.

        Entries that the topic holds count as published, but for those of `OwnTopic.torn`.
        Unpublished changes whose CSN or opno the topic has passed get new ones, and what is cut off
        from a transaction that the topic has committed becomes one of its own. Returns the hello's
        `own`: the largest own CSN up to which the database has every own CSN of the topic.
        """

    def start_session(
        self, session: str, own: str | None, *, lost: bool, position: Position | None = None
    ) -> Hello:
        """Store a new session and return its hello.

        Unpublished `applied` entries are removed in the same transaction, because the hello
        contains what they do. `position`: where the session starts; None: the one in force. The
        hello of a database that was emptied has `reinit` until the first batch is applied or an
        entry is published; every hello names the columns that are not replicated.
        """

    # -- apply: one batch of the hub as one local transaction ------------------------------------

    def apply(self, batch: ApplyBatch, next_offset: int, clock_ms: int) -> AppliedBatch:
        """Apply the items in order, and store the position and the offset behind the batch.

        One transaction holds the rows, the position, the epoch raised by one, the CSN generator
        moved past the items' CSNs, a `refused` for each item that the database does not accept,
        and the `applied` with the epoch before. A refused item does not block the others. What it
        overwrites or deletes and what is not known to be in the topic whole is saved in it first.
        StoreBusyError: a local transaction has rows open, and nothing was applied.
        StateError: the batch holds an item of a kind that this agent does not know.
        """


class Publisher(Protocol):
    """Publish: the replica's own topic, which is read once at the start and then only written."""

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """Every record from this offset to the present end, as (offset, value)."""

    def last(self) -> bytes | None:
        """The last record that is there now; None: there is none."""

    @property
    def is_connected(self) -> bool:
        """Return whether what is published now probably arrives at once."""

    def publish(self, values: list[bytes]) -> None:
        """Write records in order and return once all are acknowledged."""


class Receiver(Protocol):
    """Receive: the topic in which the hub sends batches to the replica."""

    def poll(self, timeout_ms: int) -> list[tuple[int, bytes]]:
        """The next records as (offset, value); empty if none arrives in that time."""
