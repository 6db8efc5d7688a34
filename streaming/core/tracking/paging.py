"""Pages of tracked rows: which row is left to the live batches, and where a page ends."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from streaming.core.model.row import RowState

Key = TypeVar("Key")
Order = Callable[[Key], Any]


def goes_live(tracked_epoch: int, row: RowState) -> bool:
    """Return whether a tracked row was written again behind the end of the resync.

    Then it is sent with the live batches; any other goes as it stands, a tombstone as its delete.
    Rows have no place in hub order, so hub epochs are compared.
    """
    return row.hub_epoch > tracked_epoch


def page_end(keys: Sequence[Key], end: int, order: Order[Key]) -> int:
    """Return where a page ends that is to end before this place: equal keys stay together.

    Keys may be equal by value and different rows, as decimals that differ in their trailing zeros;
    a page that ended between them would delete the later one as a stranger of its range.
    """
    if end >= len(keys):
        return len(keys)
    return bisect_right(keys, order(keys[end - 1]), lo=end, key=order)
