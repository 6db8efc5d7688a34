"""What the appliers of all databases share: which refusals count, who is in whose way, which CSN.

An item that the database refuses is tried again behind the others of its batch. One that wants a
unique value is then written with the rows of the batch that are in its way, and those in theirs.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import NOBODY, Op
from streaming.core.model.csn import Generator, time_of
from streaming.core.model.errors import CsnError, StateError, WireError
from streaming.core.model.ruv import Ruv
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import KEEP, Item, ItemType, RangeItem, Refused

log = logging.getLogger(__name__)

NO_CSN = "0" * 20
"""The CSN in a `refused` for a row that no replica wrote."""

EXTRANEOUS = "stranger"
"""The cause of the delete of a row that the hub does not have; no record holds it."""

HIDDEN = "hidden"
"""The cause of the delete of a row that a range hides; no record holds it."""

RowName = tuple[str, str]
"""The table and the key of a row."""

_OPS: Mapping[ItemType, frozenset[str]] = {
    **dict.fromkeys((ItemType.CHANGE, ItemType.REFRESH), frozenset(Op)),
    ItemType.KEPT: frozenset((KEEP,)),
}
"""What an item of each type may do."""


class UnknownTableError(WireError):
    """The table is not in the agent's settings."""


W = TypeVar("W")
"""What writes the rows of a table of a database."""


def writer_of(writers: Mapping[str, W], item: Item) -> W:
    """The writer of the item's table; UnknownTableError: it is not configured."""
    writer = writers.get(item.table)
    if writer is None:
        raise UnknownTableError(f"table {item.table} is not configured here")
    return writer


def check_known(batch: ApplyBatch) -> None:
    """StateError: the batch has an item that this agent does not know."""
    for item in batch.items:
        if isinstance(item, Item) and item.op not in _OPS[item.type]:
            raise StateError(
                f"batch {batch.hub_epoch} holds a {item.type} of op {item.op}, which this agent"
                " does not know: upgrade it"
            )


def last_of_rows(items: Sequence[Item], places: Iterable[int]) -> list[int]:
    """Those of these places that are the last one of their row in the batch."""
    last = {(item.table, item.key): place for place, item in enumerate(items)}
    return sorted(set(places) & set(last.values()))


def cause_of_strangers(keys: RangeItem, count: int, *, is_captured: bool) -> str:
    """Why so many rows go with a range: the hub does not have them, or it hides them.

    The hub vouches for as many as it hides, and names none. If there are more, one of them is
    nowhere else, and nobody knows which. `is_captured`: no write of the table stayed here that the
    database knows of.
    """
    return HIDDEN if is_captured and count <= keys.hidden else EXTRANEOUS


def strangers_deleted(keys: RangeItem, strangers: Iterable[str], cause: str) -> list[Item]:
    """The deletes of the rows of these keys, which a range does not name."""
    return [
        Item(ItemType.REFRESH, keys.table, key, Op.DELETE, None, None, NOBODY, cause=cause)
        for key in strangers
    ]


def lacking(items: Sequence[Item], refused: Mapping[int, Refused]) -> tuple[Refused, ...]:
    """The refusals to report: of rows whose last item in the batch was refused.

    A truncate is refused as a whole only of a table that is not here, of which there are no rows.
    """
    places = last_of_rows(items, refused)
    return tuple(refused[place] for place in places if items[place].key != ALL_KEYS)


def advanced(
    generator: Generator, items: Iterable[Item], clock_s: int, max_skew_s: int
) -> Generator:
    """The generator past the CSNs of these items.

    It ignores a CSN that is too far ahead, whose row is applied like any other: refusing the row
    would stop this replica because of another one's clock, and following it would have the hub
    refuse what this replica writes.
    """
    errors = list[CsnError]()
    for csn in sorted({item.csn for item in items if item.csn is not None}, reverse=True):
        try:
            generator = generator.seen(csn, clock_s, max_skew_s)
            break
        except CsnError as error:
            errors.append(error)
    if errors:
        log.error("the row is applied, but the next CSN does not follow it: %s", errors[0])
    return generator


def behind_applied(rid: int, above: str, ruv: Ruv, clock_s: int, max_skew_s: int) -> Generator:
    """A generator above this CSN and what was applied, unless that is far ahead of the clock."""
    seen = ruv.max_csns().values()
    followed = (csn for csn in seen if time_of(csn) - clock_s <= max_skew_s)
    return Generator.behind(rid, max([above, *followed]))


@dataclass(slots=True)
class Way:
    """Which rows of a batch must move for one to be written: those in its way, and those in theirs.

    `stuck`: the places of the rows that may move; `closed`: of those that have no way.
    `needed_by`: of those that were taken out, and for which one each.
    """

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

    def close(self, place: int) -> None:
        """Note that the way ended at a row that cannot be written: nor can those that need it.

        If it is at odds with another row of the way, this way alone is closed.
        """
        needs: int | None = place
        path = list[int]()
        while needs is not None:
            path.append(needs)
            needs = self.needed_by[needs]
        self.closed.update(path[-1:] if self.are_two_at_odds else path)
