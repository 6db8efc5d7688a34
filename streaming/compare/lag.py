"""How far the consumers of a comparison are behind, as `slackwater status` knows it."""

import time
from collections.abc import Collection

from checkpoints.commit.last_poll import read_poll
from checkpoints.reading.reader import open_state
from streaming.config.config import Config
from streaming.core.model.errors import StateError
from streaming.facts.consumers.backlog import backlog, unacknowledged
from streaming.facts.freshness import MAX_AGE_S


def lag_of(config: Config, replicas: Collection[str]) -> float:
    """The longest lag of these replicas in seconds; 0: they have everything, or nobody knows."""
    try:
        reader = open_state(config.hub.state)
        epochs = unacknowledged(config, reader)
    except StateError:
        return 0.0
    hub = reader.commit.state if reader.commit else None
    own = (one for one in config.agreements if one.consumer in replicas)
    found = (backlog(config, hub, one, epochs, time.time()).lag_s for one in own)
    return max((lag_s for lag_s in found if lag_s is not None), default=0.0)


def silence_of(config: Config) -> float:
    """For how many seconds the hub has not reached Kafka, if that is unusually long; else 0."""
    poll = read_poll(config.hub.state)
    silent_s = 0.0 if poll is None else time.time() - poll.at_ms / 1000
    return silent_s if silent_s > MAX_AGE_S else 0.0
