"""Which rows of a batch must move for one to be written: those in its way, and those in theirs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

RowName = tuple[str, str]
"""The table and the key of a row."""


@dataclass(slots=True)
class Way:
    """The way of one row: the places of the rows that were taken out, and for which one each."""

    stuck: Mapping[RowName, int]
    closed: set[int]
    needed_by: dict[int, int | None]
    waiting: list[int]
    are_two_at_odds: bool = False

    def others(self, place: int, in_way: set[RowName] | None) -> list[int]:
        """The rows to take out for this one, which wait from now on; empty: there is no way.

        `in_way`: the rows in its way; None: it is not known, so all that may move do.
        """
        known = self.stuck.keys() if in_way is None else in_way
        places = [self.stuck[name] for name in self.stuck if name in known]
        self.are_two_at_odds = any(other in self.needed_by for other in places)
        movable = [p for p in places if p not in self.closed and p not in self.needed_by]
        if in_way is not None and len(movable) < len(in_way):
            return []
        self.needed_by |= dict.fromkeys(movable, place)
        self.waiting += movable
        return movable


@dataclass(slots=True)
class Ways:
    """The ways of the rows that are stuck; `closed`: the places of those that have none."""

    stuck: Mapping[RowName, int]
    closed: set[int] = field(default_factory=set)

    def is_open(self, place: int) -> bool:
        """Return whether this row may still find its way."""
        return place not in self.closed

    def begin(self, root: int) -> Way:
        """The way of this row."""
        return Way(self.stuck, self.closed, {root: None}, [root])

    def close(self, way: Way, place: int) -> None:
        """Note that a way ended at a row that cannot be written: nor can those that need it.

        If it is at odds with another row of the way, this way alone is closed.
        """
        needs: int | None = place
        path = list[int]()
        while needs is not None:
            path.append(needs)
            needs = way.needed_by[needs]
        self.closed |= set(path[-1:] if way.are_two_at_odds else path)
