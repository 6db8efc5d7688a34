"""The recently written rows, in memory: enough to judge changes of replicas that are up to date."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.core.model.change import RowKey
from streaming.core.model.row import Realign, RowState
from streaming.core.model.truncation import Truncation

WindowRow = tuple[int, int, str | None, bool, tuple[Realign, ...]]
"""(author, epoch, csn, exists, realign): a RowState without image, as a cheap tuple."""

SEPARATOR = "\x1f"


def text_of(row: RowKey) -> str:
    """The row's name in the window: one text, because the stages make it in columns."""
    return f"{row[0]}{SEPARATOR}{row[1]}"


def key_of(text: str) -> RowKey:
    """Return the key of the row with this name in the window."""
    table, key = text.split(SEPARATOR, 1)
    return table, key


@dataclass(slots=True)
class Window:
    """Every row that was written or realigned above hub epoch `edge`.

    A row that is missing was last touched at or below the edge: for a change with an MRE not
    below it that row cannot be concurrent; for any other it is looked up.
    """

    edge: int = 0
    rows: dict[str, WindowRow] = field(default_factory=dict)
    touched: dict[int, list[str]] = field(default_factory=dict)

    def merge(self, hub_epoch: int, rows: Mapping[str, WindowRow]) -> None:
        """Store the rows that a committed batch changed."""
        if rows:
            self.rows.update(rows)
            self.touched.setdefault(hub_epoch, []).extend(rows)

    def truncate(self, table: str, truncation: Truncation) -> None:
        """Store a committed truncate: the rows that it took are tombstones."""
        there = f"{table}{SEPARATOR}"
        taken = {
            name: packed(truncation.tombstone(unpacked(row)))
            for name, row in self.rows.items()
            if name.startswith(there) and row[1] < truncation.epoch
        }
        self.merge(truncation.epoch, taken)

    def advance(self, edge: int) -> None:
        """Forget the rows that nothing touched above the new edge."""
        for epoch in [e for e in self.touched if e <= edge]:
            for name in self.touched.pop(epoch):
                row = self.rows.get(name)
                if row is not None and last_touched(row) <= edge:
                    del self.rows[name]
        self.edge = max(self.edge, edge)

    def shrink(self, size: int) -> None:
        """Forget the oldest hub epochs until no more than so many rows are left."""
        while len(self.rows) > size:
            self.advance(min(self.touched))

    def __len__(self) -> int:
        return len(self.rows)


def last_touched(row: WindowRow) -> int:
    """The hub epoch in which the row was last written or realigned."""
    return max(row[1], *(r.epoch for r in row[4])) if row[4] else row[1]


def packed(row: RowState) -> WindowRow:
    """A row state as the window holds it."""
    return row.author, row.epoch, row.csn, row.exists, row.realign


def unpacked(row: WindowRow, image: str | None = None) -> RowState:
    """A row of the window as judging takes it."""
    return RowState(row[0], row[1], row[2], row[3], image, row[4])
