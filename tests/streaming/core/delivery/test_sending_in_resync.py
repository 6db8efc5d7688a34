"""What an agreement is sent while it is away and in a resync: its position stays held."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.batch.sending import PAGE, RangeRefresh, Refresh, SendPlan, plan, wants_batch
from streaming.core.model.change import Op
from streaming.core.model.row import RowState
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Item, ItemType, RangeItem
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.progress import Piece, ResyncMode, WorkKind, begin
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import CoveredPosition, Resync, UnackedPage
from tests.harness.builders import csn
from tests.reference.sending import is_for, items_of, tracked
from tests.streaming.core.delivery.test_sending import (
    INTERVAL_MS,
    in_step,
    judged,
    planned,
    ruv_at,
    view,
)

END, LAST_PAGE = 10, 13
HELD = CoveredPosition(4, ruv_at(4))
RANGE = KeyRange("t", None, '{"k":"k"}')
RESYNC, IN_SYNC = AgreementStatus.RESYNC, AgreementStatus.IN_SYNC
CATCHING_UP = AgreementStatus.CATCHING_UP


def resyncing(scanned: int, last_page: int = 0) -> AgreementState:
    """An agreement in a resync that was sent everything from its end up to this hub epoch."""
    return replace(
        in_step(4),
        status=RESYNC,
        sent_epoch=scanned,
        sent_covers=HELD.covers,
        sent_ruv=ruv_at(scanned),
        scanned=scanned,
        published=9,
        resync=Resync(END, HELD, 1, None, last_page=last_page),
    )


# -- in a resync -------------------------------------------------------------------------------


def test_a_live_batch_in_a_resync_tells_the_held_position() -> None:
    """A row that a page is still to bring may be older than it.

    See docs/traps.md, A live batch in a resync raises covers.
    """
    after, to_send, _ = planned(resyncing(10), view(10, 11))

    assert to_send is not None
    assert (to_send.after, to_send.to, to_send.prev, to_send.position) == (10, 11, 10, HELD)
    assert to_send.known == ruv_at(10)
    assert (after.status, after.sent_epoch, after.scanned) == (RESYNC, 11, 11)
    assert (after.sent_covers, after.published, after.sent_ruv) == (4, 9, ruv_at(11))


def test_the_last_page_tells_its_own_hub_epoch() -> None:
    """From there on the agreement is like any other; it keeps the resync until that is acked."""
    after, to_send, _ = planned(resyncing(12, LAST_PAGE), view(12, 13))

    assert to_send is not None
    assert to_send.position == CoveredPosition(13, ruv_at(13))
    assert (after.status, after.sent_covers, after.published) == (IN_SYNC, 13, 13)
    assert after.resync is not None


@pytest.mark.parametrize("nudged", [False, True])
def test_what_is_held_is_not_moved_by_an_empty_batch(*, nudged: bool) -> None:
    """Not even when somebody waits; hub epochs with nothing for it are passed over."""
    after = planned(resyncing(10), view(10, 11, 99_999, nudged=nudged), has_items=False)

    assert after == SendPlan(replace(resyncing(10), scanned=11))
    assert not wants_batch(after.agreement, 11, 99_999, INTERVAL_MS, nudged=nudged)


def test_the_end_of_a_resync_is_passed_on_by_an_empty_batch_when_it_lags() -> None:
    """Behind its last page it is told its covers like any other."""
    over = replace(resyncing(13, LAST_PAGE), status=IN_SYNC, sent_covers=13)

    after = planned(over, view(13, 14, 99_999), has_items=False)

    assert after.to_send is not None
    assert after.to_send.position == CoveredPosition(14, ruv_at(14))
    assert wants_batch(over, 14, 99_999, INTERVAL_MS, nudged=False)


@pytest.mark.parametrize(
    ("entries", "to", "position", "status"),
    [
        pytest.param(1, 12, HELD, RESYNC, id="up to before the last page"),
        pytest.param(0, 15, CoveredPosition(15, ruv_at(15)), IN_SYNC, id="beyond it"),
    ],
)
def test_a_page_of_the_changelog_within_a_resync_holds_until_the_last_page(
    entries: int, to: int, position: CoveredPosition, status: AgreementStatus
) -> None:
    """Behind a hello that reached part of it, what was sent of the resync is sent again."""
    after = planned(resyncing(10, LAST_PAGE), view(14, 15, entries=entries))

    assert after.to_send is not None
    assert (after.to_send.to, after.to_send.position) == (to, position)
    assert after.agreement.status is status


def test_the_ranges_of_a_batch_are_sent_with_it() -> None:
    """They are in no log, so only the batch that read them can publish them."""
    after = plan(
        resyncing(10),
        view(10, 11),
        DEFAULT_DATASET,
        has_items=True,
        page_items=2,
        covers_interval_ms=INTERVAL_MS,
        ranges=(RANGE,),
    )

    assert after.to_send is not None
    assert after.to_send.ranges == (RANGE,)


@given(st.lists(st.tuples(st.integers(0, 2), st.booleans()), max_size=12), st.integers(11, 20))
def test_covers_moves_with_the_last_page_and_not_before(
    batches: list[tuple[int, bool]], last_page: int
) -> None:
    """Whatever is live in between; RUV and covers move together, and never back."""
    agreement, hub_epoch, said = resyncing(10), 10, [HELD]
    for rise, has_items in batches:
        previous, hub_epoch = hub_epoch, hub_epoch + rise
        resync = agreement.resync
        assert resync is not None
        is_page = hub_epoch >= last_page and not resync.last_page
        if is_page:
            agreement = replace(agreement, resync=replace(resync, last_page=hub_epoch))
        seen = view(previous, hub_epoch)
        agreement, to_send, _ = planned(agreement, seen, has_items=has_items or is_page)
        said += [to_send.position] if to_send is not None else []

    resync = agreement.resync
    assert resync is not None
    is_over = resync.last_page > 0
    assert [one.covers for one in said] == sorted(one.covers for one in said)
    assert all(one == HELD or one.covers >= resync.last_page > 0 for one in said)
    assert (said[-1] != HELD) is is_over
    assert agreement.status is (IN_SYNC if is_over else RESYNC)


# -- away ------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", AwayReason)
def test_who_is_away_is_sent_nothing(why: AwayReason) -> None:
    """What it lacks is in the changelog, behind what it acknowledged."""
    away = in_step(4).away(why, 9_000)

    assert planned(away, view(4, 5)) == SendPlan(away)
    assert not wants_batch(away, 5, 99_999, INTERVAL_MS, nudged=True)


def test_who_goes_away_in_a_resync_gives_it_up_and_keeps_what_was_ordered() -> None:
    """No page counts as delivered; a full copy that was not finished is begun again."""
    in_full = replace(resyncing(11), is_full=True, scans=frozenset("t"), behind_ms=1)

    away = in_full.away(AwayReason.SILENT, 9_000)

    assert away.status_text == "change_tracking: silent"
    assert (away.resync, away.behind_ms, away.is_full, away.scans) == (
        None,
        0,
        True,
        frozenset("t"),
    )
    assert (away.acked_covers, away.published) == (in_full.acked_covers, 9)


def test_a_resync_that_stopped_at_a_refused_row_goes_on() -> None:
    """And one whose last page was sent catches up."""
    assert resyncing(11).refused("t").resumed() == resyncing(11)
    assert resyncing(13, LAST_PAGE).refused("t").resumed().status is CATCHING_UP


# -- a hub that publishes its last batch again -------------------------------------------------


def test_a_batch_that_is_published_again_is_without_its_ranges() -> None:
    """The next pages read them anew; a consumer that has them skips the repeat.

    See docs/traps.md, A range that nobody can publish again.
    """
    scan = begin(ResyncMode.INCREMENTAL, 1, [Piece("t", WorkKind.SCAN, 3)])
    finished = scan.page_sent("t", 3, None, is_last=True)
    unacked = (UnackedPage(13, tuple(scan.accounts.values())),)
    sent = resyncing(13, LAST_PAGE)
    resync = Resync(END, HELD, 1, finished, unacked, LAST_PAGE)
    sent = replace(sent, status=IN_SYNC, sent_covers=13, published=13, resync=resync)
    to_send = planned(resyncing(12, LAST_PAGE), view(12, 13)).to_send
    assert to_send is not None
    with_range = replace(to_send, ranges=(RANGE,))
    state = HubState(1, "g", hub_epoch=13, agreements={"a2": sent}, to_send={"a2": with_range})

    again = state.without_ranges()

    assert again.to_send == {"a2": replace(to_send, position=HELD)}
    agreement = again.agreements["a2"]
    assert agreement == replace(sent, status=RESYNC, resync=Resync(END, HELD, 1, scan))
    assert agreement.is_held(13)
    assert (agreement.sent_covers, agreement.published) == (13, 13)  # an applied of it is believed


def test_a_batch_without_ranges_is_published_again_as_it_was() -> None:
    """Pages of tracked rows are in the changelog."""
    after, to_send, _ = planned(resyncing(12, LAST_PAGE), view(12, 13))
    assert to_send is not None
    state = HubState(1, "g", hub_epoch=13, agreements={"a2": after}, to_send={"a2": to_send})

    assert state.without_ranges() == state


# -- entries ---------------------------------------------------------------------------------

WINNER = RowState(1, 3, csn(5, 1), exists=True, image="{}")


def test_a_range_is_for_its_receiver_alone() -> None:
    """Whatever its RUV and its tables are, like a refresh."""
    one = RangeRefresh(2, RANGE)

    assert is_for(one, 2, (), ruv_at(9))
    assert not is_for(one, 1, {"t"}, NOTHING_KNOWN)


def test_the_rows_of_a_range_follow_it() -> None:
    """As refreshes, each of which says whose change the row holds."""
    one = RangeRefresh(2, RANGE, (('{"k":"a"}', WINNER), ('{"k":"b"}', WINNER)))

    ahead, first, second = items_of(one)

    assert ahead == RangeItem("t", None, '{"k":"k"}', 2)
    assert first == Item(
        ItemType.REFRESH, "t", '{"k":"a"}', Op.UPDATE, "{}", csn(5, 1), 1, None, PAGE
    )
    assert second == replace(first, key='{"k":"b"}')
    assert items_of(RangeRefresh(2, KeyRange("t"))) == (RangeItem("t", None, None, 0),)


def test_a_row_is_tracked_at_the_version_that_was_sent() -> None:
    """A refresh has that of its row, which may be older than itself; a range tracks nothing.

    A page that compared hub epochs of refreshes would take their rows for inconsistent.
    """
    key = ("t", '{"k":"k"}')
    refresh = Refresh(2, *key, WINNER, "late")
    other = Refresh(2, "hidden", key[1], WINNER, "late")

    def lacking(*entries: tuple[int, object]) -> dict[tuple[str, str], int]:
        return tracked(entries, 2, {"t"}, NOTHING_KNOWN)  # type: ignore[arg-type]

    assert lacking((7, refresh)) == {key: 3}
    assert lacking((7, judged())) == {key: 7}
    assert lacking((7, judged()), (9, refresh)) == {key: 7}
    assert lacking((7, other), (8, RangeRefresh(2, RANGE))) == {("hidden", key[1]): 3}
    assert lacking((7, judged(rid=2)), (8, refresh._replace(to=1))) == {}
