"""Claims about a delayed agreement: nothing of it is early, nothing is left out, nothing spins."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.batch.sending import (
    DUE_EPOCHS,
    EpochMark,
    SendingView,
    SendPlan,
    plan_due,
    wants_due_batch,
)
from streaming.core.delivery.due import (
    DueLimit,
    HeldReason,
    WaitingEpochs,
    due_limit,
    waiting_epochs,
    without_early_rows,
)
from streaming.core.model.ruv import NOTHING_KNOWN, Element, Ruv
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.held_back import HeldBack
from streaming.core.state.sending_times import AT_ONCE, SendingTimes, parse_hours
from streaming.core.tracking.resync import CoveredPosition
from tests.harness.builders import csn

DELAY_MS = 10_000
DELAYED = SendingTimes(DELAY_MS)
INTERVAL_MS = 1_000
IN_SYNC, CATCHING_UP = AgreementStatus.IN_SYNC, AgreementStatus.CATCHING_UP
AT_0 = AgreementState("a2", 2, IN_SYNC, session="2-1")
HELD = CoveredPosition(1, NOTHING_KNOWN)


def ruv_at(hub_epoch: int) -> Ruv:
    """The RUV after this hub epoch."""
    return Ruv("g", {1: Element(csn(1, 1), csn(hub_epoch, 1))})


def planned(
    agreement: AgreementState,
    committed_ms: list[int],
    clock_ms: int,
    held: HeldBack | None = None,
    *,
    page_items: int = 100,
    is_new: bool = False,
    nudged: bool = False,
) -> SendPlan:
    """What a batch at this time plans; hub epochs 1, 2, 3... were committed then.

    `is_new`: the last of them is the batch's own.
    """
    limit = due_limit(agreement, DELAYED, held, clock_ms)
    assert limit is not None

    def marks(after: int, to: int) -> list[EpochMark]:
        return [
            EpochMark(number, 1, {DEFAULT_DATASET: ruv_at(number)}, at_ms)
            for number, at_ms in enumerate(committed_ms, 1)
            if after < number <= to
        ]

    last = len(committed_ms)
    view = SendingView(last - is_new, last, {}, clock_ms, nudged, marks)
    return plan_due(
        agreement,
        view,
        DEFAULT_DATASET,
        limit,
        held,
        page_items=page_items,
        covers_interval_ms=INTERVAL_MS,
    )


def test_a_hub_epoch_is_sent_when_its_commit_is_as_old_as_the_delay() -> None:
    """Not a moment before; what comes next is known, so nobody looks again until then."""
    early, early_range, held = planned(AT_0, [1_000, 5_000], 10_999)
    sent, to_send, behind = planned(AT_0, [1_000, 5_000], 11_000, held)

    assert (early_range, held, early.status) == (None, HeldBack(0, 1_000), IN_SYNC)
    assert to_send is not None
    assert (to_send.after, to_send.to, to_send.position) == (0, 1, CoveredPosition(1, ruv_at(1)))
    assert (sent.scanned, sent.status, behind) == (1, IN_SYNC, HeldBack(1, 5_000))


def test_its_own_hub_epoch_of_a_batch_waits() -> None:
    """It is committed now; of the log nothing has to be read to know that."""
    found = planned(AT_0, [7_000], 7_000, is_new=True)

    assert found == SendPlan(AT_0, None, HeldBack(0, 7_000))


def test_nothing_waits_where_all_is_sent() -> None:
    """Else every batch of heartbeats would leave something new."""
    level = replace(AT_0, sent_epoch=2, sent_covers=2, scanned=2)

    assert planned(level, [1, 2], 99_000) == SendPlan(level)
    assert not wants_due_batch(level, 2, 99_000, 0, _limit(level, 99_000), None)


def test_covers_that_lags_is_moved_though_something_waits() -> None:
    """A hub that was restored asks for a hello so; the range holds nothing that waits."""
    lagging = replace(AT_0, sent_epoch=3, sent_covers=3, scanned=4)

    sent, to_send, _ = planned(lagging, [1, 2, 3, 4, 5_000], 5_000, is_new=True)

    assert to_send is not None
    assert (to_send.after, to_send.to, to_send.prev) == (4, 4, 3)
    assert to_send.position == CoveredPosition(4, ruv_at(4))
    assert (sent.sent_covers, sent.status) == (4, IN_SYNC)
    assert wants_due_batch(lagging, 4, 5_000, INTERVAL_MS, _limit(lagging, 5_000), None)


def test_what_an_operator_releases_goes_at_once_and_once() -> None:
    """All that was committed then; the next hub epoch waits again."""
    released = HeldBack(0, 1_000, released=2)

    sent, to_send, held = planned(AT_0, [1_000, 2_000, 3_000], 3_500, released)

    assert to_send is not None
    assert (to_send.to, sent.status, held) == (2, IN_SYNC, HeldBack(2, 3_000))


def test_what_is_due_goes_page_by_page() -> None:
    """As to a consumer that is behind; it is not level before the last page."""
    sent, to_send, held = planned(AT_0, [1, 2, 3, 90_000], 90_000, page_items=2)

    assert to_send is not None
    assert (to_send.to, sent.status, held) == (2, CATCHING_UP, HeldBack(2, 3))


def test_pages_keep_a_distance_unless_somebody_waits() -> None:
    """Each hub epoch of a busy hub becomes due by itself; the consumer gets them together."""
    sent = replace(AT_0, sent_covers=1, scanned=1, sent_ms=20_000)

    assert planned(sent, [1, 2], 20_999).to_send is None
    assert planned(sent, [1, 2], 21_000).to_send is not None
    assert planned(sent, [1, 2], 20_001, nudged=True).to_send is not None


def test_more_than_is_looked_at_is_looked_at_again() -> None:
    """Nobody knows yet when the hub epoch behind the page was committed."""
    committed_ms = [1] * (DUE_EPOCHS + 1)

    sent, _, held = planned(AT_0, committed_ms, 20_000, page_items=10_000)

    assert (sent.scanned, sent.status, held) == (DUE_EPOCHS, CATCHING_UP, HeldBack(DUE_EPOCHS, 0))
    assert wants_due_batch(sent, DUE_EPOCHS + 1, 21_000, 0, _limit(sent, 21_000, held), held)


def _limit(agreement: AgreementState, clock_ms: int, held: HeldBack | None = None) -> DueLimit:
    limit = due_limit(agreement, DELAYED, held, clock_ms)
    assert limit is not None
    return limit


@given(
    st.lists(st.integers(0, 4_000), min_size=1, max_size=12),
    st.lists(st.integers(0, 6_000), min_size=1, max_size=40),
    st.integers(1, 4),
)
def test_nothing_is_early_and_nothing_is_left_out(
    gaps_ms: list[int], waits_ms: list[int], page_items: int
) -> None:
    """However batches fall: ranges follow one another, and end where the delay says.

    A batch without input is wanted exactly while something due is left.
    """
    committed_ms = [1_000 + sum(gaps_ms[: n + 1]) for n in range(len(gaps_ms))]
    agreement, held, clock_ms, last = AT_0, None, committed_ms[-1], len(gaps_ms)
    for wait_ms in waits_ms:
        clock_ms += wait_ms
        limit = _limit(agreement, clock_ms, held)
        is_wanted = wants_due_batch(agreement, last, clock_ms, 0, limit, held)
        before = agreement.scanned
        agreement, to_send, held = planned(
            agreement, committed_ms, clock_ms, held, page_items=page_items, nudged=True
        )
        is_due = before < last and committed_ms[before] + DELAY_MS <= clock_ms
        assert (to_send is not None) == is_due
        assert is_wanted or not is_due
        if to_send is not None:
            assert to_send.after == before
            assert committed_ms[to_send.to - 1] + DELAY_MS <= clock_ms
        waiting = waiting_epochs(agreement, DELAYED, held, clock_ms)
        if waiting is not None:
            first_ms = committed_ms[agreement.scanned]
            assert waiting == WaitingEpochs(
                agreement.scanned, first_ms + DELAY_MS, HeldReason.DELAY
            )


@pytest.mark.parametrize(
    ("agreement", "status", "detail"),
    [
        pytest.param(AT_0, CATCHING_UP, "", id="its log has all"),
        pytest.param(
            replace(AT_0, is_full=True),
            AgreementStatus.CHANGE_TRACKING,
            AwayReason.DELAYED,
            id="a full copy",
        ),
        pytest.param(
            replace(AT_0, scans=frozenset("t")),
            AgreementStatus.CHANGE_TRACKING,
            AwayReason.DELAYED,
            id="a copy of a table",
        ),
    ],
)
def test_no_resync_brings_rows_before_they_are_due(
    agreement: AgreementState, status: AgreementStatus, detail: str
) -> None:
    """Its pages hold rows as they stand (docs/traps.md, A resync brings the disaster early)."""
    begins = replace(agreement, acked_covers=3).resyncing(HELD, 5)

    held = without_early_rows(begins, DELAY_MS, 9, is_released=False)

    assert (held.status, held.detail, held.resync) == (status, detail, None)
    assert without_early_rows(begins, DELAY_MS, 9, is_released=True) == begins
    assert without_early_rows(begins, 0, 9, is_released=False) == begins
    assert without_early_rows(agreement, DELAY_MS, 9, is_released=False) == agreement


def test_beside_the_pages_of_a_copy_nothing_waits() -> None:
    """They hold rows as they stand, and what is sent beside them must not be older."""
    assert due_limit(AT_0.resyncing(HELD, 5), DELAYED, None, 0) is None
    assert due_limit(AT_0, AT_ONCE, None, 0) is None


def test_one_that_needs_a_copy_waits_for_an_operator() -> None:
    """Whatever it says."""
    held = AT_0.away(AwayReason.DELAYED, 1)

    assert held.awaits_release
    assert not held.comes_back(10**9, 1)


NIGHTS = SendingTimes(hours=parse_hours("22:00-06:00 Europe/Paris"))
NOON_MS, NIGHT_MS = 12 * 3_600_000, 23 * 3_600_000
"""Of the first day of 1970, UTC; Paris was an hour ahead."""


def test_outside_its_hours_nothing_is_sent() -> None:
    """Neither what is committed, nor an empty batch, nor anything beside the pages of a resync."""
    closed = due_limit(AT_0, NIGHTS, None, NOON_MS)
    in_resync = AT_0.resyncing(HELD, 5)

    assert closed is not None
    assert (closed.is_closed, closed.allows(1, 0)) == (True, False)
    assert due_limit(in_resync, NIGHTS, None, NOON_MS) == closed
    assert not wants_due_batch(in_resync, 9, NOON_MS, 0, closed, None)
    assert not wants_due_batch(replace(AT_0, scanned=9), 9, NOON_MS, 0, closed, None)
    assert due_limit(AT_0, NIGHTS, None, NIGHT_MS) is None


def test_what_is_let_go_is_sent_outside_its_hours() -> None:
    """An operator knows better, this time; the bytes a second hold all the same."""
    released = HeldBack(0, 5, released=3)
    closed = due_limit(AT_0, NIGHTS, released, NOON_MS)
    throttled = due_limit(AT_0, NIGHTS, released, NIGHT_MS, is_throttled=True)

    assert closed is not None
    assert throttled is not None
    assert (closed.allows(3, 5), closed.allows(4, 6), throttled.allows(3, 5)) == (
        True,
        False,
        False,
    )


def test_what_waits_for_its_hours_waits_until_they_begin() -> None:
    """Also if it becomes old enough before."""
    both = SendingTimes(DELAY_MS, NIGHTS.hours)
    opens_ms = 21 * 3_600_000

    assert waiting_epochs(AT_0, NIGHTS, HeldBack(0, 5), NOON_MS) == WaitingEpochs(
        0, opens_ms, HeldReason.HOURS
    )
    assert waiting_epochs(AT_0, both, HeldBack(0, NOON_MS), NOON_MS) == WaitingEpochs(
        0, opens_ms, HeldReason.DELAY
    )
    assert waiting_epochs(AT_0, NIGHTS, HeldBack(0, 5), NIGHT_MS) is None
