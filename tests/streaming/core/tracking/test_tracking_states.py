"""The states of an agreement, and how an outage starts and a resync goes on after a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.tracking.entry import HubPosition
from streaming.core.tracking.meta import (
    OutageStart,
    RestartStep,
    ResyncMode,
    TrackingMeta,
    after_restart,
    after_tracking_failed,
    outage_start,
)
from streaming.core.tracking.states import TrackingEvent, TrackingState, event_between, moved

metas = st.builds(
    TrackingMeta,
    st.none() | st.builds(HubPosition, st.integers(1, 9)),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


@pytest.mark.parametrize("before", list(TrackingState))
@pytest.mark.parametrize("event", list(TrackingEvent))
def test_a_move_and_its_event_say_the_same(before: TrackingState, event: TrackingEvent) -> None:
    """Both ways to ask are of one table."""
    after = moved(before, event)

    assert after is None or event_between(before, after) is event
    assert [to for to in TrackingState if event_between(before, to) is event] == (
        [] if after is None else [after]
    )


def test_nobody_is_in_sync_without_a_resync() -> None:
    """And whoever is lost in one is tracked again."""
    away = TrackingState.CHANGE_TRACKING

    assert [s for s in TrackingState if event_between(s, TrackingState.IN_SYNC)] == [
        TrackingState.RESYNC
    ]
    assert all(
        moved(state, TrackingEvent.CONSUMER_LOST) is away
        for state in TrackingState
        if state != away
    )


def test_only_a_consumer_in_sync_may_fill_others() -> None:
    """In any other state rows may be missing there."""
    assert [state for state in TrackingState if state.is_complete] == [TrackingState.IN_SYNC]


@given(metas)
def test_what_was_tracked_is_dropped_only_when_it_is_not_needed(last: TrackingMeta) -> None:
    """After a finished resync, or where everything will be copied."""
    start = outage_start(last)

    assert start.keeps_logs or last.is_finished or start.next_resync is ResyncMode.FULL
    assert start.tracks == (start.next_resync is ResyncMode.INCREMENTAL)
    assert outage_start(start.meta) is (
        OutageStart.FULL_AGAIN if start is OutageStart.FULL_AGAIN else OutageStart.ADD_UP
    )


def test_outages_add_up_until_a_resync_is_over() -> None:
    """Tracking, resync, away again, and again: nothing is dropped before the last page."""
    meta = TrackingMeta()
    for _ in range(3):
        start = outage_start(meta)
        assert start is OutageStart.ADD_UP
        meta = start.meta.marked()

    assert outage_start(meta.finished()) is OutageStart.ANEW


def test_a_full_copy_is_flagged_until_the_tables_are_marked() -> None:
    """Behind that each table knows by itself that it is not finished."""
    failed = after_tracking_failed()

    assert failed.next_resync is ResyncMode.FULL
    assert outage_start(failed.meta) is OutageStart.FULL_AGAIN
    assert outage_start(failed.meta.marked()) is OutageStart.ADD_UP


@given(metas)
def test_a_hub_that_died_in_a_resync_goes_on_or_marks_again(meta: TrackingMeta) -> None:
    """It goes on only from tables that are marked up to a known end."""
    restart = after_restart(meta)

    goes_on = meta.is_marked and meta.end is not None
    assert (restart.state is TrackingState.RESYNC) == goes_on
    assert (RestartStep.MARK_AGAIN in restart.steps) == (not goes_on)
    assert RestartStep.FINISH_BATCH in restart.steps
    assert (RestartStep.TRACK_FROM_ACKED in restart.steps) == (not goes_on and not meta.is_full)
