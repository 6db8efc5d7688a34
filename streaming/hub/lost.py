"""Lost input: a batch is decided by records that were still there when they had been read."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from checkpoints.epochs import Plan
from streaming.carriers.carrier import Carrier
from streaming.core.intake.input_lost import TopicLoss, losses
from streaming.core.model.errors import SourceError
from streaming.hub.hub import Hub
from streaming.hub.publishing import DecidedBatch

Read = Callable[[Plan], Carrier]
"""The checked records of a plan's offsets, carried by the driver or the executors."""

Decide = Callable[[Hub, Plan, Carrier], DecidedBatch]

_BESIDE = ThreadPoolExecutor(1, "topics")
"""Kafka is asked while the batch is decided."""


def decide_what_is_there(hub: Hub, plan: Plan, read: Read, decide: Decide) -> DecidedBatch:
    """Decide a planned batch, without the topics of which planned records are gone.

    Kafka is asked once the records are read: only then it is certain that they were the planned
    ones. A hub that finishes the batch of another one also asks before, and drops what that one
    wrote of it, because it may have read records that are gone now.
    """
    gone = _gone(hub, plan) if hub.ledger.unfinished else {}
    while True:
        if gone:
            if hub.ledger.unfinished:
                hub.ledger.drop_uncommitted(plan)
            plan = plan.without(gone)
        attempt = _attempt(hub, plan, read, decide)
        if isinstance(attempt, DecidedBatch):
            return attempt
        gone = attempt


def _attempt(
    hub: Hub, plan: Plan, read: Read, decide: Decide
) -> DecidedBatch | dict[str, TopicLoss]:
    """Decide the batch; or what is lost of its records."""
    carrier = read_what_is_there(hub, plan, read)
    if isinstance(carrier, dict):
        return carrier
    asked = _BESIDE.submit(_gone, hub, plan)
    try:
        decided = decide(hub, plan, carrier)
    finally:
        gone = asked.result()
    if gone:
        carrier.close()
    return gone or decided


def read_what_is_there(hub: Hub, plan: Plan, read: Read) -> Carrier | dict[str, TopicLoss]:
    """The records of a plan; or what is lost of them."""
    try:
        return read(plan)
    except (Py4JJavaError, PySparkException, SourceError):
        gone = _gone(hub, plan)
        if not gone:
            raise
        return gone


def _gone(hub: Hub, plan: Plan) -> dict[str, TopicLoss]:
    """Topic -> its loss, of those of which the plan reads something; what is held is there."""
    read_to = hub.read_to
    named = {topic: max(at, read_to.get(topic, at)) for topic, (at, _) in plan.named.items()}
    return losses(plan.topic_ids, named, hub.outlets.look(named), named) if named else {}
