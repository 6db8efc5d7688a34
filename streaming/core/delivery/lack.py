"""What a consumer lacks: where sending starts, what is sent, and when sending is refused.

The hub's RUV is compared with the consumer's (docs/protocol.md, The comparison; 389:
cl5_clcache.c, first load). Only fresh changes count here: a refresh carries the CSN of an old
winner, which a RUV covers, so refreshes are skipped by covers alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.ruv import Ruv

NO_RID = 0
"""The rid of 389's helper records (counts and RUVs kept among the changes); never a change."""


class LackReason(StrEnum):
    """Why a replica's changes are sent to a consumer or not."""

    BEHIND = "behind"
    """the consumer has the smaller max: everything after it"""
    NEVER_SEEN = "never_seen"
    """the consumer has no CSN of it: everything from the supplier's min on"""
    LEVEL = "level"
    """the consumer has the same max or a larger one: nothing"""
    NO_CHANGE = "no_change"
    """the supplier has no CSN of it: nothing"""
    STRANGER = "stranger"
    """only the consumer's RUV contains it: ignored"""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where sending starts: `at` this CSN (it is sent), or after it (the consumer has it)."""

    csn: str
    at: bool


@dataclass(frozen=True, slots=True)
class Lack:
    """What a consumer lacks: from `anchor` (None: nothing) up to `stop`, minus what it has.

    `needs`: the reason per rid, for every rid in either RUV. `starts`: rid -> where its lacking
    changes start, if it has any; the anchor is the smallest of them.
    """

    stop: Ruv
    has: Ruv
    needs: Mapping[int, LackReason]
    starts: Mapping[int, Anchor]

    @property
    def anchor(self) -> Anchor | None:
        """Return the smallest start; None: nothing is lacking. Of equal starts AT is returned.

        AT skips nothing. 389 returns the first of equal starts, which may skip a change after a
        reload.
        """
        return min(self.starts.values(), key=lambda start: (start.csn, not start.at), default=None)


def lack(supplier: Ruv, consumer: Ruv) -> Lack:
    """Compare the two RUVs; `supplier` is that of the hub epoch to be sent.

    The consumer's own rid counts like any other: apply `own_counted` first.
    """
    rids = sorted({*supplier.elements, *consumer.elements} - {NO_RID})
    needs = {rid: _reason(supplier, consumer, rid) for rid in rids}
    starts = {rid: _start(need, supplier, consumer, rid) for rid, need in needs.items()}
    return Lack(supplier, consumer, needs, {rid: s for rid, s in starts.items() if s is not None})


def _reason(supplier: Ruv, consumer: Ruv, rid: int) -> LackReason:
    known, there = supplier.max_of(rid), consumer.max_of(rid)
    if rid not in supplier.elements:
        return LackReason.STRANGER
    if known is None:
        return LackReason.NO_CHANGE
    if there is None:
        return LackReason.NEVER_SEEN
    return LackReason.BEHIND if there < known else LackReason.LEVEL


def _start(need: LackReason, supplier: Ruv, consumer: Ruv, rid: int) -> Anchor | None:
    after, first = consumer.max_of(rid), supplier.min_of(rid)
    if need is LackReason.BEHIND and after is not None:
        return Anchor(after, at=False)
    if need is LackReason.NEVER_SEEN and first is not None:
        return Anchor(first, at=True)
    return None


def own_counted(consumer: Ruv, rid: int, own: str | None) -> Ruv:
    """Return the consumer's RUV with the max of its own `rid` set to `own`.

    If `own` is the hub's max of the rid, the consumer's own changes count as covered, whatever
    its RUV contains. After a hello that reports a loss, `own` is the hello's `own`: the
    consumer's changes after it are lacking like any others (None: all of them).
    """
    return consumer.with_max(rid, own)


class LogGap(StrEnum):
    """Why the changelog cannot be entered where sending would start."""

    PURGED = "purged"
    """changes that the consumer lacks were removed here, or came with the initial load"""
    MISSING = "missing"
    """the start is not in the changelog though it was not purged"""


@dataclass(frozen=True, slots=True)
class SendingRefused:
    """Sending is refused because it would leave a gap: the missing start, its replica, and why."""

    start: Anchor
    rid: int
    gap: LogGap

    def __str__(self) -> str:
        """Return what is wrong, with which change, and what to do."""
        begins = "at" if self.start.at else "after"
        where = f"sending would start {begins} CSN {self.start.csn} of replica {self.rid}"
        match self.gap:
            case LogGap.PURGED:
                return (
                    f"{where}, which is purged in the changelog: changes that this consumer lacks"
                    " were removed or came with the initial load, so it needs a resync"
                )
            case LogGap.MISSING:
                return (
                    f"{where}, which is missing in the changelog though it was not purged: the"
                    " hub's state or the consumer's RUV is not of this history (restored, or of"
                    " another hub); find out which of them, then give the consumer a resync"
                )


@dataclass(frozen=True, slots=True)
class EpochsPurged:
    """Sending is refused because the consumer may lack refreshes that were purged."""

    covers: int
    purge_epoch: int

    def __str__(self) -> str:
        """Return what is wrong, and what to do."""
        return (
            f"this consumer covers hub epoch {self.covers}, and the changelog is purged up to hub"
            f" epoch {self.purge_epoch}: refreshes may be gone from it, so it needs a resync"
        )


def epochs_purged(covers: int, purge_epoch: int) -> EpochsPurged | None:
    """Return why nothing may be sent if refreshes may be missing; RUVs do not cover refreshes."""
    return EpochsPurged(covers, purge_epoch) if covers < purge_epoch else None


def refused(lacking: Lack, purged: Ruv, in_log: Callable[[str], bool]) -> SendingRefused | None:
    """Return why nothing may be sent; None: the changelog has the starts and no gap after them.

    `purged`: rid -> its largest purged CSN. `in_log`: whether the changelog has a CSN. 389 looks
    up the anchor only, which does not detect a gap of another replica; here every start is
    compared with `purged`.
    """
    for rid, start in sorted(lacking.starts.items(), key=lambda each: each[1].csn):
        gap = _gap(start, purged.max_of(rid), in_log, is_anchor=start == lacking.anchor)
        if gap is not None:
            return SendingRefused(start, rid, gap)
    return None


def _gap(
    start: Anchor, edge: str | None, in_log: Callable[[str], bool], *, is_anchor: bool
) -> LogGap | None:
    """Return the gap at this start of a replica whose changes are purged up to `edge`.

    The log is searched for the anchor, and for starts below an edge. If the changes are purged
    exactly up to the consumer's max, nothing that it lacks is gone. A min CSN is no valid start
    if something below it was purged, because the consumer lacks that too.
    """
    if start.at and edge is not None and edge < start.csn:
        return LogGap.PURGED
    below = edge is not None and start.csn < edge
    at_edge = start.csn == edge and not start.at
    if at_edge or not (is_anchor or below) or in_log(start.csn):
        return None
    return LogGap.MISSING if edge is not None and edge < start.csn else LogGap.PURGED
