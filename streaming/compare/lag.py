"""How far the consumers of a comparison are behind, as `slackwater status` knows it."""

import time
from collections.abc import Collection

from checkpoints.reading.reader import open_state
from streaming.config.config import Config
from streaming.core.model.errors import StateError
from streaming.facts.consumers.backlog import backlog, unacknowledged


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
