"""A version that `config apply` stored: a running hub takes it over, and no start undoes it.

The start's rule: a file that is no earlier version is meant, and wins; one that a later `config
apply` has replaced is a copy that somebody forgot.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from pydantic import ValidationError

from streaming.config.config import Config
from streaming.config.difference import ConfigDifference, differences
from streaming.config.holding import HoldsFrom
from streaming.core.model.errors import StateError

KEPT_BY_THE_PROCESS = ("kafka", "masking", "http", "log", "traces", "lineage", "s3", "spark")
"""The sections of which a running hub keeps its own: they hold secrets, or from a start on."""


class StoredVersion(Protocol):
    """A version of the configuration, as JSON."""

    @property
    def version(self) -> int:
        """Its number."""

    @property
    def document(self) -> str:
        """The configuration."""

    @property
    def is_applied(self) -> bool:
        """Return whether `slackwater config apply` stored it."""


def replaced_by(config: Config, stored: Sequence[StoredVersion]) -> int | None:
    """The version by which `config apply` has replaced this configuration; None: none has.

    `stored`: the oldest first. What was started with behind an earlier version replaced it too, but
    on purpose; only what was applied counts. Two configurations are the same one here if a running
    hub would take nothing over from either.
    """
    alike = [place for place, one in enumerate(stored) if _is_alike(config, one)]
    if not alike:
        return None
    return next((one.version for one in stored[alike[-1] + 1 :] if one.is_applied), None)


def _is_alike(config: Config, stored: StoredVersion) -> bool:
    try:
        found = differences(read_stored(stored), config)
    except StateError:  # one that nobody can read is replaced for good
        return False
    return all(one.holds is not HoldsFrom.HUB_EPOCH for one in found)


def replaced_text(path: Path, version: int) -> str:
    """Why a hub does not start with a file that was replaced, and the ways to go on."""
    return (
        f"{path} is an earlier configuration, which `slackwater config apply` has replaced by"
        f" configuration {version}: start with the file that was applied (`slackwater config diff`"
        " shows what this one would undo); or, to go back to this one, apply it by `slackwater"
        " config apply`, or start with `--replace-applied`"
    )


def read_stored(stored: StoredVersion) -> Config:
    """The configuration of a stored version; StateError if this version of Slackwater cannot."""
    try:
        return Config.from_document(stored.document)
    except ValidationError as error:
        raise StateError(
            f"configuration {stored.version} in the state was written by another version of"
            f" slackwater, and this one cannot read it: {error.errors()[0]['msg']}"
        ) from None


def taken_over(running: Config, applied: Config) -> Config:
    """The applied configuration as a hub that runs works with it, with its own secrets."""
    own = {name: getattr(running, name) for name in KEPT_BY_THE_PROCESS}
    hub = applied.hub.model_copy(update={"state": running.hub.state})
    return applied.model_copy(update={**own, "hub": hub})


def not_applicable(found: Sequence[ConfigDifference]) -> list[ConfigDifference]:
    """The differences that a running hub cannot take."""
    return [one for one in found if one.holds is HoldsFrom.RESTART]
