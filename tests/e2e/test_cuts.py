"""One input log, cut into micro-batches in different ways: only who wins a conflict may differ."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from random import Random

import pytest
from hypothesis import given

from streaming.core.batch.sending import Refresh
from streaming.core.conflict.judge import Judged
from streaming.core.model.change import Op, RowKey
from streaming.core.model.row import Arrived
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.record import Applied, Hello, Reason, ReceivedRecord
from tests.harness.examples import examples
from tests.model.hub import Plan, PureHub
from tests.model.replica import TABLE
from tests.model.storyteller import REORDERS, REUSES, Plot, Step, Storyteller, plots
from tests.model.world import topology

COMPARED = {7: (300, 50), 1_000: (30, 3), 1_000_000: (30, 3)}
"""Size of a cut -> of how many changes at least the fixed log can decide that their verdict must be
the same, and of how many rejected ones; a replica's words mean less, the larger the cut is."""

EVERYTHING = {**REORDERS, **REUSES}


@dataclass(frozen=True, slots=True)
class Log:
    """What reached the topics, in order of arrival, and the hub that the replicas spoke with."""

    told: Storyteller
    arrivals: Sequence[ReceivedRecord]
    hub: PureHub


def log_of(plot: Plot) -> Log:
    """The log of a story, told to its end."""
    told = Storyteller()
    for _ in told.run(plot):
        pass
    assert isinstance(told.world.hub, PureHub)
    return Log(told, told.world.hub.arrivals, told.world.hub)


def judged_up_to(hub: PureHub, epoch: int) -> frozenset[str]:
    """The hub state that an epoch means: everything that was judged by then."""
    return frozenset(
        entry.arrived.change.csn
        for h, entry in hub.by_epoch()
        if h <= epoch and isinstance(entry, Judged)
    )


@dataclass(slots=True)
class Rerun:
    """The log decided again by a hub that takes `size` records at a time, `copies` of each.

    The replicas speak of hub epochs of the first run; each is read as the last one of this run
    that means no more than it did.
    """

    log: Log
    size: int
    copies: int = 1
    hub: PureHub = field(init=False)
    meant: dict[int, frozenset[str]] = field(default_factory=dict)
    means: dict[int, frozenset[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Take the whole log."""
        world, first = self.log.told.world, self.log.hub
        self.hub = PureHub(topology(list(world.replicas.values()), page_items=1_000_000))
        self.meant = {h: judged_up_to(first, h) for h in range(first.hub_epoch() + 1)}
        for start in range(0, len(self.log.arrivals), self.size):
            self._take(self.log.arrivals[start : start + self.size])

    def _take(self, received: Sequence[ReceivedRecord]) -> None:
        """One micro-batch."""
        sent = {a.consumer: a.sent_covers for a in self.hub.state.agreements.values()}
        for record in received:
            one, topic = self._translated(record, sent), self.hub.topics[record.rid]
            for _ in range(self.copies):
                topic.append(replace(one, offset=len(topic)))
        ends = {rid: len(topic) for rid, topic in self.hub.topics.items()}
        self.hub.run(Plan(ends, received[-1].time_ms))
        epoch = self.hub.hub_epoch()
        self.means[epoch] = judged_up_to(self.hub, epoch)

    def _translated(self, received: ReceivedRecord, sent: dict[int, int]) -> ReceivedRecord:
        """The record with the hub epoch of this run that means what it speaks of."""
        match received.record:
            case Hello(covers=covers) as hello:
                epoch = self._epoch(covers, self._published_to(received.rid))
                sent[received.rid] = epoch
                known = replace(hello, covers=epoch, ruv=self._ruv(epoch), reached=epoch)
                return replace(received, record=known)
            case Applied(covers=covers) as applied:
                epoch = self._epoch(covers, sent[received.rid])
                seen = replace(applied, covers=epoch, ruv=self._ruv(epoch), reached=epoch)
                return replace(received, record=seen)
            case _:
                return received

    def _published_to(self, rid: int) -> int:
        """What a hello may claim to cover: a larger covers means that the hub was rolled back."""
        agreements = self.hub.state.agreements.values()
        return max((one.largest_published for one in agreements if one.consumer == rid), default=0)

    def _epoch(self, covers: int, limit: int) -> int:
        known = (e for e, means in self.means.items() if e <= limit and means <= self.meant[covers])
        return max(known, default=0)

    def _ruv(self, epoch: int) -> Ruv:
        marks = (mark for mark in self.hub.marks if mark.hub_epoch == epoch)
        return next((mark.ruvs[DEFAULT_DATASET] for mark in marks), Ruv())


def facts(hub: PureHub) -> dict[str, object]:
    """What no cut may change."""
    return {
        "eligible": sorted((one.csn, one.content) for one in hub.changelog()),
        "ruv": hub.ruv().text(),
        "quarantine": Counter(hub.quarantine()),
        "ended": hub.ended(),
        "repeats": hub.repeats,
    }


def histories(hub: PureHub) -> dict[RowKey, list[tuple[str, object, str]]]:
    """Of each row its changes in hub order: the CSN, what its replica knew, the verdict.

    A truncate is one of each row, and its verdict, which other rows decide, is known as a fact.
    """
    judged = [(epoch, one) for epoch, one in hub.by_epoch() if isinstance(one, Judged)]
    found = dict[RowKey, list[tuple[str, object, str]]]()
    for row in {one.arrived.change.row for _, one in judged} - {(TABLE.name, ALL_KEYS)}:
        changes = [one for one in judged if one[1].arrived.change.row in (row, (row[0], ALL_KEYS))]
        found[row] = [
            (one.arrived.change.csn, (_knew(hub, one.arrived, changes), _decided(one)), one.verdict)
            for _, one in changes
        ]
    return found


def _decided(one: Judged) -> str | None:
    """What other rows decided."""
    return one.verdict if one.arrived.change.op is Op.TRUNCATE else None


def _knew(hub: PureHub, arrived: Arrived, changes: Sequence[tuple[int, Judged]]) -> object:
    """Which changes of the row its replica had seen, and whether a repair was still on its way."""
    change = arrived.change
    seen = {one.arrived.change.csn for epoch, one in changes if epoch <= arrived.mre}
    blocked = any(
        epoch > arrived.mre
        for epoch, entry in hub.by_epoch()
        if isinstance(entry, Refresh)
        and entry.cause != "conflict"
        and (entry.to, entry.table, entry.key) == (change.rid, *change.row)
        and entry.behind < arrived.offset
    )
    own = (e for e, one in changes if _decided(one) and one.arrived.change.rid == change.rid)
    return seen, blocked, any(epoch > arrived.mre for epoch in own)


def same_verdicts(one: PureHub, other: PureHub) -> Counter[str]:
    """Check that verdicts agree while the replicas had seen the same; count both cases."""
    compared, others = Counter[str](), histories(other)
    for row, changes in histories(one).items():
        pairs = zip(changes, others[row], strict=True)
        for (csn, _, verdict), (_, _, verdict2) in takewhile(lambda p: p[0][:2] == p[1][:2], pairs):
            assert verdict == verdict2, f"{csn} is {verdict} or {verdict2}, with the same knowledge"
            compared[verdict] += 1
    return compared


@pytest.mark.more
@examples(is_fixed=True)
@given(plots(EVERYTHING))
def test_a_cut_changes_no_fact(plot: Plot) -> None:
    """Else a hub that was slow, or started again, would keep other things than a fast one."""
    log = log_of(plot)
    whole = Rerun(log, 1).hub

    for size in (2, 7, 1_000):
        again = Rerun(log, size).hub
        assert facts(again) == facts(whole)
        same_verdicts(whole, again)


@pytest.mark.more
@examples(is_fixed=True)
@given(plots(EVERYTHING))
def test_a_record_that_comes_twice_changes_nothing(plot: Plot) -> None:
    """Whatever became of it the first time (docs/traps.md, Duplicates and late changes)."""
    log = log_of(plot)

    once, twice = Rerun(log, 3).hub, Rerun(log, 3, copies=2).hub

    assert twice.changelog() == once.changelog()
    assert twice.rows() == once.rows()
    assert twice.ruv() == once.ruv()
    assert twice.ended() == once.ended()
    assert aside(twice) == aside(once)


def aside(hub: PureHub) -> list[tuple[int, str, str | None]]:
    """What is in quarantine but for its session, in order."""
    kept = [kept for kept in hub.kept if kept.reason is not Reason.SESSION]
    return [(one.rid, one.reason, one.content) for one in kept]


def fixed_log() -> Log:
    """A long story of everything that can happen, on many rows, always the same."""
    random = Random(20)
    actions, weights = list(EVERYTHING), list(EVERYTHING.values())
    replicas = ["r1", "r1", "r2", "r2", "r3"]
    steps: list[Step] = [
        (
            random.choices(actions, weights)[0],
            random.choice(replicas),
            f"k{random.randint(1, 40)}",
            random.randint(1, 4),
        )
        for _ in range(2_500)
    ]
    return log_of(Plot(steps))


@pytest.fixture(scope="module")
def log() -> Log:
    """The fixed log."""
    return fixed_log()


@pytest.fixture(scope="module")
def single(log: Log) -> PureHub:
    """The hub that read the fixed log record by record."""
    return Rerun(log, 1).hub


def test_the_fixed_log_has_something_of_everything(log: Log) -> None:
    """A tame log would prove nothing."""
    assert len(log.arrivals) > 1_000
    assert {kept.reason for kept in log.hub.quarantine()} >= {"late", "reused", "ended", "session"}
    assert len(log.hub.conflicts()) > 50


@pytest.mark.parametrize("size", COMPARED)
def test_the_fixed_log_means_the_same_however_it_is_cut(
    log: Log, single: PureHub, size: int
) -> None:
    """Micro-batches of 1, of 7, of 1,000, or one of all; enough of it can be held together."""
    cut = Rerun(log, size).hub

    assert facts(cut) == facts(single)
    compared, (least, least_rejected) = same_verdicts(single, cut), COMPARED[size]
    assert compared.total() >= least
    assert compared["rejected"] >= least_rejected
