"""What a resync has to do: the work of each table that its consumer lacks rows of."""

from enum import StrEnum
from typing import NamedTuple


class ResyncMode(StrEnum):
    """What a resync brings."""

    INCREMENTAL = "incremental"
    """the rows that were tracked, and tables that must be scanned"""
    FULL = "full"
    """all rows of all tables"""


class WorkKind(StrEnum):
    """How a resync brings a table up to date, from the strongest to the weakest."""

    FULL_COPY = "full_copy"
    """every row, because the consumer gets everything anew"""
    SCAN = "scan"
    """every row in ranges of keys; rows that the hub has not are deleted"""
    PAGE = "page"
    """the rows that were tracked"""

    @property
    def is_whole(self) -> bool:
        """Return whether all rows are sent, so that no tracked row is needed."""
        return self is not WorkKind.PAGE


class Piece(NamedTuple):
    """One table's work in a resync; `after`: its last key that was sent, None at the beginning.

    `rows`: how many are expected, for a page the tracked ones.
    """

    table: str
    kind: WorkKind
    rows: int
    after: str | None = None
