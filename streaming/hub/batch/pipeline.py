"""The flow of a batch on one screen."""

from collections.abc import Mapping, Sequence

from checkpoints.commit import protocol as commit
from checkpoints.commit.epochs import Plan
from checkpoints.commit.last_poll import ReadAtRest
from checkpoints.delays import delay_rows
from checkpoints.reading import lookup
from checkpoints.tables import TableName
from streaming.carriers.carrier import Carrier
from streaming.core.batch.inputs import failed, next_epoch, still_due
from streaming.core.conflict.winner import Resolution
from streaming.core.counts import tallies
from streaming.core.delivery.day_delay import DAY_MS
from streaming.core.intake.eviction import evict
from streaming.core.model.function import ConflictRule
from streaming.core.tracking.resync import ResyncPage
from streaming.hub.batch.delays import delays_after
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.ingest import IngestedBatch, ingest
from streaming.hub.batch.lost_input import (
    Read,
    Unavailable,
    decide_what_is_there,
    read_what_is_there,
)
from streaming.hub.batch.outcome import (
    batch_counts,
    checkpoint_of,
    offsets_after,
    quarantine_budget,
    resolve_refusals,
    state_after,
    table_rows,
    without_value,
)
from streaming.hub.batch.page_ranges import read_ranges
from streaming.hub.batch.phases import BatchPhase
from streaming.hub.batch.publishing import DecidedBatch, publish
from streaming.hub.batch.rest import NOTHING_HELD, HeldHeartbeats, are_heartbeats
from streaming.hub.batch.settings import CommittedBatch
from streaming.stages import judge as judge_stage
from streaming.stages import log as log_stage
from streaming.stages.judge import Verdicts
from streaming.stages.publish import Outgoing, page_items


def process(hub: Hub, plan: Plan, read: Read) -> Plan:
    """Run one planned batch to its end; returns the plan without what turned out to be lost.

    1. Plan: the plan goes into `epochs`; from here on the batch is fixed
       (checkpoints/commit/protocol.py).
    2. Read and check the records of the plan's offsets (carriers, stages/check.py); without those
       that are gone (hub/batch/lost_input.py).
    3. Decide what they mean; nothing is written yet (`decide`).
    4. Commit: the tables, then the commit row, by which readers see the batch.
    5. Publish to every agreement what it is to be sent (`publish`).
    6. Take the batch over into memory, start the work that is due beside the batches, and tell
       those who look.
    """
    phases, before_ms = hub.outlets.phases, hub.ledger.last.at_ms
    phases.begin(plan.batch)
    decided = commit.run(
        hub.ledger,
        plan,
        lambda pinned: decide_what_is_there(hub, pinned, read, decide),
        lambda batch: publish(hub, batch.checkpoint.state, batch),
    )
    decided.carrier.close()
    hub.images.keep(decided.contended)
    before, hub.state, hub.held = hub.state, decided.checkpoint.state, NOTHING_HELD
    hub.delays = decided.delays
    hub.mark_looked(decided.plan, before)
    hub.reconfigured = False
    evict(hub.state.open, hub.state.replicas, hub.settings.pending_changes)
    for table, truncation in hub.state.truncations.items():
        if truncation.hub_epoch > before.hub_epoch:
            hub.window.truncate(table, truncation)
    hub.window.merge(decided.rows)
    hub.resyncs.follow(hub.state, hub.upkeep.rows_epoch)
    hub.purging.committed(plan.commands)
    tend(hub, plan.at_ms)
    is_new_day = decided.checkpoint.at_ms // DAY_MS > before_ms // DAY_MS
    hub.upkeep.maintain(hub.state.batch, is_new_day=is_new_day)
    conflicts = decided.tables[TableName.CONFLICTS]
    hub.outlets.committed(CommittedBatch(decided.checkpoint, decided.outgoing.log, conflicts))
    hub.note_cost(decided.plan, before, phases.end())
    return decided.plan


def hold(hub: Hub, plan: Plan, read: Read) -> bool:
    """Hold the records of a batch that says nothing new; whether it does. Nothing is written then.

    It is decided as any other. A batch that does more is planned by `process`, as if nobody had
    looked.
    """
    if not hub.may_rest(plan):
        return False
    phases, held = hub.outlets.phases, hub.held
    phases.begin(plan.batch)
    carrier = read_what_is_there(hub, plan, read)
    if isinstance(carrier, Unavailable) or not are_heartbeats(carrier.facts):
        return False
    decided = decide(hub, plan, carrier)
    phases.give_up()
    if _leaves_something(hub, decided):
        return False
    after, named = decided.checkpoint, plan.named
    read_to = {topic: after.offsets[topic] for topic in named}
    rids = [hub.settings.topics[topic] for topic in named]
    seen_ms = {rid: after.state.replicas[rid].seen_ms for rid in rids}
    since_ms = held.since_ms or plan.at_ms
    at_rest = ReadAtRest(hub.state.batch, read_to, seen_ms)
    hub.held = HeldHeartbeats(since_ms, carrier.facts, at_rest)
    carrier.close()
    return True


_AT_REST = (TableName.EVENTS, TableName.DELAYS)
"""What a batch of heartbeats writes that needs no batch of its own."""


def _leaves_something(hub: Hub, decided: DecidedBatch) -> bool:
    """Return whether a batch of heartbeats leaves more than that they came."""
    after, plan = decided.checkpoint, decided.plan
    others = (rows for name, rows in decided.tables.items() if name not in _AT_REST)
    is_counted = any(after.counts.values()) or any(rows.num_rows for rows in others)
    is_stopped = dict(after.offsets) != dict(plan.offsets_to)
    return is_counted or is_stopped or not after.state.says_nothing_new(hub.state)


def tend(hub: Hub, now_ms: int) -> None:
    """Start to materialize `rows`, and to purge, if that is due; an idle hub does so too."""
    settings, rows_epoch = hub.settings, hub.upkeep.rows_epoch
    hub.purging.follow(hub.state, rows_epoch, settings.topology, settings.retention, now_ms)
    hub.upkeep.rows(hub.state, hub.window, settings.materialize_every, settings.window_rows, now_ms)


def decide(hub: Hub, plan: Plan, carrier: Carrier) -> DecidedBatch:
    """What a batch means, from its records and the state before it.

    1. Take in: sessions, duplicates, pending lists; which changes are eligible (`ingest`).
    2. Judge the eligible changes in order of their transactions' largest CSNs (`_judge`).
    3. Log: every verdict and refresh as rows of the changelog (stages/log.py). Behind them stand
       the pages of resyncs: tracked rows as refreshes, ranges with the rows in them.
    4. Plan sending: which hub epochs each agreement is sent (`state_after`), and which rows that
       a replica refused it is sent again (`resolve_refusals`).
    5. Lay out the rows of the other tables and the commit row (`table_rows`, `checkpoint_of`), and
       note how late what was written is at each consumer (`delays_after`).
    """
    phases = hub.outlets.phases
    phases.enter(BatchPhase.INTAKE)
    taken = ingest(hub, plan, carrier)
    intake = taken.intake
    pages = still_due(intake, [hub.resyncs.resolved(page, hub.state) for page in plan.pages])
    hub_epoch = next_epoch(intake, pages, judged=taken.eligible.num_rows > 0)
    phases.enter(BatchPhase.JUDGE)
    verdicts = _judge(hub, plan, taken, hub_epoch, carrier, pages)
    judged = list(verdicts.judged.values())
    intake.quarantined += failed(judged)
    hub.resyncs.note(verdicts.rows)
    hub.resyncs.note_uncarried(intake.quarantined)
    phases.enter(BatchPhase.LOG)
    ranges = read_ranges(hub, intake, verdicts, pages)
    sent_whole = [(one.consumer, keys) for one in ranges for keys, *_ in one.ranges]
    log = log_stage.changelog(verdicts, plan.batch, hub_epoch, sent_whole)
    defaulted = hub.settings.topology.defaulted
    outgoing = Outgoing(log, defaulted, ahead=hub.settings.publishes)
    resolve_refusals(hub, intake, verdicts, pages, hub_epoch)
    after = state_after(hub, plan, taken, outgoing, hub_epoch, verdicts, pages)
    budget = quarantine_budget(hub, taken)
    others = table_rows(hub, plan, taken, log, hub_epoch, judged, budget)
    delays = delays_after(hub.delays, hub.settings.topology, after, taken.eligible, plan.at_ms)
    tables = {
        TableName.CHANGELOG: carrier.changelog(log),
        TableName.DELAYS: delay_rows(delays.to_write(plan.at_ms), plan.batch),
        **others,
    }
    intake.forget_ended()
    counts = batch_counts(taken, log, judged, [refresh for _, refresh in verdicts.refreshes])
    ends = offsets_after(hub, plan, after)
    counts |= tallies.kept_records(budget.changes())
    counts |= without_value(plan, ends, hub.settings.all_topics, taken.facts.table)
    checkpoint = checkpoint_of(hub, plan, after, ends, counts)
    rows, contended = verdicts.rows, verdicts.contended
    items = {one.agreement: page_items(one.ranges) for one in ranges}
    delays = delays.written(plan.at_ms)
    return DecidedBatch(tables, checkpoint, carrier, outgoing, rows, contended, plan, items, delays)


def _judge(
    hub: Hub,
    plan: Plan,
    taken: IngestedBatch,
    hub_epoch: int,
    carrier: Carrier,
    pages: Sequence[ResyncPage],
) -> Verdicts:
    return judge_stage.judge(
        taken.eligible,
        taken.intake,
        hub_epoch,
        hub.standing,
        others=hub.look_up_others,
        earlier_resolutions=_earlier_resolutions(hub, plan),
        fetch=carrier.images,
        pages=pages,
        prepared=hub.resyncs.tracked_rows(pages, hub.standing),
    )


def _earlier_resolutions(hub: Hub, plan: Plan) -> Mapping[str, Resolution]:
    """What users' functions decided of this batch before its hub died."""
    if hub.ledger.unfinished is None:
        return {}
    tables = hub.settings.topology.tables.values()
    of_users = [table.name for table in tables if table.function.rule is ConflictRule.USER]
    return lookup.earlier_resolutions(hub.ledger.store, plan.batch, of_users)
