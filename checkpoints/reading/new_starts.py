"""Which replicas started anew on an emptied database: what they wrote before stands in none."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TakenHello:
    """A hello that the hub took: of which replica, where it stands, and what it says."""

    rid: int
    batch: int
    offset: int
    epoch: int
    is_new_start: bool


def last_starts(hellos: Iterable[TakenHello]) -> dict[int, tuple[int, int]]:
    """Rid -> the batch and offset of the last new start that its database knows.

    The epoch of a database never falls, and a new start is above all that its topic holds. So a
    later hello of a smaller epoch is that of a database from before the start, which was restored
    with all that stood in it.
    """
    known = defaultdict[int, list[TakenHello]](list)
    for one in sorted(hellos, key=lambda one: (one.batch, one.offset)):
        starts = known[one.rid]
        while starts and one.epoch < starts[-1].epoch:
            starts.pop()
        if one.is_new_start:
            starts.append(one)
    return {rid: (of[-1].batch, of[-1].offset) for rid, of in known.items() if of}
