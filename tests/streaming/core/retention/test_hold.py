"""Who holds a purge back, and who no longer does."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from streaming.core.matrix.packets import PacketFeed
from streaming.core.model.row import Arrived
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import FOR_GOOD, AgreementStatus, AwayReason, ReplicaStatus
from streaming.core.retention.hold import (
    away_since,
    holds_purge,
    needed_after,
    purge_limit,
    reflected_by_all,
    tombstone_limit,
)
from streaming.core.retention.purge import Purge, with_retention
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.reflection import Session
from streaming.core.state.replica_state import ReplicaState
from streaming.core.tracking.resync import CoveredPosition
from tests.harness.builders import change, csn

HOUR_MS = 3_600_000
LIVE = AgreementState(
    "hub-to-b",
    2,
    AgreementStatus.IN_SYNC,
    session="s",
    sent_epoch=7,
    sent_covers=7,
    scanned=7,
    acked_covers=7,
)
AWAY = LIVE.away(AwayReason.SILENT, 0)


def state_of(*agreements: AgreementState, **changed: object) -> HubState:
    """A hub at hub epoch 9 with these agreements."""
    of = {one.name: one for one in agreements}
    return replace(HubState(1, "g", hub_epoch=9, agreements=of), **changed)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("agreement", "since_h", "is_held"),
    [
        (LIVE, None, True),
        (AWAY, 9, True),
        (AWAY, 10, False),
        (replace(LIVE, status=AgreementStatus.REFUSED), 9, True),
        (replace(LIVE, status=AgreementStatus.HUB_BEHIND), 10, False),
        (replace(LIVE, status=AgreementStatus.RETIRED, detail=FOR_GOOD), None, False),
        (LIVE.away(AwayReason.ELSEWHERE, 0), None, False),
        (replace(AWAY, is_full=True), 1, False),
        (AgreementState("hub-to-b", 2), 1, False),
        (AgreementState("hub-to-b", 2, feed=PacketFeed()), 9, True),
        (AgreementState("hub-to-b", 2, feed=PacketFeed()), 10, False),
    ],
)
def test_a_consumer_holds_what_it_lacks_until_it_is_away_for_too_long(
    agreement: AgreementState, since_h: int | None, *, is_held: bool
) -> None:
    """Whoever gets a full copy anyway holds nothing; the first packet may be days old."""
    since = {} if since_h is None else {"hub-to-b": 0}
    clock_ms = (since_h or 0) * HOUR_MS

    assert holds_purge(agreement, since, clock_ms, 10 * HOUR_MS) is is_held


def test_the_limit_is_the_smallest_that_somebody_needs() -> None:
    """A consumer in sync, one that is behind, and a change that waits."""
    behind = replace(LIVE, name="hub-to-c", consumer=3, acked_covers=5)
    arrived = Arrived(change(1), "c", "s", 0, 0, 3, 3)
    opened = OpenTransactions(changes={csn(1): arrived})

    alone = purge_limit(state_of(), 0, HOUR_MS)
    consumers = purge_limit(state_of(LIVE, behind), 0, HOUR_MS)
    waiting = purge_limit(state_of(LIVE, behind, open=opened), 0, HOUR_MS)

    assert (alone, consumers, waiting) == (9, 5, 3)


MRES = {1: 4, 2: 3}


def with_replicas(state: HubState, mres: Mapping[int, int]) -> HubState:
    """The state with replicas that have reflected so much."""
    replicas = {
        rid: ReplicaState(rid, sessions=(Session("s", 0, (0,), (mre,)),))
        for rid, mre in mres.items()
    }
    return replace(state, replicas=replicas)


def test_tombstones_stay_until_everybody_who_writes_has_seen_them() -> None:
    """Whoever is away for too long does not count, nor who is stopped; who is sent nothing does."""
    source = replace(LIVE, name="hub-to-a", consumer=1)
    both, silent = state_of(source, LIVE), state_of(source, AWAY, away_since={"hub-to-b": 0})
    opened = OpenTransactions(changes={csn(1): Arrived(change(1), "c", "s", 0, 0, 2, 2)})
    stopped = replace(
        ReplicaState(3, sessions=(Session("s", 0, (0,), (0,)),)), status=ReplicaStatus.RETIRED
    )
    retired = with_replicas(both, MRES)
    retired.replicas[3] = stopped

    limits = [
        tombstone_limit(one, HOUR_MS, HOUR_MS)
        for one in (
            with_replicas(both, MRES),
            with_replicas(silent, MRES),
            with_replicas(state_of(source), MRES),
            with_replicas(replace(both, open=opened), MRES),
            retired,
        )
    ]

    assert limits == [3, 4, 3, 2, 3]
    assert reflected_by_all(with_replicas(silent, MRES)) == 3


def test_a_resync_needs_what_its_consumer_had_at_its_beginning() -> None:
    """Its pages are what was written since, and are sent again after a crash."""
    begun = LIVE.resyncing(CoveredPosition(4, NOTHING_KNOWN), 0)

    assert needed_after(begun) == 4


def test_a_consumer_is_away_since_it_was_heard_last() -> None:
    """By the hub's clock; a packet of one that reads no topic begins the time anew."""
    fed = replace(AWAY, name="hub-to-c", feed=PacketFeed(), acked_ms=1)
    before = state_of(LIVE, fed, away_since={"hub-to-c": 5})

    silent = away_since(before, {"hub-to-b": AWAY, "hub-to-c": fed}, 20)
    heard = away_since(before, {"hub-to-b": LIVE, "hub-to-c": replace(fed, acked_ms=2)}, 20)

    assert silent == {"hub-to-b": 20, "hub-to-c": 5}
    assert heard == {"hub-to-c": 20}


def test_a_batch_that_brings_somebody_back_purges_nothing_that_he_needs() -> None:
    """The purge was looked for before the batch; its plan cannot know who comes."""
    purge = Purge(6, 3, {}, {})
    gone = state_of(replace(AWAY, acked_covers=5), away_since={"hub-to-b": 0})
    back = state_of(replace(LIVE, acked_covers=5))

    stays = with_retention(gone, gone, purge, HOUR_MS, HOUR_MS)
    comes = with_retention(gone, back, purge, HOUR_MS, HOUR_MS)

    assert (stays.purge_epoch, stays.purge_batch) == (6, 3)
    assert (comes.purge_epoch, comes.purge_batch) == (0, 0)


@pytest.mark.parametrize("status", [AgreementStatus.CATCHING_UP, AgreementStatus.CHANGE_TRACKING])
def test_a_consumer_below_the_purge_gets_a_full_copy(status: AgreementStatus) -> None:
    """At once if it is sent to; never over a gap."""
    agreement = replace(LIVE, status=status, detail="silent", acked_covers=5)

    found = agreement.below_purge(6, 0)

    assert found.is_full
    assert found.begins_resync is agreement.is_sent_to
    assert agreement.below_purge(5, 0) == agreement


def test_an_agreement_that_is_configured_again_below_the_purge_waits_for_its_consumer() -> None:
    """It would be sent what is left of the changelog."""
    retired = replace(LIVE, acked_covers=5).retired().below_purge(6, 0)

    assert retired.revived().status_text == "change_tracking: silent"
    assert LIVE.retired().revived().status is AgreementStatus.CATCHING_UP
