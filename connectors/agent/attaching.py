"""What attaching a database does, and detaching it: for a person, before it is done."""

from dataclasses import dataclass
from typing import NamedTuple

from connectors.agent.found import CheckedPoint


class ReplicaPlace(NamedTuple):
    """A replica as the configuration has it: the `place`-th of so many, from 1 on."""

    name: str
    rid: int
    place: int = 1
    replicas: int = 1


@dataclass(frozen=True, slots=True)
class InstallStep:
    """A step, and what does it, as statements of the database.

    `is_code`: the command does it, by more than statements. `to_do`: why this user may not do it,
    and who does; empty: nobody knows before it is tried.
    """

    what: str
    statements: tuple[str, ...] = ()
    is_code: bool = False
    to_do: str = ""

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to do."""
        return not (self.statements or self.is_code)


@dataclass(frozen=True, slots=True)
class InstallPlan:
    """The steps in order; `points`: what was checked; `notes`: what to know, or to do besides.

    It can be carried out if no point is in the way.
    """

    steps: tuple[InstallStep, ...]
    points: tuple[CheckedPoint, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def in_the_way(self) -> tuple[str, ...]:
        """Why it cannot be carried out, each with what to do."""
        return tuple(one.to_do for one in self.points if one.to_do and one.is_in_the_way)
