"""Writes a batch item by item where the database refuses some: the others are not held up.

An item that is refused is tried again behind the others, which may have removed its cause. One that
wants a unique value is then written with the rows of the batch that are in its way, and those in
theirs: they are deleted and inserted again whole, which nothing acts on in the role `replica`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import psycopg

from connectors.agent.applying import NO_CSN, RowName, UnknownTableError, Way, last_of_rows
from connectors.postgres.apply.fast import run_of, writer_of
from connectors.postgres.apply.rows import RowTexts, RowWriter
from connectors.postgres.errors import error_text, refusal_code
from connectors.postgres.sql import Session
from streaming.core.model.errors import WireError
from streaming.core.records.record import Item, Refused


def code_of(error: Exception) -> str | None:
    """The code of a refusal; None: the row is not what failed, and nothing is refused."""
    if isinstance(error, psycopg.Error):
        return refusal_code(error)
    return "other" if isinstance(error, UnknownTableError) else "type"


@dataclass(slots=True)
class EachItem:
    """A batch within its transaction; `refused`: place -> why an item is not applied.

    `indexes`: place -> the unique index for which it was refused. `taken`: place -> the row that
    was taken out of the way of others; None: there was none.
    """

    session: Session
    writers: Mapping[str, RowWriter]
    hub_epoch: int
    items: Sequence[Item]
    refused: dict[int, Refused] = field(default_factory=dict)
    indexes: dict[int, str] = field(default_factory=dict)
    taken: dict[int, dict[str, str | None] | None] = field(default_factory=dict)

    def write(self) -> dict[int, Refused]:
        """Write the items; what is refused, by place."""
        self._write(range(len(self.items)))
        is_better = True
        while is_better and self.refused:
            is_better = self._write(last_of_rows(self.items, self.refused))
            is_better |= self._write_with_others(last_of_rows(self.items, self.refused))
        return self.refused

    def _write(self, places: Iterable[int]) -> bool:
        """Write these items, each by itself; return whether one was written."""
        failed = [self._try(place, self._write_one) for place in places]
        return not all(failed)

    def _write_with_others(self, places: Iterable[int]) -> bool:
        """Write those of these rows whose way can be made free; return whether some were."""
        stuck = [place for place in places if self.refused[place].code == "unique"]
        by_row = {(self.items[p].table, self.items[p].key): p for p in stuck}
        closed = set[int]()
        for place in stuck:
            if place in self.refused and place not in closed:
                self._write_in_its_way(place, Way(by_row, closed, {place: None}, [place]))
        return any(place not in self.refused for place in stuck)

    def _write_in_its_way(self, root: int, way: Way) -> None:
        """Write a row and all that is in its way, or nothing."""
        self.session.execute("SAVEPOINT way")
        before, self.taken = dict(self.refused), {}
        self._try(root, self._take_out)
        while way.waiting:
            place = way.waiting[-1]
            if not self._try(place, self._put_in):
                way.waiting.remove(place)
                continue
            others = way.others(place, self._keys_in_way(place))
            refused = [other for other in others if self._try(other, self._take_out)]
            if refused or not others:
                way.close(place)
                self.session.execute("ROLLBACK TO way")
                self.refused = before
                break
        self.session.execute("RELEASE way")

    def _write_one(self, place: int) -> None:
        run_of(self.writers, self.items[place]).write(self.session, is_careful=True)

    def _take_out(self, place: int) -> None:
        item = self.items[place]
        writer = writer_of(self.writers, item)
        self.taken[place] = writer.take_out(self.session, writer.key(item.key))

    def _put_in(self, place: int) -> None:
        item = self.items[place]
        if item.after is None or self.taken.get(place) is None:
            self._write_one(place)
        else:
            writer_of(self.writers, item).insert(self.session, self._row(place))

    def _row(self, place: int) -> RowTexts:
        """The row as it will stand."""
        item = self.items[place]
        return {**(self.taken.get(place) or {}), **writer_of(self.writers, item).values(item)}

    def _keys_in_way(self, place: int) -> set[RowName] | None:
        """The rows that hold a unique value that this one wants; None: it is not known."""
        item = self.items[place]
        if self.refused[place].code != "unique":
            return set()
        writer = writer_of(self.writers, item)
        keys = writer.keys_in_way(self.session, self._row(place), self.indexes.get(place, ""))
        return {(item.table, key) for key in keys} or None

    def _try(self, place: int, act: Callable[[int], None]) -> bool:
        """Do something with an item's row; return whether the database refused it."""
        item = self.items[place]
        self.session.execute("SAVEPOINT item")
        try:
            act(place)
        except (psycopg.Error, WireError) as error:
            code = code_of(error)
            is_truncate = item.is_of_table and item.table in self.writers
            if code is None or is_truncate:
                raise
            self.session.execute("ROLLBACK TO item")
            self.session.execute("RELEASE item")
            text = error_text(error) if isinstance(error, psycopg.Error) else str(error)
            csn = item.csn or NO_CSN
            self.refused[place] = Refused(self.hub_epoch, csn, item.table, item.key, code, text)
            if isinstance(error, psycopg.Error):
                self.indexes[place] = error.diag.constraint_name or ""
            return True
        self.session.execute("RELEASE item")
        self.refused.pop(place, None)
        return False
