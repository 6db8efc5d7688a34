"""What does a consumer lack? Where sending starts, what is sent, and when it must not be tried.

The hub's RUV is compared with the consumer's (docs/protocol.md, The comparison; 389:
cl5_clcache.c, first load). Only fresh changes count here: a refresh carries the CSN of an old
winner, which a RUV covers, so refreshes are skipped by covers alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.csn import rid_of
from streaming.core.model.ruv import Ruv

NO_RID = 0
"""The rid of 389's helper records (counts and RUVs kept among the changes); never a change."""


class Need(StrEnum):
    """Why a replica's changes are sent to a consumer or not."""

    BEHIND = "behind"
    """the consumer has the smaller max: everything after it"""
    NEVER_SEEN = "never_seen"
    """the consumer has no CSN of it: everything from the supplier's min on"""
    LEVEL = "level"
    """the consumer knows as much or more: nothing"""
    NO_CHANGE = "no_change"
    """the supplier has no CSN of it: nothing"""
    STRANGER = "stranger"
    """only the consumer knows of it: ignored"""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Where sending starts: `at` this CSN (it is sent), or after it (the consumer has it)."""

    csn: str
    at: bool


@dataclass(frozen=True, slots=True)
class Lack:
    """What a consumer lacks: from `anchor` (None: nothing) up to `stop`, minus what it has.

    `needs`: the reason per rid, for every rid that either side knows. `starts`: for each rid of
    which something is lacking, where that begins; the anchor is the smallest of them.
    """

    stop: Ruv
    has: Ruv
    needs: Mapping[int, Need]
    starts: Mapping[int, Anchor]

    @property
    def anchor(self) -> Anchor | None:
        """The smallest start, or None when nothing is lacking; of equals AT, which skips nothing.

        389 keeps the first of equals, which after a reload may be the one that skips.
        """
        return min(self.starts.values(), key=lambda start: (start.csn, not start.at), default=None)

    def must_send(self, csn: str) -> bool:
        """Claim that the consumer lacks this change; it stands at or behind the anchor.

        Skipped: helper records, replicas that `stop` does not know or does not know more of,
        what the consumer has, and what lies beyond `stop` (it comes with the next calculation).
        """
        return rid_of(csn) in self.starts and self.stop.covers(csn) and not self.has.covers(csn)


def lack(supplier: Ruv, consumer: Ruv) -> Lack:
    """Hold the two RUVs against each other; `supplier` is that of the hub epoch to be sent.

    The consumer's own rid counts like any other: apply `own_counted` first.
    """
    rids = sorted({*supplier.elements, *consumer.elements} - {NO_RID})
    needs = {rid: _need(supplier, consumer, rid) for rid in rids}
    starts = {rid: _start(need, supplier, consumer, rid) for rid, need in needs.items()}
    return Lack(supplier, consumer, needs, {rid: s for rid, s in starts.items() if s is not None})


def _need(supplier: Ruv, consumer: Ruv, rid: int) -> Need:
    known, there = supplier.max_of(rid), consumer.max_of(rid)
    if rid not in supplier.elements:
        return Need.STRANGER
    if known is None:
        return Need.NO_CHANGE
    if there is None:
        return Need.NEVER_SEEN
    return Need.BEHIND if there < known else Need.LEVEL


def _start(need: Need, supplier: Ruv, consumer: Ruv, rid: int) -> Anchor | None:
    after, first = consumer.max_of(rid), supplier.min_of(rid)
    if need is Need.BEHIND and after is not None:
        return Anchor(after, at=False)
    if need is Need.NEVER_SEEN and first is not None:
        return Anchor(first, at=True)
    return None


def own_counted(consumer: Ruv, rid: int, own: str | None) -> Ruv:
    """The consumer's RUV with the element of its own `rid` set to `own`.

    One function, two inputs. The hub's max of the rid: the consumer's own changes count as
    covered, whatever it says of them. After a hello that reports a loss, the hello's `own`: its
    changes after that are lacking like any others (None: all of them).
    """
    return consumer.with_max(rid, own)


class Gap(StrEnum):
    """Why the changelog cannot be entered where sending would start."""

    PURGED = "purged"
    """changes that the consumer lacks were removed here, or came with the initial load"""
    MISSING = "missing"
    """the start is not in the changelog though nothing says that it was purged"""


@dataclass(frozen=True, slots=True)
class SendingRefused:
    """Nothing can be sent without a gap: the start that is not there, its replica, and why."""

    start: Anchor
    rid: int
    gap: Gap

    def __str__(self) -> str:
        """What is wrong, of which change, and what to do."""
        begins = "at" if self.start.at else "after"
        where = f"sending would start {begins} CSN {self.start.csn} of replica {self.rid}"
        match self.gap:
            case Gap.PURGED:
                return (
                    f"{where}, which is purged in the changelog: changes that this consumer lacks"
                    " were removed or came with the initial load, so it needs a resync"
                )
            case Gap.MISSING:
                return (
                    f"{where}, which is missing in the changelog though it was not purged: the"
                    " hub's state or the consumer's RUV is not of this history (restored, or of"
                    " another hub); find out which of them, then give the consumer a resync"
                )


@dataclass(frozen=True, slots=True)
class EpochsPurged:
    """Refreshes may be gone that a consumer lacks: it covers less than the purge epoch."""

    covers: int
    purge_epoch: int

    def __str__(self) -> str:
        """What is wrong, and what to do."""
        return (
            f"this consumer covers hub epoch {self.covers}, and the changelog is purged up to hub"
            f" epoch {self.purge_epoch}: refreshes may be gone from it, so it needs a resync"
        )


def epochs_purged(covers: int, purge_epoch: int) -> EpochsPurged | None:
    """Why nothing may be sent though every start may be there: a RUV says nothing of refreshes."""
    return EpochsPurged(covers, purge_epoch) if covers < purge_epoch else None


def refused(lacking: Lack, purged: Ruv, in_log: Callable[[str], bool]) -> SendingRefused | None:
    """Why nothing may be sent, or None: the changelog can be entered and has no hole behind it.

    `purged`: per rid the largest purged CSN. 389 looks for the anchor alone, although the anchor
    of one replica says nothing of another's hole; here `purged` speaks for every start.
    """
    for rid, start in sorted(lacking.starts.items(), key=lambda each: each[1].csn):
        gap = _gap(start, purged.max_of(rid), in_log, is_anchor=start == lacking.anchor)
        if gap is not None:
            return SendingRefused(start, rid, gap)
    return None


def _gap(
    start: Anchor, edge: str | None, in_log: Callable[[str], bool], *, is_anchor: bool
) -> Gap | None:
    """The gap at this start of a replica that was purged up to `edge`.

    The log is asked for the anchor, and for what stands below an edge. Purged exactly up to the
    CSN that the consumer has last: nothing that it lacks is gone. A min CSN is no start when
    something below it was purged, since the consumer never saw that either.
    """
    if start.at and edge is not None and edge < start.csn:
        return Gap.PURGED
    below = edge is not None and start.csn < edge
    at_edge = start.csn == edge and not start.at
    if at_edge or not (is_anchor or below) or in_log(start.csn):
        return None
    return Gap.MISSING if edge is not None and edge < start.csn else Gap.PURGED
