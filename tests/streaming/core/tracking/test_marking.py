"""Marking gives every changed table its work, forgets nothing, and drops before it creates."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.tracking.append_only import AppendedRows, catch_up, needs_catch_up
from streaming.core.tracking.entry import ChangedRows
from streaming.core.tracking.incarnation import (
    AtConsumer,
    AtHub,
    TableAction,
    TableIncarnation,
    WorkKind,
    action_on,
    after_action,
    steps,
)
from streaming.core.tracking.marking import NotPaged, mark, mark_full_copy, why_not_paged
from tests.harness.examples import examples

TABLES = ("a", "b", "c")
incarnations = st.lists(
    st.builds(
        TableIncarnation,
        st.sampled_from(TABLES),
        st.integers(1, 3),
        st.sampled_from(AtHub),
        st.sampled_from(AtConsumer),
        st.booleans(),
        st.booleans(),
        st.none() | st.sampled_from(WorkKind),
    ),
    max_size=6,
    unique_by=lambda one: (one.table, one.number),
)
changes = st.lists(
    st.builds(ChangedRows, st.sampled_from(TABLES), st.integers(1, 3), st.just(("k",))),
    max_size=3,
    unique_by=lambda one: one.table,
)
appends = st.dictionaries(
    st.sampled_from(TABLES), st.builds(AppendedRows, st.integers(0, 3), st.integers(0, 3))
)


@examples()
@given(incarnations, changes, appends)
def test_every_changed_row_has_its_work_or_a_reason(
    before: list[TableIncarnation],
    changed: list[ChangedRows],
    appended: dict[str, AppendedRows],
) -> None:
    """A row is on a page, in a scan or copy, caught up, or gone there; nothing is just left out."""
    marking = mark(before, changed, appended, is_full=False)

    after = {(one.table, one.number): one for one in marking.incarnations}
    refused = {rows.table: reason for rows, reason in marking.unpaged}
    for rows in changed:
        found = after.get((rows.table, rows.incarnation))
        match refused.get(rows.table):
            case None:
                assert found is not None
                assert found.work is WorkKind.PAGE
            case NotPaged.SENT_WHOLE:
                assert found is not None
                assert found.work is not None
                assert found.work.is_whole
            case NotPaged.APPEND_ONLY:
                assert found is not None
                assert found.is_append_only
            case NotPaged.OTHER_INCARNATION:
                highest = max((n for table, n in after if table == rows.table), default=None)
                assert highest != rows.incarnation
            case NotPaged.GONE | NotPaged.BEING_DROPPED:
                assert found is not None
                assert not found.at_hub.holds_rows
            case NotPaged.NOT_THERE:
                assert found is not None
                assert not found.at_consumer.takes_rows


@examples()
@given(incarnations, changes, appends, st.booleans())
def test_work_is_given_only_where_rows_can_be_sent(
    before: list[TableIncarnation],
    changed: list[ChangedRows],
    appended: dict[str, AppendedRows],
    is_full: bool,  # noqa: FBT001
) -> None:
    """One kind for each; what is scanned is not paged, and a full copy takes the place of all."""
    marking = mark(before, changed, appended, is_full=is_full)

    assert len(marking.incarnations) == len(before)
    for old, new in zip(before, marking.incarnations, strict=True):
        assert (old.table, old.number) == (new.table, new.number)
        if is_full and old.at_hub.holds_rows:
            assert new.work is WorkKind.FULL_COPY
        if not is_full and new.work is not None:
            assert new.at_hub.holds_rows
            assert new.at_consumer.takes_rows
        if not is_full and new.work is WorkKind.APPEND_ONLY:
            assert needs_catch_up(new, appended[new.table])


@examples()
@given(incarnations, changes, appends)
def test_marking_again_changes_nothing(
    before: list[TableIncarnation],
    changed: list[ChangedRows],
    appended: dict[str, AppendedRows],
) -> None:
    """A hub that died while it marked marks again; an unfinished full copy stays one."""
    once = mark(before, changed, appended, is_full=False)

    assert mark(once.incarnations, changed, appended, is_full=False) == once
    for old, new in zip(before, once.incarnations, strict=True):
        if old.work is WorkKind.FULL_COPY and new.work is not None:
            assert new.work is WorkKind.FULL_COPY


def test_rows_of_a_table_that_nobody_knows_are_not_paged() -> None:
    """The hub's configuration may have lost the table meanwhile."""
    rows = ChangedRows("t", 1, ("k",))

    assert why_not_paged(rows, None) is NotPaged.OTHER_INCARNATION
    assert mark([], [rows], {}, is_full=False).unpaged == ((rows, NotPaged.OTHER_INCARNATION),)


@examples()
@given(incarnations, st.permutations(TABLES))
def test_drops_stand_before_creates_and_each_is_done_once(
    before: list[TableIncarnation], referring_first: list[str]
) -> None:
    """A table truncated while its consumer was away has one of each; drops go bottom up."""
    found = steps(before, referring_first)

    levels = {
        action: [referring_first.index(s.incarnation.table) for s in found if s.action is action]
        for action in TableAction
    }
    drops = len(levels[TableAction.DROP])
    assert all(step.action is TableAction.DROP for step in found[:drops])
    assert all(step.action is TableAction.CREATE for step in found[drops:])
    assert levels[TableAction.DROP] == sorted(levels[TableAction.DROP])
    assert levels[TableAction.CREATE] == sorted(levels[TableAction.CREATE], reverse=True)
    assert steps([after_action(each) for each in before], referring_first) == ()


def test_a_truncated_table_is_dropped_and_begun_anew() -> None:
    """The old incarnation's rows go, the new one's come: never the other way round."""
    old = TableIncarnation("t", 1, AtHub.DROPPING, AtConsumer.DROP_REMAINS)
    new = TableIncarnation("t", 2, AtHub.PRESENT, AtConsumer.MISSING)
    rows = ChangedRows("t", 2, ("k",))

    found = steps([new, old], ["t"])
    marking = mark([new, old], [rows], {}, is_full=False)

    assert [(step.action, step.incarnation) for step in found] == [
        (TableAction.DROP, old),
        (TableAction.CREATE, new),
    ]
    assert marking.incarnations == (replace(new, work=WorkKind.PAGE), old)
    assert action_on(after_action(old)) is TableAction.NONE


@given(incarnations)
def test_a_full_copy_begins_every_table_and_forgets_what_remained(
    before: list[TableIncarnation],
) -> None:
    """A full copy deletes what it does not hold, so nothing is left to drop."""
    for each in map(mark_full_copy, before):
        assert action_on(each) is (
            TableAction.CREATE if each.at_hub.holds_rows else TableAction.NONE
        )


@examples()
@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 40), st.integers(1, 40))
def test_a_catch_up_sends_each_appended_row_once_in_order(
    delivered: int, end: int, piece_rows: int, unit: int
) -> None:
    """Without a hole; what is counted when it is done is never more than what was announced."""
    rows = AppendedRows(delivered, end, unit)

    found = catch_up(rows, piece_rows)

    sent = [row for one in found for row in range(one.offset, one.offset + one.rows)]
    assert sent == list(range(delivered, end))
    assert all(0 < one.rows <= piece_rows for one in found)
    assert rows.counted_when_done <= rows.to_count
    assert rows.counted_when_done * unit <= max(0, end - delivered) <= rows.to_count * unit


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_what_was_appended_during_a_copy_is_left_for_the_next(a: int, b: int, c: int) -> None:
    """The end that was copied counts, not where the table ends by then."""
    delivered, copied, end = sorted((a, b, c))

    after = AppendedRows(delivered, end).completed(copied)

    assert after.is_behind == (end > copied)
    assert [
        row for one in catch_up(after, 3) for row in range(one.offset, one.offset + one.rows)
    ] == [*range(copied, end)]


@pytest.mark.parametrize("at_hub", list(AtHub))
def test_a_table_that_is_loading_does_not_catch_up(at_hub: AtHub) -> None:
    """Its rows are announced when the load commits."""
    table = TableIncarnation("t", 1, at_hub, AtConsumer.PRESENT, is_append_only=True)

    assert needs_catch_up(table, AppendedRows(0, 1)) == (at_hub is AtHub.PRESENT)
    assert not needs_catch_up(replace(table, is_append_only=False), AppendedRows(0, 1))
