"""What one replica's database holds and remembers, read from the database alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectors.sqlite.values.spellings import Stored
from streaming.core.model.change import Change
from streaming.core.model.ruv import Ruv

Key = tuple[str, tuple[Stored, ...]]
"""A table and the values of a key, as SQLite holds them."""

Typed = tuple[tuple[str, Stored], ...]
"""The values of a row, each with its type, so that 1, 1.0 and '1' are three."""


@dataclass(frozen=True, slots=True)
class JournaledWrite:
    """A change in a replica's own journal; `place` is its place there, `at_ms` its commit."""

    change: Change
    place: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class JournaledBatch:
    """A batch that was applied according to the replica's journal, at this place and time."""

    place: int
    at_ms: int
    epoch: int
    covers: int
    hub_epoch: int
    ruv: Ruv


@dataclass(frozen=True, slots=True)
class ReplicaEvidence:
    """One database: its rows, its writes in commit order, and what it applied.

    `past`: the file that the replica had before it was restored from a backup.
    """

    name: str
    rid: int
    rows: Mapping[Key, Typed]
    writes: tuple[JournaledWrite, ...]
    applied: tuple[JournaledBatch, ...]
    refused: int
    past: "ReplicaEvidence | None" = None

    @property
    def new_writes(self) -> tuple[JournaledWrite, ...]:
        """Its writes since it was restored; all of them if it was not."""
        known = {write.change.csn for write in self.past.writes} if self.past else set()
        return tuple(write for write in self.writes if write.change.csn not in known)

    @property
    def all_writes(self) -> tuple[JournaledWrite, ...]:
        """The writes of both files, each once."""
        return (*(self.past.writes if self.past else ()), *self.new_writes)

    @property
    def lost_writes(self) -> tuple[JournaledWrite, ...]:
        """The writes that its journal lacks since it was restored."""
        known = {write.change.csn for write in self.writes}
        past = self.past.writes if self.past else ()
        return tuple(write for write in past if write.change.csn not in known)


def typed(values: Any) -> Typed:  # noqa: ANN401 any iterable of stored values
    """Values with their types."""
    return tuple((type(value).__name__, value) for value in values)
