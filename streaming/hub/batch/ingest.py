"""What a batch takes in: its records in topic order, and the effects of an operator's commands."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from checkpoints import pending
from checkpoints.commit.epochs import Plan
from checkpoints.reading import lookup
from streaming.carriers.carrier import Carrier
from streaming.core.intake import orders
from streaming.core.intake.input_lost import InputLoss
from streaming.core.intake.intake import Intake
from streaming.core.state.hub_state import HubState
from streaming.core.state.pending import Context
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.settings import BatchSettings
from streaming.operator.dispatch import CommandEffects, carry_out
from streaming.stages import intake as intake_stage
from streaming.stages.checked import Bools, CheckedRecords, checked_records


@dataclass(frozen=True, slots=True)
class IngestedBatch:
    """What a batch takes in: records, and the effects of an operator's commands.

    `eligible`: the changes to be judged. `commits`: those taken in runs.
    """

    facts: CheckedRecords
    intake: Intake
    eligible: pa.Table
    commits: pa.Table
    commands: CommandEffects


def ingest(hub: Hub, plan: Plan, carrier: Carrier) -> IngestedBatch:
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
) -> tuple[IngestedBatch, Bools]:
    """Carry out the operator's commands, then take in the records in the order of their topics."""
    store, settings, on_disk = hub.ledger.store, hub.settings, state.open.on_disk
    known = {rid: max(state.largest.get(rid, ""), on_disk.get(rid, "")) for rid in state.replicas}
    old = intake_stage.repeated_or_old(facts, known)
    history = lookup.contents(store, old, plan.batch, on_disk)
    intake = Intake(state, settings.topology, history, at_ms=plan.at_ms, throttled=plan.throttled)
    for agreement in plan.undelivered:
        orders.note_undelivered(intake, agreement)
    for agreement in plan.writable:
        orders.note_writable(intake, agreement)
    _apply_losses(plan, intake, settings)
    commands = carry_out(
        plan,
        intake,
        store,
        hub.outlets.revalidate,
        hub.outlets.originals,
        hub_rid=settings.hub_rid,
        topics=settings.all_topics,
        undone=hub.outlets.undone,
        masked=settings.masked,
    )
    read_pending = partial(pending.on_disk, store, state.open, batch=state.batch)
    found = intake_stage.take(intake, facts, read_pending)
    intake.leave_unread(settings.kept_behind_stop)
    taken = IngestedBatch(facts, intake, found.eligible, found.commits, commands)
    return taken, found.lacking


def _apply_losses(plan: Plan, intake: Intake, settings: BatchSettings) -> None:
    """Stop the replicas whose input is lost; send again what was sent to a topic made anew."""
    for topic, detail in plan.lost.items():
        rid, agreement = settings.all_topics.get(topic), settings.updates_topics.get(topic)
        if rid is not None:
            orders.record_lost_input(intake, InputLoss(rid, detail, plan.offsets_to[topic]))
        elif agreement in intake.agreements:
            orders.publish_again(intake, agreement)
