"""What a batch leaves behind: the rows of each table, its counts, and the state after it."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from checkpoints import pending, refusals
from checkpoints.commit.epochs import Checkpoint, Plan
from checkpoints.reading import lookup
from checkpoints.store import Rows
from checkpoints.tables import TableName
from streaming.core.batch import after
from streaming.core.batch.counters import counted, in_conflict
from streaming.core.batch.sending import Refresh, SendingView
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.counts import tallies
from streaming.core.counts.counter_keys import WITHOUT_VALUE, CountKey, Counts, ReplicaKey
from streaming.core.intake.intake import Intake
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.row_name import key_of, text_of
from streaming.core.model.truncation import as_truncated
from streaming.core.records.quarantine_budget import QuarantineBudget
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.resync import ResyncPage
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.ingest import IngestedBatch
from streaming.stages import log as log_stage
from streaming.stages.judge import Verdicts
from streaming.stages.publish import Outgoing


def state_after(
    hub: Hub,
    plan: Plan,
    taken: IngestedBatch,
    outgoing: Outgoing,
    hub_epoch: int,
    verdicts: Verdicts,
    pages: Sequence[ResyncPage],
) -> HubState:
    """The state after the batch, with what each agreement is sent."""
    state, intake, nudged = hub.state, taken.intake, taken.commands.nudged
    marks = partial(
        lookup.page_marks,
        hub.ledger.store,
        committed=state.hub_epoch,
        page_items=intake.topology.page_items,
    )
    view = SendingView(
        *(state.hub_epoch, hub_epoch, state.ruvs, plan.at_ms, nudged, marks, hub.unread),
        places=plan.places,
    )
    has_items, entries = _has_items(outgoing, intake), outgoing.log.num_rows
    conflicted, tables = in_conflict(verdicts.judged.values()), verdicts.tables
    return after.state_after(
        intake, hub_epoch, entries, has_items, view, tables, conflicted, pages, plan.purge
    )


def resolve_refusals(
    hub: Hub, intake: Intake, verdicts: Verdicts, pages: Sequence[ResyncPage], hub_epoch: int
) -> None:
    """Note which refused rows this batch sends again, by the rows as they are after it."""
    if any(intake.refused.after.values()):
        changed = {key_of(text) for text in verdicts.rows}
        rows = partial(rows_after, hub, verdicts)
        after.resolve_refusals(intake, changed, rows, pages, hub_epoch)


def rows_after(hub: Hub, verdicts: Verdicts, keys: Collection[RowKey]) -> Mapping[RowKey, RowState]:
    """Rows as they stand after the batch; images only of those that it did not touch lately."""
    changed = {key: row for key in keys if (row := verdicts.rows.get(text_of(key))) is not None}
    before = hub.standing.rows([key for key in keys if key not in changed])
    return {**as_truncated(keys, before, verdicts.tables.truncations), **changed}


def _has_items(outgoing: Outgoing, intake: Intake) -> dict[str, bool]:
    """Which agreements the batch's own hub epoch holds something for."""
    subscriptions = intake.topology.subscriptions
    return {
        name: outgoing.sends(subscriptions[name], a.sent_ruv, intake.replicas[a.consumer].floors)
        for name, a in intake.agreements.items()
        if a.is_sent_to
    }


def table_rows(
    hub: Hub,
    plan: Plan,
    taken: IngestedBatch,
    log: pa.Table,
    hub_epoch: int,
    judged: Sequence[Judged],
    budget: QuarantineBudget,
) -> dict[TableName, Rows]:
    """The rows for each table of the state but the changelog; what is kept of records is tallied.

    `budget`: see quarantine_budget.
    """
    intake, values = taken.intake, _values(taken.facts.table)
    topics = hub.settings.known_topics
    originals = hub.outlets.originals
    recreated = hub.ledger.last.recreated
    settings = hub.settings
    allowed = settings.topology.record_bytes
    kept = log_stage.quarantine(
        intake.quarantined, values, originals, topics, plan.batch, recreated, budget
    )
    lost = log_stage.conflicts(log, judged, settings.topology, settings.names, plan.at_ms)
    rejected = {one.arrived.change.csn for one in judged if one.verdict is not Verdict.ACCEPTED}
    resolved = taken.commands.resolved.rows(plan.batch, rejected)
    refused = refusals.conflicts(intake.refused, settings.names, plan.batch, plan.at_ms)
    events = log_stage.events(intake, taken.commits, values, topics, plan.batch, hub_epoch, allowed)
    return {
        TableName.CONFLICTS: pa.concat_tables([lost, resolved, refused]),
        TableName.QUARANTINE: pa.concat_tables([kept, taken.commands.released.rows]),
        TableName.PENDING: pending.moves(
            hub.ledger.store, intake.state.open, intake.open, intake.ended, plan.batch
        ),
        TableName.EVENTS: events,
    }


def quarantine_budget(hub: Hub, taken: IngestedBatch) -> QuarantineBudget:
    """How much of each replica's records quarantine keeps, before those of the batch."""
    limits = hub.settings.quarantine
    budget = QuarantineBudget(limits, tallies.kept_sums(hub.ledger.last.totals))
    for rid, gone in taken.commands.released.gone.items():
        budget.give_back(rid, gone)
    return budget


def _values(records: pa.Table) -> dict[tuple[int, int], bytes]:
    """(rid, offset) -> the bytes of the records that came with them."""
    kept = records.filter(pc.is_valid(records["value"])).select(["rid", "offset", "value"])
    return {(row["rid"], row["offset"]): row["value"] for row in kept.to_pylist()}


def offsets_after(hub: Hub, plan: Plan, after: HubState) -> dict[str, int]:
    """Topic -> the first offset that the batch did not take; a stopped topic stays where it is."""
    stops = {
        topic: replica.stop_offset
        for topic, rid in hub.settings.topics.items()
        if (replica := after.replicas[rid]).stop_offset is not None
    }
    return {**plan.offsets_to, **stops}


def without_value(
    plan: Plan, ends: Mapping[str, int], topics: Mapping[str, int], facts: pa.Table
) -> dict[CountKey, int]:
    """Count the offsets that were taken and gave no record, of each replica.

    A record without a value, which Debezium sends behind a delete, leaves no trace, and Kafka gives
    offsets to the ends of transactions. `verify` tells by this number that nothing else is missing.
    """
    rids = {topics[topic]: topic for topic in plan.named}
    place = pc.index_in(facts["rid"], value_set=pa.array([*rids], pa.int32()))
    end = pa.array([ends[topic] for topic in rids.values()], pa.int64()).take(place)
    taken = facts.filter(pc.less(facts["offset"], end))["rid"].value_counts().to_pylist()
    counts = {one["values"]: one["counts"] for one in taken}
    found = {r: ends[t] - plan.named[t][0] - counts.get(r, 0) for r, t in rids.items()}
    return {ReplicaKey(WITHOUT_VALUE, rid): count for rid, count in found.items() if count > 0}


def batch_counts(
    taken: IngestedBatch, log: pa.Table, judged: Sequence[Judged], refreshes: Sequence[Refresh]
) -> dict[CountKey, int]:
    """What the batch counts, by name, and of each replica."""
    verdicts = (one.verdict for one in judged)
    topology, quarantined = taken.intake.topology, taken.intake.quarantined
    rids = taken.eligible["rid"].value_counts().to_pylist()
    lost = Counter[CountKey](one.value for one in verdicts if one is not Verdict.ACCEPTED)
    return {
        "judged": taken.eligible.num_rows,
        "accepted": taken.eligible.num_rows - lost.total(),
        **lost,
        "entries": log.num_rows,
        "quarantined": len(quarantined),
        **taken.intake.counts,
        **counted([*judged, *refreshes], topology),
        **tallies.judged_changes({one["values"]: one["counts"] for one in rids}, judged),
        **tallies.quarantined_records(quarantined),
        **tallies.recorded_conflicts(judged, topology),
    }


def checkpoint_of(
    hub: Hub, plan: Plan, after: HubState, ends: Mapping[str, int], counts: Counts
) -> Checkpoint:
    """The state after the batch with the positions around it; `ends`: of `offsets_after`."""
    last = hub.ledger.last
    names = {*counts, *last.totals}
    return replace(
        last,
        state=after,
        offsets=ends,
        topic_ids=plan.topic_ids,
        recreated=_recreated(plan, last),
        command_number=max((c.number for c in plan.commands), default=last.command_number),
        rows_epoch=hub.upkeep.rows_epoch,
        at_ms=plan.at_ms,
        counts=counts,
        totals={name: last.totals.get(name, 0) + counts.get(name, 0) for name in names},
        versions=hub.ledger.store.versions(),
    )


def _recreated(plan: Plan, last: Checkpoint) -> dict[str, int]:
    """Topic -> how often it was created again."""
    again = [t for t in plan.lost if plan.topic_ids[t] != last.topic_ids.get(t)]
    return {**last.recreated, **{t: last.recreated.get(t, 0) + 1 for t in again}}
