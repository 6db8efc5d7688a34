"""Up to when everything that a replica wrote is at a consumer, and how long that took, by day.

This is the recovery point of a pair of replicas: if the origin's database were lost now, and the
consumer took its place, what was written later than that would be missing.

Times of writing are those of the origin's records in Kafka: its agent says with each of them that
it has published all that was written before, unless it says that some of its journal waits. They
are never later than the hub's clock, by which the delays are counted. CSNs are not used: one names
a second, may be ahead of every clock, and a quiet replica gives none. What is in quarantine, and
what lost a conflict, does not count as lacking.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import attrgetter

from streaming.core.delivery.day_delay import DAY_MS, MINUTE_MS, DayDelay, day_of
from streaming.core.delivery.lack import lack
from streaming.core.model.ruv import Ruv
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.replica_state import ReplicaState

MARKS_MAX = 256
"""How many marks are kept; above that every other one of the older half goes, so that few of them
reach far back."""

Pair = tuple[int, int]
"""(origin, consumer)."""

_NONE: Mapping[int, int] = {}

_TIME_MS = attrgetter("time_ms")


@dataclass(frozen=True, slots=True)
class CompleteMark:
    """Everything that each origin wrote up to its time is in the hub epochs up to this one."""

    hub_epoch: int
    times_ms: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class AckedPosition:
    """What a consumer has acknowledged.

    `lacks`: the replicas of which it lacks a change. `is_whole`: its rows are what its position
    says; those of one that gets tables anew are not.
    """

    covers: int
    lacks: frozenset[int]
    is_whole: bool = True

    def has_all_of(self, origin: int) -> bool:
        """Return whether it has everything of this replica that the hub has."""
        return self.is_whole and origin not in self.lacks


@dataclass(frozen=True, slots=True)
class CommittedPoints:
    """What is known behind a batch, or as one looks: how far origins and consumers are.

    `complete_ms`: as of `complete_times`. `first_ms`: origin -> the time of its first change in
    this very hub epoch. `origins`: all that are not retired. `consumers`: those of them that said
    hello.
    """

    clock_ms: int
    hub_epoch: int
    complete_ms: Mapping[int, int]
    origins: frozenset[int]
    consumers: Mapping[int, AckedPosition]
    first_ms: Mapping[int, int] = field(default_factory=dict)


def complete_times(
    replicas: Mapping[int, ReplicaState], open_ms: Mapping[int, int | None], clock_ms: int
) -> dict[int, int]:
    """Origin -> up to when everything that it wrote is judged; absent: that cannot be told now.

    `open_ms`: as of `first_open_ms`. Not told of one whose topic is not read, or whose agent said
    that it had more to publish.
    """
    found = {}
    for rid, replica in replicas.items():
        opened_ms = open_ms.get(rid, clock_ms + 1)
        is_behind = replica.unpublished or (replica.ended and replica.ended.unpublished)
        if replica.seen_ms > 0 and opened_ms is not None and not (replica.is_stopped or is_behind):
            found[rid] = min(replica.seen_ms, clock_ms, opened_ms - 1)
    return found


def first_open_ms(opened: OpenTransactions) -> dict[int, int | None]:
    """Origin -> when the first of its changes came that is not judged; None: that is on disk."""
    of_each = defaultdict[int, list[Collection[str]]](list)
    for (_, rid), csns in opened.lists.members.items():
        of_each[rid].append(csns)
    return {rid: _first_ms(opened, chain.from_iterable(csns)) for rid, csns in of_each.items()}


def _first_ms(opened: OpenTransactions, csns: Iterable[str]) -> int | None:
    """When the first of these changes came; there may be a hundred thousand in every batch."""
    try:
        return min(map(_TIME_MS, map(opened.changes.__getitem__, csns)), default=None)
    except KeyError:  # it is on disk
        return None


def acked_position(agreement: AgreementState, ruv: Ruv) -> AckedPosition:
    """What the consumer of an agreement has acknowledged; `ruv`: the hub's, of its data set."""
    lacks = frozenset(lack(ruv, agreement.acked_ruv).starts) - {agreement.consumer}
    is_whole = not (agreement.is_full or agreement.scans)
    return AckedPosition(agreement.acked_covers, lacks, is_whole)


def committed_points(
    state: HubState,
    open_ms: Mapping[int, int | None],
    clock_ms: int,
    dataset_of: Callable[[int], str],
    first_ms: Mapping[int, int] = _NONE,
) -> CommittedPoints:
    """What the state of a hub says; `dataset_of`: a consumer's data set."""
    present = {rid: one for rid, one in state.replicas.items() if not one.is_retired}
    heard = [one for one in state.agreements.values() if one.has_position and not one.is_retired]
    return CommittedPoints(
        clock_ms,
        state.hub_epoch,
        complete_times(present, open_ms, clock_ms),
        frozenset(present),
        {
            one.consumer: acked_position(one, state.ruv_of(dataset_of(one.consumer)))
            for one in heard
        },
        first_ms,
    )


@dataclass(frozen=True, slots=True)
class Delays:
    """The delay of each pair of origin and consumer, and how far the origins were at hub epochs.

    Bounded: a value of each pair, and MARKS_MAX marks. `ended`: of days that are over and not
    written yet. `written_ms`: the hub's clock when the delays were last written; 0: never.
    """

    pairs: Mapping[Pair, DayDelay] = field(default_factory=dict)
    marks: tuple[CompleteMark, ...] = ()
    ended: tuple[DayDelay, ...] = ()
    written_ms: int = 0

    def after(self, points: CommittedPoints) -> "Delays":
        """The delays with what is known now; of consumers and origins that are gone, nothing."""
        marks, clock_ms = _marked(self.marks, points), points.clock_ms
        newest = marks[-1].times_ms
        origins = [one for one in newest if one in points.origins]
        pairs, ended = dict[Pair, DayDelay](), list(self.ended)
        for consumer, acked in points.consumers.items():
            behind = _behind(marks, acked)
            for pair in ((origin, consumer) for origin in origins if origin != consumer):
                origin, known = pair[0], self.pairs.get(pair)
                is_lacking = not acked.has_all_of(origin)
                complete_ms = behind.get(origin) if is_lacking else newest[origin]
                if known is not None:
                    over, pairs[pair] = _counted(
                        known, complete_ms, acked, clock_ms, is_lacking=is_lacking
                    )
                    if over is not None:
                        ended.append(over)
                elif complete_ms is not None:
                    pairs[pair] = _first_known(
                        pair, complete_ms, acked, clock_ms, is_lacking=is_lacking
                    )
        return Delays(pairs, marks, tuple(ended), self.written_ms)

    def starting(self, points: CommittedPoints) -> "Delays":
        """The delays of a hub that starts, or of who reads them, by the positions of the commit."""
        pairs = {
            (origin, consumer): replace(one, is_lacking=not acked.has_all_of(origin))
            for (origin, consumer), one in self.pairs.items()
            if (acked := points.consumers.get(consumer)) is not None
        }
        return replace(self, pairs=pairs, marks=_marked(self.marks, points))

    def to_write(self, clock_ms: int) -> tuple[DayDelay, ...]:
        """Those to be written with a batch: of days that are over, and once a minute of today."""
        is_new = self.written_ms > 0 and 0 <= clock_ms - self.written_ms < MINUTE_MS
        is_due = bool(self.ended) or not is_new
        return (*self.ended, *self.pairs.values()) if is_due else ()

    def written(self, clock_ms: int) -> "Delays":
        """The delays once those of `to_write` are written."""
        return replace(self, ended=(), written_ms=clock_ms) if self.to_write(clock_ms) else self


def _marked(marks: tuple[CompleteMark, ...], points: CommittedPoints) -> tuple[CompleteMark, ...]:
    """The marks with how far the origins are now.

    What an origin wrote before its first change of a new hub epoch is in those before.
    """
    last = marks[-1] if marks else CompleteMark(points.hub_epoch, {})
    now = points.complete_ms
    if points.hub_epoch == last.hub_epoch:
        return (*marks[:-1], CompleteMark(last.hub_epoch, _later(last.times_ms, now)))
    first = points.first_ms
    before = {one: min(ms, first[one] - 1) if one in first else ms for one, ms in now.items()}
    closed = CompleteMark(last.hub_epoch, _later(last.times_ms, before))
    found = (*marks[:-1], closed, CompleteMark(points.hub_epoch, _later(closed.times_ms, now)))
    if len(found) <= MARKS_MAX:
        return found
    half = MARKS_MAX // 2
    return (*found[:half:2], *found[half:])


def _later(times_ms: Mapping[int, int], now: Mapping[int, int]) -> dict[int, int]:
    return {**times_ms, **{rid: max(ms, times_ms.get(rid, 0)) for rid, ms in now.items()}}


def _behind(marks: tuple[CompleteMark, ...], acked: AckedPosition) -> Mapping[int, int]:
    """Origin -> up to when a consumer has everything of it, by the hub epoch that it acked."""
    there = bisect_right(marks, acked.covers, key=lambda one: one.hub_epoch)
    return marks[there - 1].times_ms if acked.is_whole and there else _NONE


def _first_known(
    pair: Pair, complete_ms: int, acked: AckedPosition, clock_ms: int, *, is_lacking: bool
) -> DayDelay:
    """The delay of a pair of which nothing was known before."""
    delay_ms = max(0, clock_ms - complete_ms)
    return DayDelay(
        *pair,
        day_of(clock_ms),
        complete_to_ms=complete_ms,
        covers=acked.covers,
        known_since_ms=clock_ms,
        at_ms=clock_ms,
        last_ms=delay_ms,
        worst_ms=delay_ms,
        is_lacking=is_lacking,
    )


def _counted(
    before: DayDelay,
    complete_ms: int | None,
    acked: AckedPosition,
    clock_ms: int,
    *,
    is_lacking: bool,
) -> tuple[DayDelay | None, DayDelay]:
    """The pair with the time since the last look counted: its day that is over, if one is, and now.

    `complete_ms`: up to when all is there by the consumer's position alone; None: not known by it.
    What was lacking came just now, so until now nothing was there behind the point before. One
    delay is made and not one for each step, for there is one of each pair in every batch.
    """
    is_known = acked.is_whole and acked.covers >= before.covers
    point = before.complete_to_ms, before.covers, before.known_since_ms
    if complete_ms is not None and not (is_known and complete_ms <= before.complete_to_ms):
        point, is_known = (complete_ms, acked.covers, clock_ms), True
    from_ms = before.complete_to_ms if before.is_lacking else point[0]
    over, today, day = None, before, day_of(clock_ms)
    if day > before.day:
        over, today = before.until((before.day + 1) * DAY_MS, from_ms), before.of_day(day)
    at_ms = max(clock_ms, today.at_ms)
    return over, DayDelay(
        before.origin,
        before.consumer,
        today.day,
        *point,
        at_ms,
        max(0, clock_ms - point[0]),
        *today.counted(at_ms, from_ms),
        is_lacking,
        is_known,
    )
