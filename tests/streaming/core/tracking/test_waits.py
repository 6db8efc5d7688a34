"""Each resync says what it waits for, and since when."""

from dataclasses import replace

import pytest

from streaming.core.delivery.waits import ResyncWait, prepares_rows, waiting_resync
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.state.agreement_state import AgreementState
from streaming.core.tracking.resync import CoveredPosition, Resync, UnackedPage

KNOWN = AgreementState(
    "to-b", 2, AgreementStatus.IN_SYNC, session="s", sent_ms=40, acked_ms=30, is_full=True
)
BEGUN = Resync(7, CoveredPosition(3, NOTHING_KNOWN), 50)
UNDER_WAY = replace(KNOWN, status=AgreementStatus.RESYNC, resync=BEGUN)
SENT = replace(UNDER_WAY, resync=replace(BEGUN, unacked=(UnackedPage(8, ()),)))
LAST = replace(KNOWN, resync=replace(BEGUN, last_page=9))


@pytest.mark.parametrize(
    ("agreement", "given", "what", "since_ms"),
    [
        (KNOWN, {"ordered_ms": 60}, ResyncWait.BATCH, 60),
        (KNOWN, {}, ResyncWait.BATCH, 30),
        (KNOWN.away(AwayReason.PAUSED, 45), {}, ResyncWait.OPERATOR, 45),
        (KNOWN.away(AwayReason.SILENT, 45), {}, ResyncWait.RECORD, 45),
        (KNOWN.away(AwayReason.UNWRITABLE, 45), {}, ResyncWait.TOPIC, 45),
        (replace(KNOWN, session=None), {}, ResyncWait.HELLO, 35),
        (UNDER_WAY, {"ended_ms": 70}, ResyncWait.AGENT, 70),
        (KNOWN.snapshot_begun(), {}, ResyncWait.SNAPSHOT, 30),
        (KNOWN.refused("t"), {}, ResyncWait.OPERATOR, 0),
        (UNDER_WAY, {}, ResyncWait.ROWS, 50),
        (replace(UNDER_WAY, acked_ms=80), {}, ResyncWait.ROWS, 80),
        (UNDER_WAY, {"has_turn": False}, ResyncWait.TURN, 50),
        (UNDER_WAY, {"is_open": False}, ResyncWait.HOURS, 0),
        (SENT, {"is_open": False}, ResyncWait.PAGES, 50),
        (SENT, {}, ResyncWait.PAGES, 50),
        (replace(SENT, behind_ms=90), {}, ResyncWait.PAGES, 90),
        (LAST, {}, ResyncWait.LAST_PAGE, 50),
    ],
)
def test_what_a_resync_waits_for(
    agreement: AgreementState, given: dict[str, int], what: ResyncWait, since_ms: int
) -> None:
    """The nearest cause first: an agent that has ended acknowledges no page."""
    known = {"ordered_ms": None, "ended_ms": None, "seen_ms": 35, "has_turn": True}

    found = waiting_resync(agreement, **{**known, **given})  # type: ignore[arg-type]

    assert (found.what, found.since_ms) == (what, since_ms)
    assert found.text


@pytest.mark.parametrize(
    ("agreement", "is_so"),
    [(UNDER_WAY, True), (SENT, False), (LAST, False), (replace(UNDER_WAY, session=None), False)],
)
def test_only_who_has_nothing_on_its_way_waits_for_rows(
    agreement: AgreementState, *, is_so: bool
) -> None:
    """The others take no thread of the hub's from who comes behind them."""
    assert prepares_rows(agreement) == is_so
