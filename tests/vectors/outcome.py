"""What became of one case: its line in the report."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Case = dict[str, Any]
"""A case as it stands in its file."""


class VectorError(Exception):
    """A test vector is of an unknown kind or shape."""


class About(StrEnum):
    """What an expectation is about."""

    CONTENT = "content"
    """a row, as a cluster has it"""
    EXCEPTIONS = "exceptions"
    """the rejected changes of a row"""
    COUNT = "count"
    """how many rows are in conflict themselves"""
    REJECTS = "rejects"
    """how many rows or transactions go whole"""
    ANCHOR = "anchor"
    """where a session starts, or that it does not"""
    SENT = "sent"
    """what a session sends"""
    TRACKING = "tracking"
    """a decision of change tracking or resync, or what follows from it"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One expectation that was not met.

    `row`, `step`: the row of a table that it is about, and the write that is counted or recorded
    otherwise, or the sync behind which the row is another; None: it is about no single one.
    `is_origins`: the expectation is what the origin's own rules make of the case. No rule accounts
    for any other.
    """

    text: str
    about: About
    row: tuple[str, str] | None = None
    step: int | None = None
    is_origins: bool = False


Explains = Callable[[Difference], bool]
"""Returns whether a rule accounts for a difference."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A case's line; `failed` makes the run end with 1."""

    id: str
    text: str
    failed: bool = False

    @property
    def line(self) -> str:
        """What is printed."""
        return f"{self.id}: {self.text}"
