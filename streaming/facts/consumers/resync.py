"""Consumers that are away, or that a resync brings what they lack: why, since when, how far."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

import pyarrow as pa

from checkpoints.reading.reader import Reader
from checkpoints.times import time_of
from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.core.delivery.waits import ResyncWait, prepares_rows, waiting_resync
from streaming.core.model.command import CommandName, ResyncOrder, parse_resync_order
from streaming.core.model.errors import ConfigError, HubError
from streaming.core.model.statuses import AgreementStatus, AwayReason, remedy_of
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.text.wording import as_percent
from streaming.core.tracking.progress import Accounting, ResyncMode, estimated_end, progress
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.names import agreement_named, committed

COUNTED_ENTRIES = 1_000_000
"""From how many entries of the changelog on the rows that a consumer lacks are not counted."""


class GivenOrder(NamedTuple):
    """An operator's order of a resync: the number of its command, and when it was given."""

    number: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class ConsumerResync:
    """A consumer that is away, in resync, or that is to be; None: it cannot be said, or not yet.

    `state`: of the agreement. `away`: why it is sent nothing; `remedy`: what to do about that.
    `is_ordered`: an operator's order waits for the hub, and no more is to be done. `since`: when it
    went away, or when the resync began. `waits_for`: what has to happen before it goes on, since
    `waits_since`; `waits_text` says both. `mode`: of this resync, or of the next. `tracked`: the
    rows that it lacks while it is away. `synchronized`, `total`: rows that are sent, and that are
    to be. `percent`: with two decimals, 100 only when all is sent. `unacknowledged`: pages that are
    sent and not acknowledged.
    """

    agreement: str
    consumer: str
    state: str
    away: AwayReason | None
    remedy: str | None
    is_ordered: bool
    since: datetime | None
    waits_for: ResyncWait
    waits_since: datetime | None
    waits_text: str
    mode: ResyncMode
    tracked: int | None = None
    synchronized: int | None = None
    total: int | None = None
    percent: float | None = None
    tables: int | None = None
    tables_left: int | None = None
    unacknowledged: int | None = None
    estimated_end: datetime | None = None

    @property
    def percent_text(self) -> str | None:
        """How much of the resync is sent, as `33.33%`; None: it cannot be said yet."""
        return None if self.percent is None else as_percent(round(self.percent * 100))

    @property
    def state_text(self) -> str:
        """The state for people: with the percentage, with the order or the end that waits."""
        is_known = self.state == AgreementStatus.RESYNC and self.percent_text
        state = f"{self.state} {self.percent_text}" if is_known else self.state
        if self.is_ordered:
            return f"{state}, resync ordered"
        if self.away or self.state == AgreementStatus.RESYNC:
            return state
        missing = "the end of its resync not acknowledged" if self.since else "its resync not begun"
        return f"{state}, {missing}"


def resyncs(config: Config, reader: Reader, now_s: float) -> tuple[ConsumerResync, ...]:
    """Every consumer that is away or in resync, by agreement, with the rows that it lacks."""
    found = consumer_resyncs(config, reader, now_s)
    return tuple(
        replace(one, tracked=tracked_count(config, reader, agreement_named(config, one.agreement)))
        if one.away
        else one
        for one in found
    )


def consumer_resyncs(
    config: Config, reader: Reader, now_s: float, orders: Mapping[str, GivenOrder] | None = None
) -> tuple[ConsumerResync, ...]:
    """The same without a count of rows, which reads the changelog.

    `orders`: those of `resync_orders`, if they are at hand.
    """
    if reader.commit is None:
        return ()
    hub, ordered = reader.commit.state, ordered_resyncs(reader, orders)
    turns = _turns(hub, config.limits.resync_workers)
    return tuple(
        _consumer_resync(config, hub, one, ordered.get(one.name), now_s, has_turn=one.name in turns)
        for one in config.agreements
        if one.name in ordered or lacks_rows(state_of(hub, one.name))
    )


def _turns(hub: HubState, workers: int) -> frozenset[str]:
    """The agreements whose rows the hub prepares; the others wait behind them."""
    found = [
        (one.resync.started_ms, one.name)
        for one in hub.agreements.values()
        if one.resync is not None and prepares_rows(one)
    ]
    return frozenset(name for _, name in sorted(found)[:workers])


def lacks_rows(agreement: AgreementState) -> bool:
    """Return whether its consumer is away, or a resync of it is not acknowledged to its end.

    One that is still to begin counts as well: who has all hub epochs may lack what it brings.
    """
    is_tracking = agreement.status is AgreementStatus.CHANGE_TRACKING
    is_unfinished = agreement.resync is not None or agreement.lacks_resync
    return is_tracking or (is_unfinished and not agreement.status.ends_agent)


def ordered_resyncs(
    reader: Reader, orders: Mapping[str, GivenOrder] | None = None
) -> dict[str, int]:
    """Agreement -> when an operator ordered a resync of it that the hub has not taken yet."""
    taken = reader.commit.command_number if reader.commit else 0
    known = resync_orders(reader) if orders is None else orders
    return {name: one.at_ms for name, one in known.items() if one.number > taken}


def resync_orders(reader: Reader) -> dict[str, GivenOrder]:
    """Agreement -> the last order of a resync of it, taken or not."""
    return {
        parse_resync_order(row["argument"]).agreement: GivenOrder(
            row["number"], round(row["at"].timestamp() * 1000) if row["at"] else 0
        )
        for row in reader.commands()
        if row["command"] == CommandName.RESYNC
    }


def _consumer_resync(
    config: Config,
    hub: HubState,
    of: AgreementConfig,
    ordered_ms: int | None,
    now_s: float,
    *,
    has_turn: bool,
) -> ConsumerResync:
    agreement, rid = state_of(hub, of.name), config.replica(of.consumer).rid
    replica = hub.replicas.get(rid, ReplicaState(rid))
    waiting = waiting_resync(
        agreement,
        ordered_ms=ordered_ms,
        ended_ms=replica.ended.at_ms if replica.ended else None,
        seen_ms=replica.seen_ms,
        has_turn=has_turn,
        is_open=of.times.is_open(round(now_s * 1_000)),
    )
    resync, is_away = agreement.resync, agreement.status is AgreementStatus.CHANGE_TRACKING
    is_ordered = ordered_ms is not None
    remedy = remedy_of(agreement.status, agreement.detail, of.consumer, of.name)
    waits_since = time_of(waiting.since_ms) if waiting.since_ms else None
    began_ms = agreement.away_ms if is_away else resync.started_ms if resync else 0
    found = ConsumerResync(
        agreement=of.name,
        consumer=of.consumer,
        state=agreement.status_text,
        away=AwayReason(agreement.detail) if is_away else None,
        remedy=None if is_ordered else remedy,
        is_ordered=is_ordered,
        since=time_of(began_ms) if began_ms else None,
        waits_for=waiting.what,
        waits_since=waits_since,
        waits_text=f"waits for {waiting.text}{_since_text(waits_since)}",
        mode=ResyncMode.FULL if agreement.is_full else ResyncMode.INCREMENTAL,
    )
    if resync is None or resync.accounting is None:
        return found
    known = replace(found, unacknowledged=len(resync.unacked))
    return _with_progress(known, resync.accounting, now_s, is_over=resync.last_page > 0)


def _since_text(since: datetime | None) -> str:
    return f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since else ""


def _with_progress(
    found: ConsumerResync, accounting: Accounting, now_s: float, *, is_over: bool
) -> ConsumerResync:
    total, sent = accounting.total_rows, accounting.sent_rows
    end_s = estimated_end(accounting.started_s, int(now_s), total, sent)
    shown_total, share = progress(sent, total, end_s, is_over=is_over)
    return replace(
        found,
        mode=accounting.mode,
        synchronized=sent,
        total=shown_total,
        percent=None if share is None else share / 100,
        tables=len(accounting.accounts),
        tables_left=accounting.tables_left,
        estimated_end=None if end_s is None else time_of(end_s * 1_000),
    )


def tracked_count(config: Config, reader: Reader, agreement: AgreementConfig) -> int | None:
    """How many rows a consumer lacks by its last acknowledgement; None: too many to be counted.

    They are what a resync brings that copies and scans nothing.
    """
    from streaming.stages.filtered import with_filter_columns  # noqa: PLC0415  # only a count needs the stages
    from streaming.stages.tracked import TRACKED_COLUMNS, newest, tracked_rows  # noqa: PLC0415  # only a count needs the stages

    hub = committed(reader)
    state, rid = state_of(hub, agreement.name), config.replica(agreement.consumer).rid
    floors = hub.replicas.get(rid, ReplicaState(rid)).floors
    subscription = config.subscription(agreement)
    configured = [table.name for table in config.tables]
    entries, found = 0, list[pa.Table]()
    columns = with_filter_columns(TRACKED_COLUMNS, subscription)
    for part in reader.scan_changelog(columns, after=state.acked_covers, tables=configured):
        entries += part.num_rows
        if entries > COUNTED_ENTRIES:
            return None
        found.append(tracked_rows(part, subscription, state.acked_ruv, floors))
    return len(newest(found))


@dataclass(frozen=True, slots=True)
class PlannedResync:
    """What a resync does if it is ordered now.

    `after`: the hub epoch that the consumer acknowledged. `is_full`: it copies everything, also if
    an earlier order says so. `whole`: the tables of which it gets all rows. `tracked`: the rows of
    all its tables that it lacks; None: too many to be counted, or everything is copied.
    `begins_again`: one is under way. `waits_for_hello`: it begins with the consumer's next hello
    to this hub. `keeps_deleted`: it deletes nothing, for the consumer is an archive.
    """

    agreement: str
    consumer: str
    state: str
    after: int
    is_full: bool
    whole: tuple[str, ...]
    tracked: int | None
    begins_again: bool
    waits_for_hello: bool
    keeps_deleted: bool = False


def planned_resync(config: Config, reader: Reader, order: ResyncOrder) -> PlannedResync:
    """Foretell a resync; ConfigError for a wrong name, HubError if none can be ordered now."""
    agreement = agreement_named(config, order.agreement)
    tables = config.tables_of(agreement)
    if others := sorted(order.tables - tables):
        listed = ", ".join(sorted(tables))
        raise ConfigError(f"{agreement.name} has no table {others[0]!r}: use one of {listed}")
    state = orderable(reader, agreement)
    is_full = order.is_full or state.is_full
    return PlannedResync(
        agreement=agreement.name,
        consumer=agreement.consumer,
        state=state.status_text,
        after=state.acked_covers,
        is_full=is_full,
        whole=tuple(sorted(tables if is_full else order.tables | state.scans)),
        tracked=None if is_full else tracked_count(config, reader, agreement),
        begins_again=state.resync is not None,
        waits_for_hello=not state.has_position,
        keeps_deleted=not agreement.sends_deletes,
    )


def orderable(reader: Reader, agreement: AgreementConfig) -> AgreementState:
    """The state of an agreement that is sent to, or can be again; HubError with what to do."""
    known = committed(reader).agreements.get(agreement.name)
    if known is None:
        raise HubError(
            f"the hub does not know agreement {agreement.name} yet: restart it with this"
            " configuration, or wait for its first batch"
        )
    if known.is_stopped and known.status is not AgreementStatus.REFUSED:
        remedy = remedy_of(known.status, known.detail, agreement.consumer, agreement.name)
        what = remedy or "restart the hub with this configuration"
        raise HubError(f"{agreement.name} is {known.status_text}: {what}")
    return known
