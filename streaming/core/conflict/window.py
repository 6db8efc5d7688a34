"""The recently written rows, in memory: enough to judge changes of replicas that are up to date."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState, with_image
from streaming.core.model.truncation import Truncation

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
    """Every row that was written or realigned above hub epoch `edge`, without its image.

    A row that is missing was last touched at or below the edge: for a change with an MRE not
    below it that row cannot be concurrent; for any other it is looked up.
    """

    edge: int = 0
    rows: dict[str, RowState] = field(default_factory=dict)
    touched: dict[int, list[str]] = field(default_factory=dict)

    def merge(self, hub_epoch: int, rows: Mapping[str, RowState]) -> None:
        """Store the rows that a committed batch changed."""
        if rows:
            self.rows.update(rows)
            self.touched.setdefault(hub_epoch, []).extend(rows)

    def truncate(self, table: str, truncation: Truncation) -> None:
        """Store a committed truncate: the rows that it took are tombstones."""
        there = f"{table}{SEPARATOR}"
        taken = {
            name: truncation.tombstone(row)
            for name, row in self.rows.items()
            if name.startswith(there) and row.hub_epoch < truncation.hub_epoch
        }
        self.merge(truncation.hub_epoch, taken)

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


def last_touched(row: RowState) -> int:
    """The hub epoch in which the row was last written or realigned."""
    return max([row.hub_epoch, *(one.hub_epoch for one in row.realign)])


LookUp = Callable[[Collection[RowKey]], Mapping[RowKey, RowState]]
"""Looks up rows that the window does not hold, with images; unknown ones may be left out."""
LookUpImages = Callable[[Mapping[RowKey, RowState]], Mapping[RowKey, str | None]]
"""Looks up the images of row versions that the window holds."""


@dataclass(frozen=True, slots=True)
class RowsAt:
    """Rows as they stand behind the last committed batch: of the window, or looked up."""

    window: Window
    look_up: LookUp
    look_up_images: LookUpImages

    def rows(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """These rows; images only of those that are looked up."""
        known = self._held(keys)
        return {**self._others(keys, known), **known}

    def with_images(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """These rows with images."""
        known = self._held(keys)
        seen = self.look_up_images(known) if known else {}
        mine = {key: with_image(row, seen.get(key)) for key, row in known.items()}
        return {**self._others(keys, known), **mine}

    def _others(
        self, keys: Collection[RowKey], known: Collection[RowKey]
    ) -> Mapping[RowKey, RowState]:
        older = [key for key in keys if key not in known]
        return self.look_up(older) if older else {}

    def _held(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        rows = self.window.rows
        return {key: row for key in keys if (row := rows.get(text_of(key))) is not None}
