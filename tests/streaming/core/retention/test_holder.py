"""Who is named as the holder of the purge."""

from dataclasses import replace

import pytest

from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.retention.hold import purge_limit
from streaming.core.retention.holder import (
    KEPT_KEYS_MAX,
    HolderKind,
    PurgeHolder,
    agreements_need,
    holder_of,
    quarantine_needs,
)
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.held_back import HeldBack
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.resync import CoveredPosition, Resync
from tests.streaming.core.retention.test_hold import AWAY, HOUR_MS, LIVE, state_of

OLD_BEFORE_MS = 10 * HOUR_MS
PIN = PurgeHolder(HolderKind.PIN, "audit", 5, 2 * HOUR_MS)


def held_by(state: HubState, *others: PurgeHolder) -> PurgeHolder | None:
    """Who holds the purge at hour 20; hub epoch n was committed at hour n."""
    needs = agreements_need(state, 20 * HOUR_MS, 12 * HOUR_MS, lambda after: (after + 1) * HOUR_MS)
    return holder_of([*needs, *others], state, OLD_BEFORE_MS)


BEHIND = replace(LIVE, acked_covers=4)


@pytest.mark.parametrize(
    ("agreement", "changed", "kind"),
    [
        (BEHIND, {}, HolderKind.AGREEMENT),
        (
            replace(AWAY, acked_covers=4),
            {"away_since": {"hub-to-b": 9 * HOUR_MS}},
            HolderKind.AWAY,
        ),
        (BEHIND, {"held_back": {"hub-to-b": HeldBack(4, 5 * HOUR_MS)}}, HolderKind.DELAYED),
        (
            replace(
                LIVE,
                status=AgreementStatus.RESYNC,
                resync=Resync(9, CoveredPosition(4, NOTHING_KNOWN), 0),
            ),
            {},
            HolderKind.RESYNC,
        ),
    ],
)
def test_an_agreement_is_named_with_why_its_consumer_needs_it(
    agreement: AgreementState, changed: dict[str, object], kind: HolderKind
) -> None:
    """It has held since the first hub epoch that it lacks was committed."""
    state = state_of(agreement, **changed)

    found = held_by(state)

    assert found == PurgeHolder(kind, "hub-to-b", 4, 5 * HOUR_MS)
    assert found.hub_epoch == purge_limit(state, 20 * HOUR_MS, 12 * HOUR_MS)


@pytest.mark.parametrize(
    "agreement", [LIVE.away(AwayReason.ELSEWHERE, 0), AgreementState("hub-to-b", 2)]
)
def test_who_gets_a_full_copy_holds_nothing(agreement: AgreementState) -> None:
    """So it is not named either."""
    assert held_by(state_of(agreement)) is None


def test_who_needs_the_oldest_is_named() -> None:
    """What others need stays with it."""
    state = state_of(replace(LIVE, acked_covers=6), replace(BEHIND, name="hub-to-c"))
    transaction = PurgeHolder(HolderKind.TRANSACTION, "csn", 3, HOUR_MS)

    assert held_by(state, PIN) == PurgeHolder(HolderKind.AGREEMENT, "hub-to-c", 4, 5 * HOUR_MS)
    assert held_by(state, PIN, transaction) == transaction
    assert held_by(state_of(LIVE), PIN) == PIN


@pytest.mark.parametrize(
    "need",
    [
        replace(PIN, hub_epoch=9),
        replace(PIN, since_ms=OLD_BEFORE_MS + 1),
    ],
)
def test_it_is_the_age_where_nobody_needs_what_is_old(need: PurgeHolder) -> None:
    """What is needed is not there yet, or stays anyway."""
    assert held_by(state_of(), need) is None


def test_unknown_times_are_old() -> None:
    """Who says that nobody holds the purge must know."""
    unknown = replace(PIN, since_ms=None)

    assert held_by(state_of(), unknown) == unknown


@pytest.mark.parametrize(("keys", "holds"), [(KEPT_KEYS_MAX, False), (KEPT_KEYS_MAX + 1, True)])
def test_too_many_rows_in_quarantine_come_before_everything(keys: int, *, holds: bool) -> None:
    """Nothing is purged then."""
    state = state_of(BEHIND)

    found = held_by(state, *quarantine_needs(keys, state))

    assert found is not None
    assert (found.kind is HolderKind.QUARANTINE) is holds
