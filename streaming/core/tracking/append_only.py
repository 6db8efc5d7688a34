"""A table whose rows are only appended: it catches up from the last row that was delivered."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from streaming.core.tracking.incarnation import AtHub, TableIncarnation


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """How many rows of a table were delivered to a consumer, and how many the hub has.

    Both count from the beginning of the incarnation. `unit` rows are counted as one in progress.
    """

    delivered: int
    end: int
    unit: int = 1

    @property
    def to_count(self) -> int:
        """Return the units that are added to a resync's total: a begun one counts."""
        return -(-self._missing // self.unit)

    @property
    def counted_when_done(self) -> int:
        """Return the units that are counted once it has caught up: whole ones only."""
        return self._missing // self.unit

    @property
    def _missing(self) -> int:
        return max(0, self.end - self.delivered)

    def completed(self, end: int) -> "AppendedRows":
        """Return the rows after a copy up to `end`, whatever was appended meanwhile."""
        return replace(self, delivered=end)

    @property
    def is_behind(self) -> bool:
        """Return whether rows are missing at the consumer."""
        return self.end > self.delivered


class AppendedPiece(NamedTuple):
    """A piece of a catch-up: `rows` rows behind the first `offset` ones."""

    offset: int
    rows: int


def needs_catch_up(incarnation: TableIncarnation, rows: AppendedRows) -> bool:
    """Return whether an append-only table must catch up.

    One that is still loading need not: its rows are announced when their load commits.
    """
    is_there = incarnation.at_hub is AtHub.PRESENT and incarnation.at_consumer.takes_rows
    return incarnation.is_append_only and is_there and rows.is_behind


def catch_up(rows: AppendedRows, piece_rows: int) -> tuple[AppendedPiece, ...]:
    """Return what is missing in pieces of at most `piece_rows`, in order and without a hole."""
    offsets = range(rows.delivered, rows.end, piece_rows)
    return tuple(AppendedPiece(offset, min(piece_rows, rows.end - offset)) for offset in offsets)
