"""Measuring in alternation: the machine's speed varies by half within minutes, so sides take turns.

A round measures every side once, one after the other. The reported ratio of two sides is the median
of their ratios within each round.
"""

from collections.abc import Mapping, Sequence
from statistics import median

Round = Mapping[str, float]
"""Side -> its speed or its time in this round."""


def ratio(rounds: Sequence[Round], one: str, other: str) -> float:
    """The median ratio of one side to the other, of the rounds that measured both."""
    ratios = [found[one] / found[other] for found in rounds if {one, other} <= found.keys()]
    return round(median(ratios), 3)


def middle(rounds: Sequence[Round], side: str) -> float:
    """The median of one side over the rounds that measured it."""
    return median(found[side] for found in rounds if side in found)
