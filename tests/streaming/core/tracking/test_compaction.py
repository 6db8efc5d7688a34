"""Compaction keeps the newest change of each row, wherever the hub dies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.errors import StateError
from streaming.core.tracking.entry import (
    HubPosition,
    TrackedRow,
    changed_rows,
    count_rows,
    newest,
)
from streaming.core.tracking.logs import (
    CompactionStep,
    FrozenLog,
    TrackingLogs,
    after_crash,
    after_step,
    background_round,
    compacted,
    discard_behind,
    full_round,
    is_due,
)
from tests.harness.examples import examples
from tests.streaming.core.tracking.rows_while_away import logs_of_rows, positions, tracked_rows

logs = st.builds(
    TrackingLogs,
    logs_of_rows,
    st.none() | st.builds(FrozenLog, logs_of_rows, st.none() | positions),
    st.none() | logs_of_rows,
)
Rows = set[TrackedRow]


def cut_off(before: TrackingLogs, after: TrackingLogs, kept: int) -> TrackingLogs:
    """The logs if WRITE was cut off behind that many of its entries."""
    had = before.compact or ()
    written = (after.compact or ())[len(had) :]
    return TrackingLogs(before.full, before.transient, (*had, *written[:kept]))


@examples()
@given(logs_of_rows, st.none() | positions)
def test_the_newest_change_of_each_row_is_kept(
    entries: tuple[TrackedRow, ...], upto: HubPosition | None
) -> None:
    """The largest position, not the last entry; one for each incarnation; nothing behind `upto`."""
    valid = [each for each in entries if upto is None or each.position <= upto]

    kept = newest(entries, upto)

    assert {each[:3] for each in kept} == {each[:3] for each in valid}
    assert len({each[:3] for each in kept}) == len(kept)
    for each in kept:
        assert each.position == max(e.position for e in valid if e[:3] == each[:3])


@examples()
@given(logs_of_rows, logs_of_rows)
def test_compacting_is_idempotent_and_piecewise(
    one: tuple[TrackedRow, ...], other: tuple[TrackedRow, ...]
) -> None:
    """So a repeated step, and a log that was written twice, change nothing."""
    at_once = set(newest((*one, *other)))

    assert set(newest(newest(one))) == set(newest(one))
    assert set(newest((*newest(one), *newest(other)))) == at_once
    assert set(newest((*other, *one, *one))) == at_once


@examples()
@given(logs)
def test_a_full_round_leaves_each_row_once_and_nothing_else(before: TrackingLogs) -> None:
    """Whatever an earlier round left; a second round changes nothing."""
    after = compacted(before)

    assert after.full == ()
    assert after.transient is None
    assert after.compact is not None
    assert sorted(after.compact) == sorted(before.lacking())
    assert sorted(compacted(after).compact or ()) == sorted(after.compact)


@examples()
@given(logs, st.data())
def test_a_round_that_is_cut_off_anywhere_forgets_no_row(
    before: TrackingLogs, data: st.DataObject
) -> None:
    """At each point of the list, and within WRITE: the same rows, and the next round ends it.

    Changes go on meanwhile, and the next round may die too.
    """
    expected: Rows = set(before.lacking())
    now = before
    for _ in range(data.draw(st.integers(1, 3), label="rounds that die")):
        round_ = full_round(now)
        stop = data.draw(st.integers(0, len(round_)), label="steps done")
        for step in round_[:stop]:
            now = after_step(now, step)
            assert set(now.lacking()) == expected
            more = data.draw(st.lists(tracked_rows, max_size=1), label="written meanwhile")
            now = now.with_entries(more)
            expected = set(newest((*expected, *more)))
        if stop < len(round_) and round_[stop] is CompactionStep.WRITE:
            whole = after_step(now, CompactionStep.WRITE)
            now = cut_off(now, whole, data.draw(st.integers(0, 12), label="entries written"))
        assert set(now.lacking()) == expected

    assert set(compacted(now).compact or ()) == expected


@examples()
@given(before=logs, full=st.booleans(), compact=st.booleans())
def test_a_background_round_forgets_no_row(
    *, before: TrackingLogs, full: bool, compact: bool
) -> None:
    """It may leave a row twice, which readers merge; it never leaves a frozen log."""
    now = before
    for step in background_round(before, is_full_due=full, is_compact_due=compact):
        now = after_step(now, step)
        assert set(now.lacking()) == set(before.lacking())

    assert now.transient is None
    assert not (full and now.full)


@pytest.mark.parametrize("step", [CompactionStep.FREEZE_FULL, CompactionStep.FREEZE_COMPACT])
def test_a_frozen_log_is_never_overwritten(step: CompactionStep) -> None:
    """It is all that is left of its rows until it is compacted."""
    frozen = TrackingLogs(transient=FrozenLog((TrackedRow("t", 1, "k", HubPosition(3)),)))

    with pytest.raises(StateError, match="would overwrite it"):
        after_step(frozen, step)


@examples()
@given(logs, positions, logs_of_rows)
def test_what_was_never_committed_is_discarded_and_the_bound_goes_with_it(
    before: TrackingLogs, committed: HubPosition, later: tuple[TrackedRow, ...]
) -> None:
    """A log ahead of the commit is bounded once; later entries may pass the bound."""
    frozen = before.transient
    known = newest(frozen.entries, frozen.upto) if frozen else ()
    ahead = max((e.position for e in before.full), default=committed) > committed
    expected = newest(
        (
            *(before.compact or ()),
            *((*newest(known, committed), *newest(before.full, committed)) if ahead else known),
            *(() if ahead else before.full),
            *later,
        )
    )

    after = after_crash(before, committed).with_entries(later)

    assert set(after.lacking()) == set(expected)
    assert set(compacted(after).compact or ()) == set(expected)
    assert (
        discard_behind(max((e.position for e in before.full), default=None), committed) is not None
    ) == ahead


@given(logs_of_rows)
def test_only_the_highest_incarnation_of_a_table_is_changed(
    entries: tuple[TrackedRow, ...],
) -> None:
    """What a truncate removed is no row to send; a key counts once."""
    found = {rows.table: rows for rows in changed_rows(entries)}

    assert found.keys() == {each.table for each in entries}
    for table, rows in found.items():
        highest = max(each.incarnation for each in entries if each.table == table)
        keys = [e.key for e in entries if (e.table, e.incarnation) == (table, highest)]
        assert rows.incarnation == highest
        assert sorted(rows.keys) == sorted(set(keys))
    assert count_rows(entries) == len({(e.table, e.key) for e in entries})


def test_nothing_tracked_is_not_the_same_as_no_row() -> None:
    """A count is shown only where there is something to count."""
    assert (count_rows(None), count_rows(())) == (None, 0)


@pytest.mark.parametrize(
    ("added", "running", "frozen", "expected"),
    [
        (1000, False, False, False),
        (1001, False, False, True),
        (1001, True, False, False),
        (1001, False, True, False),
    ],
)
def test_a_log_is_frozen_above_the_threshold_and_never_over_a_frozen_one(
    *, added: int, running: bool, frozen: bool, expected: bool
) -> None:
    """At the threshold it is not."""
    assert is_due(added, 1000, is_running=running, has_transient=frozen) is expected
