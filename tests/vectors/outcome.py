"""What became of one case: its line in the report."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Case = dict[str, Any]
"""A case as it stands in its file."""


class About(StrEnum):
    """What an expectation is about."""

    CONTENT = "content"
    """a row, as a cluster has it"""
    EXCEPTIONS = "exceptions"
    """the rejected changes of a row"""
    COUNT = "count"
    """how many rows are in conflict themselves, of all"""
    REJECTS = "rejects"
    """how many rows or transactions go whole, of all"""
    SESSION = "session"
    """what a session sends"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One expectation that was not met; `row` where it is about one row of one table."""

    text: str
    about: About
    row: tuple[str, str] | None = None


Explains = Callable[[Difference], bool]
"""Claims that a rule accounts for a difference."""


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
