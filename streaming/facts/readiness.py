"""Whether a hub does its work: it reads, it reaches Kafka, and its batches come to an end."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.text.wording import as_age, as_count
from streaming.facts.status.hub import HubStatus

LONG_BATCH_S = 60.0
"""A hub whose batch takes longer is not ready."""


class HubStage(StrEnum):
    """What a hub does as a whole."""

    STANDBY = "standby"
    """it waits, with Spark at work, until no other hub works on the state; that is ready"""
    STARTING = "starting"
    """it starts Spark, opens the state, and finishes what a dead hub left"""
    RUNNING = "running"
    """it reads its topics"""
    ENDED = "ended"
    """it reads nothing more"""


@dataclass(frozen=True, slots=True)
class BatchUnderWay:
    """The batch that the hub works on: for how long, in which phase, and how long in that."""

    batch: int
    phase: str
    seconds: float
    phase_seconds: float


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a hub is ready, and why not; ages in seconds, None: nothing is known yet.

    `reads`: Spark's query is active. `commit_age_s`: since the last commit, which is old also
    where there is nothing to do. `polled_age_s`: since the hub last reached Kafka.
    """

    ready: bool
    reasons: tuple[str, ...]
    stage: HubStage
    reads: bool
    hub_epoch: int | None
    commit_age_s: float | None
    polled_age_s: float | None
    under_way: BatchUnderWay | None


def readiness(
    stage: HubStage,
    *,
    reads: bool,
    status: HubStatus | None,
    under_way: BatchUnderWay | None,
    away: tuple[str, float, str] | None = None,
) -> Readiness:
    """Whether a hub at this stage is ready; `status` None: it has none yet.

    `away`: the broker that it waits for, for how many seconds, and what that refuses; None: it
    waits for none.
    """
    if away is not None:
        broker, seconds, why = away
        waits = f"the hub waits for Kafka at {broker} since {as_age(seconds)}"
        reasons: tuple[str, ...] = (f"{waits}: {why}" if why else waits,)
    else:
        reasons = tuple(_reasons(stage, status, under_way, reads=reads))
    return Readiness(
        not reasons,
        reasons,
        stage,
        reads,
        status.hub_epoch if status else None,
        status.age_s if status else None,
        status.polled_age_s if status else None,
        under_way,
    )


def _reasons(
    stage: HubStage, status: HubStatus | None, under_way: BatchUnderWay | None, *, reads: bool
) -> Iterator[str]:
    if stage in {HubStage.STARTING, HubStage.ENDED}:
        yield f"the hub {'is starting' if stage is HubStage.STARTING else 'has ended'}"
    elif stage is HubStage.RUNNING and not reads:
        yield "Spark's query does not read"
    if status is not None and status.stale is not None:
        yield status.stale
    if under_way is not None and under_way.seconds > LONG_BATCH_S:
        took = as_count(round(under_way.seconds), "second")
        yield f"batch {under_way.batch} is under way for {took}, in its phase {under_way.phase}"
