"""How far a hub that is a process of its own has come, read from its state."""

from contextlib import suppress

from checkpoints.commit.epochs import Checkpoint
from checkpoints.reading.reader import open_state
from streaming.config.config import Config
from streaming.core.model.errors import StateError


def hub_epoch(config: Config) -> int:
    """The last committed hub epoch; 0: there is none yet."""
    commit = _commit(config)
    return commit.state.hub_epoch if commit else 0


def judged(config: Config) -> int:
    """How many changes the committed batches have judged."""
    commit = _commit(config)
    return commit.totals.get("judged", 0) if commit else 0


def _commit(config: Config) -> Checkpoint | None:
    with suppress(StateError):  # it is not made yet
        return open_state(config.hub.state).commit
    return None
