"""Writes a batch item by item where the database refuses some: the others are not held up.

An item that is refused is tried again behind the others, which may have removed its cause: of rows
that were written several times while the replica was away, only the last write is sent. One that
wants a unique value is then written with the rows of the batch that are in its way, and those in
theirs. So a row is refused only if it cannot stand with all of these behind it; of
two rows of the batch that cannot both stand, the one that could be written later in this order.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from connectors.agent.applying import NO_CSN, RowName, Way, last_of_rows
from streaming.core.records.record import Item, Refused


class DatabaseRefusal(NamedTuple):
    """The code of a refusal, and what the database says."""

    code: str
    text: str


class ItemRows(Protocol):
    """What a database does with the rows of a batch, each by the place of its item.

    Every method but the last two may raise what the database refuses.
    """

    def write(self, place: int) -> None:
        """Write or delete the row of this item."""

    def take_out(self, place: int) -> None:
        """Take its row out of the way of others, if there is one."""

    def put_in(self, place: int) -> None:
        """Write its row, which may have been taken out."""

    def keys_in_way(self, place: int, refused: Refused) -> set[str]:
        """The keys of the rows that hold a unique value that its row wants; empty: not known."""

    def moving(self, tables: set[str]) -> AbstractContextManager[None]:
        """Within it rows of these tables are taken out and put in."""

    def refusal(self, place: int, error: Exception) -> DatabaseRefusal | None:
        """Why the database refuses its row; None: it is the database that failed."""

    def check_goes_on(self, refused: Refused, place: int, error: Exception) -> None:
        """Raise if the transaction cannot go on without its row."""


@dataclass(slots=True)
class EachItem:
    """A batch within its transaction; `refused`: place -> why an item is not applied.

    `execute`: run a statement of SQL in it.
    """

    rows: ItemRows
    execute: Callable[[str], object]
    hub_epoch: int
    items: Sequence[Item]
    refused: dict[int, Refused] = field(default_factory=dict)

    def write(self, places: Iterable[int]) -> dict[int, Refused]:
        """Write these items; what is refused, by place."""
        self._write(places)
        is_better = True
        while is_better and self.refused:
            is_better = self._write(last_of_rows(self.items, self.refused))
            is_better |= self._write_with_others(last_of_rows(self.items, self.refused))
        return self.refused

    def _write(self, places: Iterable[int]) -> bool:
        """Write these items, each by itself; return whether one was written."""
        failed = [self._try(place, self.rows.write) for place in places]
        return not all(failed)

    def _write_with_others(self, places: Iterable[int]) -> bool:
        """Write those of these rows whose way can be made free; return whether some were."""
        stuck = [place for place in places if self.refused[place].code == "unique"]
        by_row = {(self.items[p].table, self.items[p].key): p for p in stuck}
        closed = set[int]()
        with self.rows.moving({self.items[place].table for place in stuck}):
            for place in stuck:
                if place in self.refused and place not in closed:
                    self._write_in_its_way(place, Way(by_row, closed, {place: None}, [place]))
        return any(place not in self.refused for place in stuck)

    def _write_in_its_way(self, root: int, way: Way) -> None:
        """Write a row and all that is in its way, or nothing."""
        self.execute("SAVEPOINT way")
        before = dict(self.refused)
        self._try(root, self.rows.take_out)
        while way.waiting:
            place = way.waiting[-1]
            if not self._try(place, self.rows.put_in):
                way.waiting.remove(place)
                continue
            others = way.others(place, self._rows_in_way(place))
            refused = [other for other in others if self._try(other, self.rows.take_out)]
            if refused or not others:
                way.close(place)
                self.execute("ROLLBACK TO way")
                self.refused = before
                break
        self.execute("RELEASE way")

    def _rows_in_way(self, place: int) -> set[RowName] | None:
        """The rows that hold a unique value that this one wants; None: it is not known."""
        refused = self.refused[place]
        if refused.code != "unique":
            return set()
        keys = self.rows.keys_in_way(place, refused)
        return {(self.items[place].table, key) for key in keys} or None

    def _try(self, place: int, act: Callable[[int], None]) -> bool:
        """Do something with an item's row; return whether the database refused it."""
        item = self.items[place]
        self.execute("SAVEPOINT item")
        try:
            act(place)
        except Exception as error:
            found = self.rows.refusal(place, error)
            if found is None:
                raise
            csn = item.csn or NO_CSN
            refused = Refused(self.hub_epoch, csn, item.table, item.key, *found)
            self.rows.check_goes_on(refused, place, error)
            self.execute("ROLLBACK TO item")
            self.execute("RELEASE item")
            self.refused[place] = refused
            return True
        self.execute("RELEASE item")
        self.refused.pop(place, None)
        return False
