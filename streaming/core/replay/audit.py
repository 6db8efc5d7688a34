"""What must hold of every history, whatever it is: nothing missing, nothing twice, no RUV ahead."""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from streaming.core.model.ruv import Ruv, largest_of


class Check(StrEnum):
    """What an audit looks at."""

    FACT = "fact"
    """judged again, everything comes out as it is recorded"""
    OFFSETS = "offsets"
    """of every record that a batch read some table has a trace"""
    CSN = "csn"
    """no CSN is judged twice"""
    RUV = "ruv"
    """the RUV ends where the changelog does"""
    ROWS = "rows"
    """the full state follows from the changelog"""


class Finding(NamedTuple):
    """What an audit found: the check that fails, where, and how."""

    check: Check
    hub_epoch: int
    where: str
    detail: str


def holes(offsets: Iterable[int], first: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield each range [from, to) of [first, end) of which no offset is there."""
    at = first
    for offset in sorted(set(offsets)):
        if at < offset < end:
            yield at, offset
        at = max(at, offset + 1)
    if at < end:
        yield at, end


def different_ends(
    ruvs: Iterable[Ruv], judged: Mapping[int, str]
) -> Iterator[tuple[int, str, str]]:
    """Yield (rid, largest CSN of the RUVs, largest judged one) where both are not the same.

    A replica of which nothing is judged is in no RUV; one that was retired may be in none.
    """
    for rid, largest in largest_of(ruvs).items():
        if largest != judged.get(rid, ""):
            yield rid, largest, judged.get(rid, "")
