"""The configuration that a hub works by, and the later version that it takes over between batches.

It is opened anew by a new service, as a hub that starts with that configuration is, without another
process and without another Spark.
"""

import logging
from dataclasses import dataclass

from checkpoints.config import StoredConfig, documents, settings_document
from checkpoints.store import StateStore
from streaming.config.applied import read_stored, taken_over
from streaming.config.config import Config
from streaming.config.errors import check
from streaming.config.functions import unlisted
from streaming.config.history import config_history, history_faults
from streaming.core.model.errors import HubError, StateError
from streaming.hub.configured import settings_of

LOG = logging.getLogger("slackwater")


@dataclass(slots=True)
class ConfigInForce:
    """The configuration of a hub's services, one after the other.

    `version`: under which it is stored; 0: no service has stored it yet. `refused`: the last
    version that the hub could not take.
    """

    config: Config
    version: int = 0
    refused: int = 0
    _before: "tuple[Config, int] | None" = None
    _next: "tuple[Config, int] | None" = None

    def is_superseded(self, store: StateStore, applied: int) -> bool:
        """Return whether the hub takes another version; `applied`: the last that was applied.

        One that this process cannot work by is refused in the log, and the hub goes on.
        """
        if applied > max(self.version, self.refused):
            try:
                self._next = self._prepared(store, applied), applied
            except HubError as error:
                self._refuse(applied, error)
        return self._next is not None

    def take_over(self) -> Config:
        """Take the version over that was found; the configuration for the next service."""
        assert self._next is not None  # noqa: S101  # the service has ended for it
        LOG.info("takes configuration %d over, which replaces %d", self._next[1], self.version)
        self._before, (self.config, self.version) = (self.config, self.version), self._next
        self._next = None
        return self.config

    @property
    def is_new(self) -> bool:
        """Return whether it was taken over and no service has worked by it yet."""
        return self._before is not None

    def fall_back(self, error: Exception) -> Config:
        """Go back to the version before, for no service can be opened with the new one."""
        assert self._before is not None  # noqa: S101  # as `is_new` says
        self._refuse(self.version, error)
        (self.config, self.version), self._before = self._before, None
        return self.config

    def opened(self, version: int) -> None:
        """Note that a service works by the configuration, which is stored as this version."""
        self.version, self._before = version, None

    def _prepared(self, store: StateStore, version: int) -> Config:
        document = settings_document(store, version)
        if document is None:
            raise StateError(f"the state has no configuration {version}")
        applied = read_stored(StoredConfig(version, document, is_applied=True))
        config = taken_over(self.config, applied)
        check(unlisted(config.table_map().values(), config.functions.modules))
        check(config.masking_faults())
        check(history_faults(config, config_history(documents(store.root))))
        settings_of(config)  # imports the functions
        return config

    def _refuse(self, version: int, error: Exception) -> None:
        self.refused = version
        LOG.error(
            "configuration %d cannot be taken, and the hub goes on by the one before: %s",
            version,
            error,
        )
