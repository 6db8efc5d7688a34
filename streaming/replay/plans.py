"""The plan of a recorded batch as it was run, which may be less than its row of `epochs` says.

A hub that finds planned records gone decides without them, one that may not read a topic leaves it
for later, and one that finishes the batch of a dead hub sends no page of it. What the commit
records of that comes from outside, as the records do.
"""

from dataclasses import replace

from checkpoints.commit.epochs import Checkpoint, Plan
from checkpoints.commit.recorded import RecordedRows
from checkpoints.config import plan_with_commands
from checkpoints.store import StateStore
from streaming.core.intake.input_lost import TopicFacts, TopicLoss
from streaming.core.model.statuses import ReplicaStatus
from streaming.hub.batch.settings import BatchSettings


def plan_as_run(
    store: StateStore, rows: RecordedRows, after: Checkpoint, settings: BatchSettings
) -> Plan:
    """The plan by which a batch was decided; `after`: what its commit recorded."""
    plan = plan_with_commands(store, rows.plan)
    if rows.plan["hub"] != rows.commit["hub"]:
        plan = replace(plan, pages=())
    plan = plan.without(_lost_while_read(plan, after, settings))
    return plan.leaving(_left(plan, after, settings))


def _left(plan: Plan, after: Checkpoint, settings: BatchSettings) -> list[str]:
    """The topics of which nothing was taken, although their replicas are not stopped."""
    states = {t: after.state.replicas.get(settings.all_topics[t]) for t in plan.named}
    return [
        topic
        for topic, one in states.items()
        if after.offsets[topic] == plan.offsets_from[topic] and (one is None or not one.is_stopped)
    ]


def _lost_while_read(
    plan: Plan, after: Checkpoint, settings: BatchSettings
) -> dict[str, TopicLoss]:
    """Topic -> what was lost of it between plan and decision."""
    known = [topic for topic in plan.lost if topic in settings.all_topics]
    if after.counts.get("input_lost", 0) == len(known):
        return {}
    states = {t: after.state.replicas.get(settings.all_topics[t]) for t in plan.named}
    return {
        topic: TopicLoss(one.detail, TopicFacts(after.topic_ids[topic], after.offsets[topic]))
        for topic, one in states.items()
        if one is not None and one.status is ReplicaStatus.INPUT_LOST
    }
