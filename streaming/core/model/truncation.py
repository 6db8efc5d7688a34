"""A truncated table: every row of it is a tombstone until it is written again."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState

ALL_KEYS = ""
"""In the place of a key: the table as a whole, which is what a truncate writes."""


class Truncation(NamedTuple):
    """The last accepted truncate of a table; `incarnation`: how many there were."""

    author: int
    hub_epoch: int
    csn: str
    incarnation: int = 1

    def tombstone(self, row: RowState) -> RowState:
        """Return a row of the table as the truncate leaves it; its realigns stay."""
        return RowState(self.author, self.hub_epoch, self.csn, realign=row.realign)

    def applied_to(self, row: RowState) -> RowState:
        """Return a row as it stands: one that was not written since is a tombstone.

        What is written in the hub epoch of the truncate behind it has that hub epoch too, and what
        stood before it is known to be gone.
        """
        return self.tombstone(row) if row.hub_epoch < self.hub_epoch else row


Truncations = Mapping[str, Truncation]
"""Table -> its last truncate, of those that were ever truncated."""


def as_truncated(
    keys: Iterable[RowKey], rows: Mapping[RowKey, RowState], truncations: Truncations
) -> dict[RowKey, RowState]:
    """Return the rows of these keys as truncates left them; unknown ones if those took them."""
    found = {key: row for key in keys if (row := rows.get(key)) is not None}
    for key in keys:
        truncation = truncations.get(key[0])
        if truncation is not None:
            found[key] = truncation.applied_to(found.get(key, RowState()))
    return found
