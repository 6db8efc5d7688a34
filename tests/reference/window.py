"""The window's rule in a dictionary, a row at a time (streaming/stages/window.py)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.truncation import Truncation


def last_touched(row: RowState) -> int:
    """The hub epoch in which the row was last written or realigned."""
    return max([row.hub_epoch, *(one.hub_epoch for one in row.realign)])


@dataclass(slots=True)
class NamedRows:
    """What a window holds, as a dictionary: what nothing touched above the edge is not in it."""

    edge: int = 0
    rows: dict[RowKey, RowState] = field(default_factory=dict)

    def put(self, rows: Mapping[RowKey, RowState]) -> None:
        """Store these rows."""
        self.rows |= rows
        self.advance(self.edge)

    def truncate(self, table: str, truncation: Truncation) -> None:
        """Make tombstones of the rows that a truncate took."""
        mine = {key: row for key, row in self.rows.items() if key[0] == table}
        self.put({key: truncation.applied_to(row) for key, row in mine.items()})

    def advance(self, edge: int) -> None:
        """Forget the rows that nothing touched above the new edge."""
        self.edge = max(self.edge, edge)
        self.rows = {key: row for key, row in self.rows.items() if last_touched(row) > self.edge}

    def shrink(self, size: int) -> None:
        """Forget the oldest hub epochs until no more than so many rows are left."""
        while len(self.rows) > size:
            self.advance(min(map(last_touched, self.rows.values())))
