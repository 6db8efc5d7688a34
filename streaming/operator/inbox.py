"""What a hub has not taken yet of its table `config`: an operator's commands, a configuration."""

import time
from collections.abc import Sequence

from checkpoints.config import last_applied, next_commands
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.model.command import Command


class CommandInbox:
    """Looked into once a second, and only read when the table has another version.

    `applied`: the last configuration that was applied, as of the last look; 0: none was. What
    another hub has started with is not this one's: the later of two hubs goes on, by its own.
    """

    def __init__(self, store: StateStore) -> None:
        self.applied = 0
        self._store = store
        self._looked_at_s = 0.0
        self._version: int | None = None

    def after(self, number: int) -> Sequence[Command]:
        """The commands behind this number, in order."""
        now_s = time.monotonic()
        if now_s - self._looked_at_s < 1:
            return ()
        self._looked_at_s = now_s
        version = self._store.refreshed(TableName.CONFIG).version()
        if version == self._version:
            return ()
        self.applied = last_applied(self._store)
        found = next_commands(self._store, number)
        self._version = None if found else version  # there may be more than a batch takes
        return found
