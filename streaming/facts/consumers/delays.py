"""Up to when everything that each origin wrote is at each consumer, now and at worst today."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from checkpoints.reading.delays import recorded_delays
from checkpoints.reading.reader import OpenChanges, Reader
from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.config.config import Config
from streaming.core.delivery.recovery_point import CommittedPoints, Delays, committed_points
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.state.hub_state import HubState

Opened = Mapping[tuple[int, str], OpenChanges]
"""(rid, pending | waiting) -> the replica's changes in that state."""


@dataclass(frozen=True, slots=True)
class OriginDelay:
    """How late what one replica wrote is at the consumer of an agreement.

    `complete_to`: everything that it wrote up to then is there; None: the consumer was set back, or
    its rows are copied anew. `delay_s`: how long ago that is, or was when it was last known.
    `worst_today_s`: the longest today (UTC); `above_minute_today_s`: for how long it was more than
    a minute. A hub at work says so from memory; the table is up to a minute behind, which makes
    `complete_to` of what is lacking too early, and never too late.
    """

    origin: str
    complete_to: datetime | None
    delay_s: float
    worst_today_s: float
    above_minute_today_s: float


def delays_in_table(config: Config, reader: Reader, opened: Opened) -> Delays:
    """The delays behind the reader's commit, as `delays` has them: up to a minute before it."""
    if reader.commit is None:
        return Delays()
    recorded = recorded_delays(reader.table(TableName.DELAYS), reader.batch)
    return recorded.starting(_points(config, reader.commit.state, opened, reader.commit.at_ms))


def delays_now(
    config: Config, hub: HubState, delays: Delays, opened: Opened, now_s: float
) -> Delays:
    """The delays as somebody looks; `delays`: behind the hub's commit."""
    return delays.after(_points(config, hub, opened, round(now_s * 1000)))


def origin_delays(
    delays: Delays, consumer: int, names: Mapping[int, str]
) -> tuple[OriginDelay, ...]:
    """The delays of one consumer, for people; `names`: rid -> name."""
    return tuple(
        OriginDelay(
            names.get(one.origin, str(one.origin)),
            time_of(one.complete_to_ms) if one.is_known else None,
            one.last_ms / 1000,
            one.worst_ms / 1000,
            one.above_minute_ms / 1000,
        )
        for one in sorted(delays.pairs.values(), key=lambda one: one.origin)
        if one.consumer == consumer
    )


def _points(config: Config, hub: HubState, opened: Opened, clock_ms: int) -> CommittedPoints:
    rids = {one.name: one.rid for one in config.replicas}
    datasets = {rids[one.consumer]: config.dataset_of(one) for one in config.agreements}
    return committed_points(
        hub, _first_open_ms(opened), clock_ms, lambda rid: datasets.get(rid, DEFAULT_DATASET)
    )


def _first_open_ms(opened: Opened) -> dict[int, int | None]:
    """Origin -> when the first of its changes came that is not judged; None: that is on disk."""
    found: dict[int, int | None] = {}
    for (rid, _), one in opened.items():
        came_ms = round(one.oldest.timestamp() * 1000) if one.oldest else None
        before_ms = found.setdefault(rid, came_ms)
        if came_ms is None or before_ms is None:
            found[rid] = None
        else:
            found[rid] = min(came_ms, before_ms)
    return found
