"""The whole flow of a batch: plan, read, take in, judge, log, commit, publish."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints import commit, lookup, pending
from checkpoints.commit import BatchOutcome, Ledger
from checkpoints.epochs import Checkpoint, Plan
from checkpoints.faults import Point
from checkpoints.store import Rows
from checkpoints.tables import TableName
from streaming.carriers.carrier import Carrier
from streaming.core.conflict.batch import failed, next_epoch, settled
from streaming.core.conflict.counters import counted, in_conflict
from streaming.core.conflict.function import ConflictRule
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.conflict.window import Window, WindowRow, rebuilt
from streaming.core.conflict.winner import Resolution
from streaming.core.delivery.sending import Refresh, SendingView, wants_batch
from streaming.core.intake.eviction import evict
from streaming.core.intake.pending import Context
from streaming.core.intake.transactions import Intake
from streaming.core.model.command import Command
from streaming.core.model.row import RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Ruv
from streaming.core.model.state import HubState, SendRange
from streaming.core.model.topology import Topology
from streaming.hub.upkeep import MaintenanceTasks, Upkeep
from streaming.operator.dispatch import CommandEffects, carry_out
from streaming.operator.release import Revalidate
from streaming.stages import intake as intake_stage
from streaming.stages import judge as judge_stage
from streaming.stages import log as log_stage
from streaming.stages import publish as publish_stage
from streaming.stages.checked import Bools, CheckedRecords, checked_records
from streaming.stages.judge import Verdicts
from streaming.stages.publish import Chunk, Outgoing

DAY_MS = 86_400_000

Read = Callable[[Plan], Carrier]
"""The validated records of a plan's offsets, carried by the driver or the executors."""


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """What a batch needs of the configuration besides the rules."""

    topology: Topology
    topics: Mapping[str, int]
    hub_rid: int
    chunks: publish_stage.Chunks
    offsets_per_batch: int
    pending_changes: int
    open_transactions: int
    window_rows: int
    kept_image_bytes: int
    materialize_every_epochs: int


@dataclass(frozen=True, slots=True)
class Effects:
    """Where a hub reaches out: the updates topics, old input, and the work beside the batches.

    `send(agreement, id, bytes)` hands a record over, `flush()` returns when all are delivered.
    """

    send: Callable[[str, str, bytes], None]
    flush: Callable[[], None]
    originals: log_stage.Originals
    revalidate: Revalidate
    maintenance: MaintenanceTasks


@dataclass(frozen=True, slots=True)
class DecidedBatch(BatchOutcome):
    """What a batch came to, with what the driver keeps of it until it is told.

    `outgoing`: its changelog rows in hub order. `rows`: what the window takes over.
    `contended`: the rows that core judged, as it left them.
    """

    carrier: Carrier
    outgoing: Outgoing
    rows: Mapping[str, WindowRow]
    contended: Collection[RowState]


@dataclass(slots=True)
class Hub:
    """A hub at work: its ledger, its state behind the last commit, and the window in memory.

    `images`: of rows that were contended lately.
    """

    ledger: Ledger
    settings: BatchSettings
    outlets: Effects
    state: HubState
    window: Window
    images: lookup.Images
    upkeep: Upkeep

    def process(self, plan: Plan, read: Read) -> None:
        """Run one planned batch to its end, then bring `rows` up to date when it is time."""
        before_ms = self.ledger.last.at_ms
        decision = commit.run(
            self.ledger,
            plan,
            lambda pinned: decide(self, pinned, read(pinned)),
            lambda decided: publish(self, decided.checkpoint.state, decided),
        )
        decision.carrier.close()
        self.images.keep(decision.contended)
        self.state = decision.checkpoint.state
        evict(self.state.open, self.state.replicas, self.settings.pending_changes)
        self.window.merge(self.state.hub_epoch, decision.rows)
        asked = self.settings
        self.upkeep.rows(self.state, self.window, asked.materialize_every_epochs, asked.window_rows)
        is_new_day = decision.checkpoint.at_ms // DAY_MS > before_ms // DAY_MS
        self.upkeep.tidy(self.state.batch, is_new_day=is_new_day)

    def next_plan(self, ends: Mapping[str, int], at_ms: int, commands: Sequence[Command]) -> Plan:
        """The plan of the next batch, of topics that end here; absent ones stay where they are."""
        last = self.ledger.last
        return Plan(
            last.state.batch + 1,
            max(at_ms, last.at_ms),
            last.config_version,
            last.offsets,
            {**last.offsets, **self._read_to(ends)},
            tuple(commands),
            self.ledger.store.versions(),
        )

    def is_due(self, plan: Plan) -> bool:
        """Claim that the batch has input, a command, or something to send: else it is left out."""
        if plan.offsets_from != plan.offsets_to or plan.commands:
            return True
        interval_ms = self.settings.topology.covers_interval_ms
        return any(
            wants_batch(a, self.state.hub_epoch, plan.at_ms, interval_ms, nudged=False)
            for a in self.state.agreements.values()
        )

    def paused(self) -> dict[int, int]:
        """Rid -> its open transactions, of replicas that have too many for more to be read."""
        return self.state.open_transactions(self.settings.open_transactions)

    def _read_to(self, ends: Mapping[str, int]) -> dict[str, int]:
        """How far a batch reads; what it leaves is read later, from where it stopped.

        Nothing of replicas that are stopped or paused, and no more of others than a batch may be.
        """
        paused, room, found = self.paused(), self.settings.offsets_per_batch, dict[str, int]()
        for topic, end in ends.items():
            rid, first = self.settings.topics[topic], self.ledger.last.offsets[topic]
            if rid not in paused and not self.state.replicas[rid].is_stopped:
                found[topic] = min(end, first + room)
                room -= found[topic] - first
        return found


def resume(ledger: Ledger, settings: BatchSettings, outlets: Effects) -> Hub:
    """The hub behind the last commit: open transactions and window are read back."""
    last, store = ledger.last, ledger.store
    opened = pending.load(
        store,
        last.state.batch,
        last.state.largest,
        last.state.replicas,
        settings.pending_changes,
    )
    edge = lookup.edge_of(store, last.rows_epoch, last.state.hub_epoch, settings.window_rows)
    told = lookup.replay_rows(store, last.rows_epoch, edge, last.state.hub_epoch)
    state = replace(last.state, open=opened)
    ledger.last = replace(last, state=state)
    window = rebuilt(edge, told.items())
    images = lookup.Images(settings.kept_image_bytes)
    upkeep = Upkeep(ledger, outlets.maintenance, last.rows_epoch)
    return Hub(ledger, settings, outlets, state, window, images, upkeep)


@dataclass(frozen=True, slots=True)
class _TakenBatch:
    """What a batch takes in: records, and the effects of an operator's commands.

    `eligible`: the changes to be judged. `commits`: those taken in runs.
    """

    facts: CheckedRecords
    intake: Intake
    eligible: pa.Table
    commits: pa.Table
    commands: CommandEffects


def decide(hub: Hub, plan: Plan, carrier: Carrier) -> DecidedBatch:
    """What a batch means, from its records and the state before it; nothing is written."""
    taken = _taken(hub, plan, carrier)
    intake = taken.intake
    hub_epoch = next_epoch(intake, judged=taken.eligible.num_rows > 0)
    verdicts = _judged(hub, plan, taken, hub_epoch, carrier)
    judged = list(verdicts.judged.values())
    intake.quarantined += failed(judged)
    log = log_stage.changelog(verdicts, plan.batch, hub_epoch)
    outgoing = Outgoing(log)
    after = _after(hub, plan, taken, outgoing, hub_epoch, judged)
    told = _tables(hub, plan, taken, log, hub_epoch, judged)
    tables = {TableName.CHANGELOG: carrier.changelog(log), **told}
    intake.forget_ended()
    counts = _counts(taken, log, judged, [refresh for _, refresh in verdicts.refreshes])
    return DecidedBatch(
        tables,
        _checkpoint(hub, plan, after, counts),
        carrier,
        outgoing,
        verdicts.rows,
        verdicts.contended,
    )


def _taken(hub: Hub, plan: Plan, carrier: Carrier) -> _TakenBatch:
    """Take the batch in; again with the images and evicted facts that it turned out to need."""
    facts = checked_records(carrier.facts, hub.settings.topology.tables)
    state = _restored(hub, hub.state, intake_stage.merged_and_named(facts, hub.state.open))
    while True:
        taken, lacking = _take(hub, state, plan, facts)
        if taken.intake.wanted:
            state = _restored(hub, state, taken.intake.wanted)
        elif lacking.any():
            facts = facts.with_images(lacking, carrier.images)
        else:
            return taken


def _restored(hub: Hub, state: HubState, contexts: Collection[Context]) -> HubState:
    """The state with these evicted transactions in memory."""
    if not contexts:
        return state
    opened = pending.restored(hub.ledger.store, state.open, contexts, state.batch)
    return replace(state, open=opened)


def _take(
    hub: Hub, state: HubState, plan: Plan, facts: CheckedRecords
) -> tuple[_TakenBatch, Bools]:
    """Carry out the operator's commands, then take in the records in the order of their topics."""
    store, settings, on_disk = hub.ledger.store, hub.settings, state.open.on_disk
    known = {rid: max(state.largest.get(rid, ""), on_disk.get(rid, "")) for rid in state.replicas}
    old = intake_stage.repeated_or_old(facts, known)
    history = lookup.contents(store, old, plan.batch, on_disk)
    intake = Intake(state, settings.topology, history)
    commands = carry_out(
        plan,
        intake,
        store,
        hub.outlets.revalidate,
        hub_rid=settings.hub_rid,
        topics=settings.topics,
    )
    read_pending = partial(pending.on_disk, store, state.open, batch=state.batch)
    found = intake_stage.take(intake, facts, read_pending)
    taken = _TakenBatch(facts, intake, found.eligible, found.commits, commands)
    return taken, found.lacking


def _judged(hub: Hub, plan: Plan, taken: _TakenBatch, hub_epoch: int, carrier: Carrier) -> Verdicts:
    store = hub.ledger.store
    return judge_stage.judge(
        taken.eligible,
        taken.intake,
        hub_epoch,
        hub.window,
        look_up=lambda keys: lookup.forgotten(
            store, keys, hub.upkeep.rows_epoch, hub.window.edge, hub.images
        ),
        images=lambda rows: lookup.images(store, rows, hub.upkeep.rows_epoch, hub.images),
        settled=_settled(hub, plan),
        fetch=carrier.images,
    )


def _after(
    hub: Hub,
    plan: Plan,
    taken: _TakenBatch,
    outgoing: Outgoing,
    hub_epoch: int,
    judged: Sequence[Judged],
) -> HubState:
    """The state after the batch, with what each agreement is sent."""
    state, intake, nudged = hub.state, taken.intake, taken.commands.nudged
    marks = partial(lookup.marks, hub.ledger.store, committed=state.hub_epoch)
    view = SendingView(state.hub_epoch, hub_epoch, state.ruvs, plan.at_ms, nudged, marks)
    has_items, entries = _has_items(outgoing, intake), outgoing.log.num_rows
    return settled(intake, hub_epoch, entries, has_items, view, in_conflict(judged))


def _tables(
    hub: Hub,
    plan: Plan,
    taken: _TakenBatch,
    log: pa.Table,
    hub_epoch: int,
    judged: Sequence[Judged],
) -> dict[TableName, Rows]:
    """The rows for each table of the state but the changelog."""
    intake, values = taken.intake, _values(taken.facts.table)
    topics = {rid: topic for topic, rid in hub.settings.topics.items()}
    originals = hub.outlets.originals
    kept = log_stage.quarantine(intake.quarantined, values, originals, topics, plan.batch)
    lost = log_stage.conflicts(log, judged, hub.settings.topology)
    rejected = {one.arrived.change.csn for one in judged if one.verdict is not Verdict.ACCEPTED}
    resolved = taken.commands.resolved.rows(plan.batch, rejected)
    told = log_stage.events(intake, taken.commits, values, topics, plan.batch, hub_epoch)
    return {
        TableName.CONFLICTS: pa.concat_tables([lost, resolved]),
        TableName.QUARANTINE: pa.concat_tables([kept, taken.commands.released]),
        TableName.PENDING: pending.moves(
            hub.ledger.store, intake.state.open, intake.open, intake.ended, plan.batch
        ),
        TableName.EVENTS: told,
    }


def _counts(
    taken: _TakenBatch, log: pa.Table, judged: Sequence[Judged], refreshes: Sequence[Refresh]
) -> dict[str, int]:
    """What the batch counts, by name."""
    verdicts = (one.verdict for one in judged)
    lost = Counter(verdict.value for verdict in verdicts if verdict is not Verdict.ACCEPTED)
    return {
        "judged": taken.eligible.num_rows,
        "accepted": taken.eligible.num_rows - lost.total(),
        **lost,
        "entries": log.num_rows,
        "quarantined": len(taken.intake.quarantined),
        **taken.intake.counts,
        **counted([*judged, *refreshes], taken.intake.topology),
    }


def _settled(hub: Hub, plan: Plan) -> Mapping[str, Resolution]:
    """What users' functions decided of this batch before its hub died."""
    if hub.ledger.unfinished is None:
        return {}
    tables = hub.settings.topology.tables.values()
    asked = [table.name for table in tables if table.function.rule is ConflictRule.USER]
    return lookup.settled(hub.ledger.store, plan.batch, asked)


def _values(records: pa.Table) -> dict[tuple[int, int], bytes]:
    """(rid, offset) -> the bytes of the records that came with them."""
    told = records.filter(pc.is_valid(records["value"])).select(["rid", "offset", "value"])
    return {(row["rid"], row["offset"]): row["value"] for row in told.to_pylist()}


def _has_items(outgoing: Outgoing, intake: Intake) -> dict[str, bool]:
    """Which agreements the batch's own hub epoch holds something for."""
    tables = {name: s.tables for name, s in intake.topology.subscriptions.items()}
    return {
        name: bool(
            outgoing.for_consumer(
                a.consumer, tables[name], a.sent_ruv, intake.replicas[a.consumer].floors
            ).any()
        )
        for name, a in intake.agreements.items()
    }


def _checkpoint(hub: Hub, plan: Plan, after: HubState, counts: Mapping[str, int]) -> Checkpoint:
    """The state after the batch with the positions around it; a stopped topic stays there."""
    last = hub.ledger.last
    names = {*counts, *last.totals}
    stops = {
        topic: replica.stop_offset
        for topic, rid in hub.settings.topics.items()
        if (replica := after.replicas[rid]).stop_offset is not None
    }
    return replace(
        last,
        state=after,
        offsets={**plan.offsets_to, **stops},
        command_number=max((c.number for c in plan.commands), default=last.command_number),
        rows_epoch=hub.upkeep.rows_epoch,
        at_ms=plan.at_ms,
        counts=counts,
        totals={name: last.totals.get(name, 0) + counts.get(name, 0) for name in sorted(names)},
        versions=hub.ledger.store.versions(),
    )


def publish(hub: Hub, state: HubState, fresh: DecidedBatch | None = None) -> None:
    """Send to each agreement the range that the state names; again with the same ids.

    `fresh`: the decision of the state's own batch, when it is in memory.
    """
    at, carried = hub.ledger.at, list[Chunk]()
    for name, to_send in state.to_send.items():
        agreement = state.agreements[name]
        dataset = hub.settings.topology.dataset_at(agreement.consumer)
        outgoing, ruvs = _range(hub, state, to_send, dataset, fresh)
        tables = hub.settings.topology.subscriptions[name].tables
        chunks = publish_stage.chunks(
            outgoing,
            agreement,
            to_send,
            tables,
            ruvs,
            state.generation,
            hub.settings.chunks,
            state.replicas[agreement.consumer].floors,
        )
        if outgoing.away.any():
            carried += chunks
            continue
        for number, chunk in enumerate(chunks):
            if number:
                at(Point.BETWEEN_CHUNKS)
            hub.outlets.send(name, chunk.header.id, outgoing.value(chunk))
        at(Point.BETWEEN_AGREEMENTS)
    hub.outlets.flush()
    if fresh is not None and carried:
        fresh.carrier.send(fresh.outgoing, carried)


def _range(
    hub: Hub, state: HubState, to_send: SendRange, dataset: str, fresh: DecidedBatch | None
) -> tuple[Outgoing, dict[int, Ruv]]:
    """The changelog of these hub epochs, and the RUV of the data set behind each of them."""
    after, to = to_send.after, to_send.to
    now = {state.hub_epoch: state.ruv_of(dataset)}
    if fresh is not None and after >= hub.state.hub_epoch:
        return fresh.outgoing, now
    store = hub.ledger.store
    where = (ds.field("hub_epoch") > after) & (ds.field("hub_epoch") <= to)
    rows = publish_stage.readable(store.read(TableName.CHANGELOG, where))
    marks = lookup.marks(store, after, to)
    ruvs = {mark.hub_epoch: mark.ruvs.get(dataset, NOTHING_KNOWN) for mark in marks}
    return Outgoing(rows), {**ruvs, **now}
