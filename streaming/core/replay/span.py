"""Which part of the history is asked for: from and to as hub epochs, CSNs or times."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from streaming.core.model.csn import named_csn
from streaming.core.model.errors import QuestionError


class Mark(Protocol):
    """A committed batch, in the order of batches."""

    @property
    def batch(self) -> int:
        """Its number."""

    @property
    def hub_epoch(self) -> int:
        """The hub epoch behind it."""

    @property
    def at_ms(self) -> int:
        """The hub's clock."""


class Moment(NamedTuple):
    """A place in the history: a hub epoch, a CSN or a time."""

    text: str
    hub_epoch: int | None = None
    csn: str | None = None
    time_ms: int | None = None


class Span(NamedTuple):
    """Hub epochs, both included, and the batches that made them, both included.

    The state before it is that of batch `first` - 1.
    """

    from_epoch: int
    to_epoch: int
    first: int
    last: int


EpochOf = Callable[[str], int | None]
"""CSN -> the hub epoch in which the change was judged; None: it was not."""


def parse_moment(text: str) -> Moment:
    """Parse a hub epoch, a CSN or a time with its zone; QuestionError says what is wrong."""
    csn = named_csn(text)
    if csn is not None:
        return Moment(text, csn=csn)
    if re.fullmatch(r"\d{1,18}", text):
        return Moment(text, hub_epoch=int(text))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise QuestionError(
            f"{text!r} is no hub epoch (17), no CSN (20 hexadecimal digits) and no time"
            " (2026-11-24T14:05:00Z)"
        ) from None
    if time.tzinfo is None:
        raise QuestionError(f"{text!r} has no time zone: write {text}Z for UTC, or {text}+01:00")
    return Moment(text, time_ms=round(time.timestamp() * 1000))


def span_of(
    marks: Sequence[Mark],
    begin: Moment | None,
    end: Moment | None,
    epoch_of: EpochOf,
    oldest: int = 1,
) -> Span:
    """Return the hub epochs from one moment to another; None: from the first, or to the last.

    `marks`: all committed batches. `oldest`: the first hub epoch of which everything is kept. A hub
    epoch begins with the batch that raised it, and the batches behind that which raised none belong
    to it. A time is that of the hub's clock: the span holds what was judged from then on, up to
    then.
    """
    if not marks:
        raise QuestionError("no batch is committed yet: there is no history")
    newest = marks[-1].hub_epoch
    if oldest > newest:
        raise QuestionError(
            f"the history is purged up to hub epoch {newest}, the last one, so nothing is left to"
            f" judge again: `slackwater rows TABLE --as-of {newest}` shows the rows behind it; what"
            f" is judged from hub epoch {oldest} on can be asked for, as long as retention.keep_h"
            " says"
        )
    from_epoch = oldest if begin is None else _first_epoch(marks, begin, epoch_of)
    to_epoch = newest if end is None else _last_epoch(marks, end, epoch_of)
    if from_epoch > newest:
        what = begin.text if begin else from_epoch
        raise QuestionError(f"nothing is judged from {what} on: the last hub epoch is {newest}")
    if from_epoch < oldest:
        raise QuestionError(
            f"hub epoch {from_epoch} is not kept any more: the oldest one that can be judged again"
            f" is {oldest}"
        )
    if to_epoch > newest:
        raise QuestionError(f"hub epoch {to_epoch} is not there yet: the last one is {newest}")
    batches = [mark.batch for mark in marks if from_epoch <= mark.hub_epoch <= to_epoch]
    if from_epoch > to_epoch or not batches:
        raise QuestionError(
            f"the range is empty: it would begin with hub epoch {from_epoch} and end with"
            f" {to_epoch}"
        )
    return Span(from_epoch, to_epoch, batches[0], batches[-1])


def epoch_at(marks: Sequence[Mark], moment: Moment, epoch_of: EpochOf) -> int:
    """Return the hub epoch as of a moment: of a time the last one up to then."""
    found = _last_epoch(marks, moment, epoch_of)
    newest = marks[-1].hub_epoch if marks else 0
    if found > newest:
        raise QuestionError(f"hub epoch {found} is not there yet: the last one is {newest}")
    return found


def _first_epoch(marks: Sequence[Mark], moment: Moment, epoch_of: EpochOf) -> int:
    if moment.time_ms is None:
        return max(1, _named(moment, epoch_of))
    later = (mark.hub_epoch for mark in marks if mark.at_ms >= moment.time_ms)
    earlier = [mark.hub_epoch for mark in marks if mark.at_ms < moment.time_ms]
    last = earlier[-1] if earlier else 0
    return next((epoch for epoch in later if epoch > last), last + 1)


def _last_epoch(marks: Sequence[Mark], moment: Moment, epoch_of: EpochOf) -> int:
    if moment.time_ms is None:
        return _named(moment, epoch_of)
    earlier = [mark.hub_epoch for mark in marks if mark.at_ms <= moment.time_ms]
    if not earlier:
        raise QuestionError(
            f"there is no batch of {moment.text} or before: the oldest that is kept came later"
            f"{_oldest(marks)}"
        )
    return earlier[-1]


def _oldest(marks: Sequence[Mark]) -> str:
    if not marks:
        return ""
    at = datetime.fromtimestamp(marks[0].at_ms / 1000, UTC).isoformat(timespec="seconds")
    return f", at {at}, with hub epoch {marks[0].hub_epoch}"


def _named(moment: Moment, epoch_of: EpochOf) -> int:
    if moment.hub_epoch is not None:
        return moment.hub_epoch
    found = epoch_of(moment.csn or "")
    if found is None:
        raise QuestionError(
            f"the changelog has no change {moment.csn}: it was not judged yet, is in quarantine, or"
            " is purged (`slackwater explain` says more)"
        )
    return found
