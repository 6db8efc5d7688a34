"""Lost input: a batch is decided by records that were still there when they had been read.

A topic that may not be read any more is left as it is, for a later batch.
"""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from checkpoints.commit.epochs import Plan
from streaming.carriers.carrier import Carrier
from streaming.core.intake.input_lost import TopicLoss, losses, unreadable
from streaming.core.model.errors import SourceError
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.publishing import DecidedBatch

Read = Callable[[Plan], Carrier]
"""The checked records of a plan's offsets, carried by the driver or the executors."""

Decide = Callable[[Hub, Plan, Carrier], DecidedBatch]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why a plan cannot be read as it stands; `unreadable`: the topics that may not be read."""

    lost: Mapping[str, TopicLoss]
    unreadable: Collection[str] = ()

    def __bool__(self) -> bool:
        """Return whether anything is unavailable."""
        return bool(self.lost or self.unreadable)

    def left_out(self, plan: Plan) -> Plan:
        """The plan without what is unavailable."""
        return plan.without(self.lost).leaving(self.unreadable)


_BESIDE = ThreadPoolExecutor(1, "topics")
"""Kafka is asked while the batch is decided."""


def decide_what_is_there(hub: Hub, plan: Plan, read: Read, decide: Decide) -> DecidedBatch:
    """Decide a planned batch, without the topics of which planned records are gone or refused.

    Kafka is asked once the records are read: only then it is certain that they were the planned
    ones. A hub that finishes the batch of another one also asks before, and drops what that one
    wrote of it, because it may have read records that are gone now.
    """
    without = _unavailable(hub, plan) if hub.ledger.unfinished else Unavailable({})
    while True:
        if without:
            if hub.ledger.unfinished:
                hub.ledger.drop_uncommitted(plan)
            plan = without.left_out(plan)
        attempt = _attempt(hub, plan, read, decide)
        if isinstance(attempt, DecidedBatch):
            return attempt
        without = attempt


def _attempt(hub: Hub, plan: Plan, read: Read, decide: Decide) -> DecidedBatch | Unavailable:
    """Decide the batch; or what is unavailable of its records."""
    carrier = read_what_is_there(hub, plan, read)
    if isinstance(carrier, Unavailable):
        return carrier
    asked = _BESIDE.submit(_unavailable, hub, plan)
    try:
        decided = decide(hub, plan, carrier)
    finally:
        lost = Unavailable(asked.result().lost)  # what was read may be decided
    if lost:
        carrier.close()
    return lost or decided


def read_what_is_there(hub: Hub, plan: Plan, read: Read) -> Carrier | Unavailable:
    """The records of a plan; or what is unavailable of them."""
    try:
        return read(plan)
    except (Py4JJavaError, PySparkException, SourceError):
        found = _unavailable(hub, plan)
        if not found:
            raise
        return found


def _unavailable(hub: Hub, plan: Plan) -> Unavailable:
    """What of the topics of which the plan reads something is lost or refused.

    What is held is there.
    """
    read_to = hub.read_to
    named = {topic: max(at, read_to.get(topic, at)) for topic, (at, _) in plan.named.items()}
    if not named:
        return Unavailable({})
    now = hub.outlets.look(named)
    return Unavailable(losses(plan.topic_ids, named, now, named), unreadable(now))
