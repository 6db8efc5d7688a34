"""The configuration with which a hub is started, beside those that its state has."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from checkpoints.config import StoredConfig, stored_versions
from streaming.config import errors
from streaming.config.applied import read_stored, replaced_by, replaced_text, taken_over
from streaming.config.config import Config
from streaming.config.history import config_history, history_faults
from streaming.core.model.errors import ConfigError

LOG = logging.getLogger("slackwater")


@dataclass(frozen=True, slots=True)
class ConfigAtStart:
    """A file's configuration; `replace_applied`: it holds though `config apply` replaced it."""

    path: Path
    config: Config
    replace_applied: bool = False

    def check(self) -> None:
        """ConfigError if no hub may be started with it where this state is."""
        stored = stored_versions(self.config.hub.state)
        errors.check(history_faults(self.config, config_history([one.document for one in stored])))
        version = self._replaced_by(stored)
        if version is not None:
            raise ConfigError(replaced_text(self.path, version))
        if stored and stored[-1].is_applied and stored[-1].document != self.config.document():
            LOG.warning(
                "starts with %s in place of configuration %d, which `slackwater config apply`"
                " stored",
                self.path,
                stored[-1].version,
            )

    def taken_over(self) -> Config:
        """The configuration of a standby that takes over: what was applied meanwhile holds."""
        stored = stored_versions(self.config.hub.state)
        if self._replaced_by(stored) is None:
            self.check()
            return self.config
        LOG.info("goes on by configuration %d, which was applied meanwhile", stored[-1].version)
        return taken_over(self.config, read_stored(stored[-1]))

    def _replaced_by(self, stored: Sequence[StoredConfig]) -> int | None:
        return None if self.replace_applied else replaced_by(self.config, stored)
