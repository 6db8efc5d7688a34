"""A position that is held: `covers` and RUV stay where they were until a resync's last page."""

from enum import StrEnum
from typing import NamedTuple

from streaming.core.model.ruv import Ruv


class CoveredPosition(NamedTuple):
    """What a consumer is told that it has: every hub epoch up to `covers`, and this RUV."""

    covers: int
    ruv: Ruv


def announced(
    held: CoveredPosition | None, now: CoveredPosition, *, is_last_page: bool
) -> CoveredPosition:
    """Return what a batch says that its consumer has once it is applied.

    held: the position at the start of the resync; None: none is running. now: the hub after the
    batch. Live batches of a resync say no more than its pages do: a row that is still to come may
    be older than they are. The last page says its own hub epoch.
    """
    return now if held is None or is_last_page else held


class ResyncAtHello(StrEnum):
    """What becomes of a resync when its consumer starts a new session."""

    GOES_ON = "goes_on"
    """behind the hub epoch that the consumer reached; positions stay held"""
    STARTS_AGAIN = "starts_again"
    """no page counts as delivered; what was tracked stays, and more is added"""


def at_hello(
    *, end_epoch: int, reached: int, lost: bool, is_of_this_generation: bool
) -> ResyncAtHello:
    """Decide what a hello does to a resync, also to one whose last page is not acknowledged.

    reached: the hub epoch that the consumer applied last, in any session. Below the end of the
    resync, a page may have been sent that it has not.
    """
    goes_on = is_of_this_generation and not lost and reached >= end_epoch
    return ResyncAtHello.GOES_ON if goes_on else ResyncAtHello.STARTS_AGAIN
