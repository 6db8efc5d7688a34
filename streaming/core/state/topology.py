"""The part of the configuration that the pure core uses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from streaming.core.conflict.winner import UserFunction
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.csn import MAX_SKEW_S
from streaming.core.model.row import RowState
from streaming.core.model.row_filter import RowFilter
from streaming.core.model.table import DEFAULT_DATASET, Table
from streaming.core.records.record import RECORD_BYTES
from streaming.core.state.sending_times import AT_ONCE, SendingTimes

MAX_AWAY_MS = 168 * 3_600_000
"""A week."""


class JudgingOrder(StrEnum):
    """What the transactions of a batch are ordered by; inside, their changes are in CSN order."""

    LARGEST_CSN = "largest_csn"
    """their largest CSN: the protocol's order, which keeps each row's local order"""
    PRIMARY_CSN = "primary_csn"
    """their first CSN: by the beginning of a transaction; only to ask what it would have done"""
    ARRIVAL = "arrival"
    """the time of their last change's record in Kafka; only to ask what it would have done"""


@dataclass(frozen=True, slots=True)
class Subscription:
    """An agreement as configured: its consumer's rid, and what it is sent, of one data set.

    Which changes of the log are sent asks `sends` alone; what concerns a table as a whole, as a
    resync that copies it or a count of rows, reads `tables`. `packet_every_ms`: how often its
    consumer is sent a packet, 0: only on order; None: it reads its updates topic. `rows`: table ->
    which of its rows the consumer is shown; of a table that is absent all of them. `times`: when
    what is committed is sent. `bytes_per_s`: how much is sent a second on average, 0: any.
    `columns`: table -> which of its columns are sent; of a table that is absent all of them.
    `configured`: the same of tables of which columns are not configured any more, whose values
    stand in rows all the same.
    `priority`: one that is higher is sent first in a batch. `sends_deletes`: False: what others
    delete, truncate or hide stays at the consumer as it was.
    """

    name: str
    consumer: int
    tables: frozenset[str]
    packet_every_ms: int | None = None
    rows: Mapping[str, RowFilter] = field(default_factory=dict)
    times: SendingTimes = AT_ONCE
    bytes_per_s: int = 0
    columns: Mapping[str, ColumnFilter] = field(default_factory=dict)
    configured: Mapping[str, ColumnFilter] = field(default_factory=dict)
    priority: int = 0
    sends_deletes: bool = True

    @property
    def is_by_packets(self) -> bool:
        """Return whether its consumer is sent packets, for Kafka does not reach it."""
        return self.packet_every_ms is not None

    def sends(self, table: str) -> bool:
        """Return whether rows of this table are sent."""
        return table in self.tables

    @property
    def unfiltered(self) -> frozenset[str]:
        """The tables of which every accepted change is sent."""
        return self.tables - self.rows.keys() if self.sends_deletes else frozenset()

    def sends_as(self, other: "Subscription", table: str) -> bool:
        """Return whether a consumer has by another one what it is sent of a table by this one.

        These rows, these columns; rows that were deleted are there if deletes were not sent.
        """
        condition, theirs = (str(one.rows.get(table, "")) for one in (self, other))
        is_alike = condition == theirs and self.columns.get(table) == other.columns.get(table)
        return is_alike and (other.sends_deletes or not self.sends_deletes)

    @property
    def has_filters(self) -> bool:
        """Return whether what it sends of a row depends on the row's image."""
        return bool(self.rows or self.cuts)

    @property
    def cuts(self) -> Mapping[str, ColumnFilter]:
        """Table -> the columns of a row's image that are sent, where it may have others."""
        return {**self.configured, **self.columns} if self.configured else self.columns

    def columns_of(self, table: Table) -> tuple[str, ...]:
        """The columns of a table that are sent beside its key, in their order."""
        known = self.columns.get(table.name)
        sent = table.columns if known is None else known.columns
        return tuple(one for one in table.columns if one in sent and one not in table.key)

    def hides(self, table: str, row: RowState) -> bool:
        """Return whether the filter of a table keeps a row that exists from the consumer."""
        return table in self.rows and row.exists and not self.rows[table].shown([row.image])[0]


@dataclass(frozen=True, slots=True)
class Topology:
    """Tables and agreements by name, and the limits that decisions depend on.

    `users`: import path -> the user's conflict function. `returned`: table -> its columns that were
    not configured for a while.
    """

    tables: Mapping[str, Table]
    subscriptions: Mapping[str, Subscription]
    users: Mapping[str, UserFunction] = field(default_factory=dict)
    reflections: int = 64
    page_items: int = 50_000
    covers_interval_ms: int = 1_000
    record_bytes: int = RECORD_BYTES
    refused_again_ms: int = 10_000
    ack_timeout_ms: int = 300_000
    resync_page_rows: int = 10_000
    resync_pages: int = 4
    skew_s: int = MAX_SKEW_S
    max_away_ms: int = MAX_AWAY_MS
    order: JudgingOrder = JudgingOrder.LARGEST_CSN
    returned: Mapping[str, frozenset[str]] = field(default_factory=dict)
    by_consumer: Mapping[int, Subscription] = field(init=False)
    served: Mapping[int, str] = field(init=False)
    datasets: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Index by consumer its agreement and the data set that it is served."""
        by_consumer = {one.consumer: one for one in self.subscriptions.values()}
        served = {
            rid: self.dataset_of(min(one.tables)) for rid, one in by_consumer.items() if one.tables
        }
        datasets = tuple(sorted({table.dataset for table in self.tables.values()}))
        object.__setattr__(self, "by_consumer", by_consumer)
        object.__setattr__(self, "served", served)
        object.__setattr__(self, "datasets", datasets or (DEFAULT_DATASET,))

    def without(self, paused: Mapping[str, frozenset[str]]) -> "Topology":
        """The topology whose agreements send nothing of these of their tables."""
        pausing = {
            name: replace(one, tables=one.tables - paused[name])
            for name, one in self.subscriptions.items()
            if paused.get(name)
        }
        if not pausing:
            return self
        return replace(self, subscriptions={**self.subscriptions, **pausing})

    @property
    def defaulted(self) -> Mapping[str, Table]:
        """The tables with the columns in which a row without a value has the default everywhere.

        Where a column was not configured for a while, a row that was written meanwhile has lost its
        value at the hub, and the databases have it still.
        """
        return {
            name: replace(
                one, columns={c: k for c, k in one.columns.items() if c not in self.returned[name]}
            )
            if name in self.returned
            else one
            for name, one in self.tables.items()
        }

    def in_priority(self, agreements: Iterable[str]) -> list[str]:
        """The names of these agreements as a batch sends to them: the highest priority first."""
        return sorted(agreements, key=lambda name: -self.subscriptions[name].priority)

    def times(self, agreement: str) -> SendingTimes:
        """When this agreement sends what is committed."""
        subscription = self.subscriptions.get(agreement)
        return subscription.times if subscription else AT_ONCE

    def dataset_of(self, table: str) -> str:
        """The data set of a table."""
        return self.tables[table].dataset

    def dataset_at(self, rid: int) -> str:
        """Return the data set that this replica is sent; without an agreement the default one."""
        return self.served.get(rid, DEFAULT_DATASET)

    def sees(self, rid: int, table: str) -> bool:
        """Return whether this replica receives the table; if not, the MRE of its changes is 0."""
        subscription = self.by_consumer.get(rid)
        return subscription is not None and subscription.sends(table)

    def hides(self, rid: int, table: str, row: RowState) -> bool:
        """Return whether the filter of a table keeps a row that exists from this replica."""
        subscription = self.by_consumer.get(rid)
        return subscription is not None and subscription.hides(table, row)

    def sends_all(self, rid: int, table: str) -> bool:
        """Return whether this replica is sent every accepted change of the table."""
        subscription = self.by_consumer.get(rid)
        return subscription is not None and table in subscription.unfiltered

    def sends_some(self, rid: int, table: str) -> bool:
        """Return whether this replica is sent some of the accepted changes of the table only."""
        return self.sees(rid, table) and not self.sends_all(rid, table)

    def keeps_deleted(self, rid: int, table: str) -> bool:
        """Return whether rows of the table that others delete stay at this replica."""
        subscription = self.by_consumer.get(rid)
        return subscription is not None and not subscription.sends_deletes and self.sees(rid, table)

    def has_filter(self, rid: int, table: str) -> bool:
        """Return whether this replica is shown some rows of the table only."""
        subscription = self.by_consumer.get(rid)
        return subscription is not None and table in subscription.rows

    @property
    def columns(self) -> dict[int, Mapping[str, ColumnFilter]]:
        """Rid -> table -> the columns that this replica has, of those that lack some.

        What it is sent masked it may not write, so no change of it has columns to lose.
        """
        found = {
            rid: {table: known for table, known in one.columns.items() if not known.masks}
            for rid, one in self.by_consumer.items()
        }
        return {rid: columns for rid, columns in found.items() if columns}

    @property
    def visible(self) -> dict[int, frozenset[str]]:
        """Rid -> the tables of which it is sent every accepted change."""
        return {rid: one.unfiltered for rid, one in self.by_consumer.items()}

    def sent_columns(self, rid: int, table: str) -> frozenset[str]:
        """The columns of a table that this replica is sent; none of one that it is not sent."""
        subscription = self.by_consumer.get(rid)
        if subscription is None or not subscription.sends(table) or table not in self.tables:
            return frozenset()
        known = subscription.columns.get(table)
        return known.columns if known else frozenset(self.tables[table].columns)

    def agreement_of(self, rid: int) -> str | None:
        """The name of the agreement whose consumer this replica is."""
        subscription = self.by_consumer.get(rid)
        return subscription.name if subscription else None
