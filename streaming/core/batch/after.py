"""What a batch leaves behind: positions, lists, and what each agreement is sent."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from streaming.core.batch.exporting import largest_csn, packets_of, plan_export
from streaming.core.batch.sending import (
    EpochMark,
    SendingView,
    SendPlan,
    is_told,
    plan,
    plan_due,
)
from streaming.core.delivery.due import due_limit, without_early_rows
from streaming.core.intake.intake import Intake
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.ruv import largest_of
from streaming.core.model.truncation import Truncation
from streaming.core.retention.purge import Purge, with_retention
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.held_back import HeldBack
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.tracking.ranges import KeyRange, RangeRealign, key_order, with_range
from streaming.core.tracking.resync import ResyncPage

RowStates = Mapping[RowKey, RowState]


class TablesAfter(NamedTuple):
    """What a batch makes of whole tables.

    `ranges`: those that realign their keys. `truncations`: table -> its last truncate. `rescans`:
    (rid, table) of tables that a replica must get back, rows that it lacks and none else.
    """

    ranges: tuple[RangeRealign, ...]
    truncations: Mapping[str, Truncation]
    rescans: frozenset[tuple[int, str]]


def resolve_refusals(
    intake: Intake,
    changed: Collection[RowKey],
    rows_of: Callable[[list[RowKey]], RowStates],
    pages: Iterable[ResyncPage],
    hub_epoch: int,
) -> None:
    """Note which refused rows are sent again, and close those that their replica has by now.

    `changed`: the rows that the batch changed. `rows_of`: rows as they are after it. `pages`: those
    that it sends.
    """
    for page in pages:
        consumer = intake.agreements[page.agreement].consumer
        for one in _ranges(page):
            order = key_order(intake.topology.tables[one.table])
            intake.refused.send_range(consumer, one, order, hub_epoch)
    found = intake.refused.to_resolve(changed)
    if found:
        acked = {one.consumer: one.acked_covers for one in intake.agreements.values()}
        rows = rows_of([one.row for one in found])
        intake.refused.resolve(found, rows, intake.topology.sends_all, acked)


def state_after(
    intake: Intake,
    hub_epoch: int,
    entries: int,
    has_items: Mapping[str, bool],
    view: SendingView,
    tables: TablesAfter,
    conflicted: Collection[int] = (),
    pages: Sequence[ResyncPage] = (),
    purge: Purge | None = None,
) -> HubState:
    """Return the state after a batch: positions, lists and what each agreement is sent.

    `entries`: how many changelog rows the batch has. `has_items`: agreement -> whether some of
    them are sent to its consumer; absent: nothing is sent to it. `tables`: what judging made of
    whole tables. `conflicted`: the replicas that wrote a change in conflict. `pages`: those of
    resyncs that the batch sends. `purge`: what its plan says is purged.
    """
    previous, ruvs, topology = intake.state.hub_epoch, intake.ruvs, intake.topology
    own = [EpochMark(hub_epoch, entries, ruvs, view.clock_ms)] if hub_epoch > previous else []
    seen = replace(
        view,
        previous=previous,
        hub_epoch=hub_epoch,
        ruvs=ruvs,
        marks=lambda after, to: [
            *view.marks(after, to),
            *(one for one in own if after < hub_epoch <= to),
        ],
    )
    sent_pages = {page.agreement: page for page in pages}
    scans = {one.consumer: one.name for one in topology.subscriptions.values()}
    waited_for = {
        name: one
        if one.consumer in view.unread
        else one.unless_silent(view.clock_ms, topology.ack_timeout_ms)
        for name, one in intake.agreements.items()
    }
    agreements = {
        name: _with_page(one, sent_pages.get(name), hub_epoch) for name, one in waited_for.items()
    }
    for rid, table in sorted(tables.rescans):
        name = scans.get(rid)
        if name is not None and topology.sees(rid, table):
            agreements[name] = agreements[name].rescanning(table, view.clock_ms)
    agreements = {
        name: without_early_rows(
            one.below_purge(intake.state.gone_epoch, view.clock_ms),
            topology.times(name).delay_ms,
            view.clock_ms,
            is_released=name in intake.copying,
        ).begun(hub_epoch)
        for name, one in agreements.items()
    }
    ranges = {name: _ranges(page) for name, page in sent_pages.items()}
    plans = {
        name: _plan(
            intake,
            agreement,
            seen,
            has_items=has_items.get(name, False),
            has_page=name in sent_pages,
            ranges=ranges.get(name, ()),
        )
        for name, agreement in agreements.items()
    }
    intake.open.forget([*ruvs.values(), *intake.state.purge_ruvs.values()])
    largest = largest_of(ruvs.values())
    after = replace(
        intake.state,
        batch=intake.state.batch + 1,
        hub_epoch=hub_epoch,
        ruvs=ruvs,
        replicas={
            rid: _stability(
                replica.judged_up_to(hub_epoch, largest.get(rid, "")),
                hub_epoch,
                conflicted=rid in conflicted,
            )
            for rid, replica in intake.replica_states().items()
        },
        agreements={name: one.agreement for name, one in plans.items()},
        to_send={name: one.to_send for name, one in plans.items() if one.to_send is not None},
        held_back=_held_back(intake, plans),
        paused_tables=intake.paused_tables,
        open=intake.open,
        refusals=intake.refused.after,
        ranges=_with_ranges(intake, tables.ranges, ranges, hub_epoch),
        truncations=tables.truncations,
        numbers=intake.numbers,
        lacking=intake.lacking,
    )
    return with_retention(intake.state, after, purge, view.clock_ms, topology.max_away_ms)


def _plan(
    intake: Intake,
    agreement: AgreementState,
    view: SendingView,
    *,
    has_items: bool,
    has_page: bool,
    ranges: tuple[KeyRange, ...],
) -> SendPlan:
    """What the batch sends to an agreement: to its topic, or by a packet if one is exported."""
    topology, name, rid = intake.topology, agreement.name, agreement.consumer
    subscription, dataset = topology.subscriptions.get(name), topology.dataset_at(rid)
    packets = packets_of(agreement, subscription, intake.replicas, view.places)
    held = intake.held_back(name)
    times, is_throttled = topology.times(name), name in intake.throttled
    limit = due_limit(agreement, times, held, view.clock_ms, is_throttled=is_throttled)
    if limit is not None:
        return plan_due(
            agreement,
            view,
            dataset,
            limit,
            held,
            page_items=topology.page_items,
            covers_interval_ms=topology.covers_interval_ms,
        )
    if packets is None:
        return plan(
            agreement,
            view,
            dataset,
            has_items=has_items or has_page,
            page_items=topology.page_items,
            covers_interval_ms=topology.covers_interval_ms,
            ranges=ranges,
        )
    return plan_export(
        agreement,
        packets,
        view,
        dataset,
        batch=intake.state.batch + 1,
        page_items=topology.page_items,
        csn=largest_csn(intake, rid),
        has_items=has_items,
        has_page=has_page,
        is_news=not is_told(intake.state.agreements.get(name), agreement),
        ranges=ranges,
    )


def _held_back(intake: Intake, plans: Mapping[str, SendPlan]) -> dict[str, HeldBack]:
    """What each agreement is not sent yet; that a copy was let go is kept until it is done.

    Its consumer may start a new session meanwhile, and the copy begins anew.
    """
    found = {name: one.held_back for name, one in plans.items() if one.held_back is not None}
    for name in intake.copying & plans.keys():
        one = plans[name].agreement
        is_done = one.resync is None and not one.lacks_resync
        known = found.get(name)
        if known is not None:
            found[name] = replace(known, copies=not is_done)
        elif not is_done:
            found[name] = HeldBack(one.scanned, 0, copies=True)
    return found


def _with_page(
    agreement: AgreementState, page: ResyncPage | None, hub_epoch: int
) -> AgreementState:
    """The agreement once a page of its resync is committed.

    A table of which a range was sent stays to be scanned until the last page is acknowledged,
    for its rows count as the hub's from here on, and the range may never be applied.
    """
    if page is None or agreement.resync is None:
        return agreement
    scans = agreement.scans | {one.table for one in _ranges(page)}
    return replace(agreement, scans=scans, resync=agreement.resync.page_sent(page, hub_epoch))


def _ranges(page: ResyncPage) -> tuple[KeyRange, ...]:
    return tuple(one.part for one in page.parts if one.kind.is_whole)


def _with_ranges(
    intake: Intake,
    known: tuple[RangeRealign, ...],
    sent: Mapping[str, Sequence[KeyRange]],
    hub_epoch: int,
) -> tuple[RangeRealign, ...]:
    """The ranges that realign their keys, with those that this batch sends."""
    for name, ranges in sent.items():
        rid = intake.agreements[name].consumer
        for one in ranges:
            known = with_range(known, RangeRealign(one, rid, hub_epoch))
    return known


def _stability(replica: ReplicaState, hub_epoch: int, *, conflicted: bool) -> ReplicaState:
    """Record the last conflict, or the epoch that was reflected after all conflicts were."""
    if conflicted:
        return replace(replica, last_conflict_epoch=hub_epoch)
    if replica.handles_conflict or replica.mre == replica.last_stable_epoch:
        return replica
    return replace(replica, last_stable_epoch=replica.mre)
