"""Which recorded rounds of comparisons still say something: later ones replace the others."""

from collections.abc import Iterable, Mapping
from typing import Any


def rounds_that_count(rounds: Iterable[tuple[int, Mapping[str, Any]]]) -> set[int]:
    """The numbers of the rounds that a reader of all of them would name.

    `rounds`: number and document, in their order. They are the last one of each agreement that
    ended, the last one that failed, and of each table the last one that settled its local writes.
    """
    last = dict[tuple[str, ...], int]()
    for number, document in rounds:
        agreement = document["agreement"]
        if "reason" in document:
            last[agreement, "failed"] = number
        else:
            last[agreement, "ended"] = number
            settled = document.get("settled") or {}
            last |= {(agreement, "settled", table): number for table in settled}
    return {*last.values()}
