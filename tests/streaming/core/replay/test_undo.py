"""Claims about what an undo chooses, and what each row becomes."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.model.change import Op
from streaming.core.model.command import UndoOrder, parse_undo_order
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.replay.undo import (
    ROWS_MAX,
    TouchedRow,
    UndoneRow,
    UndoPlan,
    WrittenRow,
    is_kept,
    part_of,
    touched_rows,
    undone_row,
)
from tests.harness.examples import examples

ORDER = UndoOrder("t", 2, "me", "a test")
COLUMNS = ("k", "v")


def written(
    key: str, hub_epoch: int, op: Op = Op.UPDATE, *, app: str = "", rid: int = 1
) -> WrittenRow:
    """A change of a row; its CSN says where it stands."""
    csn = f"{hub_epoch:08x}{len(key):04x}{rid:04x}0000"
    return WrittenRow(key, hub_epoch, csn, None, rid, app or None, op)


def summary(rows: Sequence[TouchedRow]) -> dict[str, tuple[int | None, int, int | None]]:
    """Key -> the hub epochs of base, first undone change, and last change since."""
    return {
        row.key: (
            row.base and row.base.hub_epoch,
            row.undone.hub_epoch,
            row.since and row.since.hub_epoch,
        )
        for row in rows
    }


def test_everything_behind_the_moment_is_undone() -> None:
    """Without a selection a row becomes what it was at the moment, however often it was written."""
    log = [written("a", 3), written("b", 4, Op.DELETE), written("a", 5)]

    assert summary(touched_rows(ORDER, 5, log, ())) == {"a": (None, 3, None), "b": (None, 4, None)}


def test_what_others_wrote_before_the_undone_change_is_kept() -> None:
    """The moment only says how far to look back: a good write behind it is no part of the harm."""
    order = replace(ORDER, app="bad")
    log = [written("a", 3, app="good"), written("a", 4, app="bad"), written("b", 4, app="good")]

    assert summary(touched_rows(order, 5, log, ())) == {"a": (3, 4, None)}


@pytest.mark.parametrize(("forced", "kept"), [(False, True), (True, False)])
def test_a_row_that_others_wrote_since_stays(forced: bool, kept: bool) -> None:  # noqa: FBT001
    """Overwriting is somebody's decision, and never the default."""
    order = replace(ORDER, app="bad", is_forced=forced)
    log = [written("a", 3, app="bad"), written("a", 4, app="good"), written("a", 5, app="bad")]

    (row,) = touched_rows(order, 5, log, ())

    assert row.since == log[1]
    assert is_kept(order, 5, row) is kept


def test_what_nobody_has_looked_at_stays_even_by_force() -> None:
    """Between the look and the batch everybody goes on writing."""
    order = replace(ORDER, is_forced=True)
    log = [written("a", 4), written("a", 6)]

    (row,) = touched_rows(order, 5, log, ())

    assert is_kept(order, 5, row)


def test_a_truncate_touches_the_rows_that_stand() -> None:
    """Those that were deleted before it, or came behind it, it has not written."""
    truncate = written(ALL_KEYS, 4, Op.TRUNCATE, app="bad")
    log = [written("b", 3, Op.DELETE), written("c", 3, Op.INSERT), truncate, written("d", 5)]

    found = touched_rows(replace(ORDER, app="bad"), 5, log, ("a", "b"))

    assert summary(found) == {"a": (None, 4, None), "c": (3, 4, None)}


def test_a_selection_is_by_epoch_author_and_transaction() -> None:
    """Each of them narrows it."""
    log = [written("a", 3), written("b", 4, rid=2), written("c", 5)]

    def keys(order: UndoOrder) -> list[str]:
        return [row.key for row in touched_rows(order, 5, log, ())]

    assert keys(replace(ORDER, first=4, last=4)) == ["b"]
    assert keys(replace(ORDER, rid=1)) == ["a", "c"]
    assert keys(replace(ORDER, transaction=log[2].csn)) == ["c"]
    assert keys(replace(ORDER, op=Op.DELETE)) == []
    assert keys(replace(ORDER, key="a")) == ["a"]


def test_parts_hold_every_row_once_and_no_more_than_a_transaction_may() -> None:
    """More rows than one transaction holds are undone in several."""
    rows = tuple(UndoneRow(f'{{"k":"{n}"}}', None, "{}") for n in range(2 * ROWS_MAX + 1))
    parts = UndoPlan(ORDER, 5, rows, (), (), 0).parts()

    sizes = [0] * parts
    for row in rows:
        sizes[part_of(row.key, parts)] += 1
    assert parts >= 3
    assert max(sizes) <= ROWS_MAX
    assert UndoPlan(ORDER, 5, (), (), (), 0).parts() == 1


@pytest.mark.parametrize(
    ("now", "then", "op"),
    [
        ('{"k":"a","v":"1"}', '{"k":"a","v":"0"}', Op.UPDATE),
        ('{"k":"a","v":"1"}', None, Op.DELETE),
        (None, '{"k":"a","v":"0","gone":"x"}', Op.INSERT),
    ],
)
def test_a_row_is_written_back_by_what_stands(now: str | None, then: str | None, op: Op) -> None:
    """A function may ask which operation it was; a column that is gone cannot be written."""
    row = undone_row("a", now, then, COLUMNS)

    assert row is not None
    assert (row.op, row.then) == (op, then and '{"k":"a","v":"0"}')


@pytest.mark.parametrize(
    ("now", "then"),
    [
        (None, None),
        ('{"k":"a","v":"1"}', '{"k":"a","v":"1"}'),
        ('{"k":"a","v":"1"}', '{"k":"a"}'),
        ('{"v":"1","k":"a"}', '{"k":"a","v":"1"}'),
    ],
)
def test_a_row_that_stands_so_is_not_written(now: str | None, then: str | None) -> None:
    """A change that changes nothing would only be in others' way."""
    assert undone_row("a", now, then, COLUMNS) is None


def test_an_order_survives_its_way_through_the_table() -> None:
    """The hub carries out what was ordered, and nothing else."""
    order = replace(
        ORDER,
        first=3,
        app="undo: me",
        op=Op.DELETE,
        where="v = 'x'",
        is_forced=True,
        part=1,
        parts=2,
    )

    assert parse_undo_order(order.text()) == order


# -- the law ----------------------------------------------------------------------------------

Step = tuple[str, str | None, str]
"""(key, or ALL_KEYS for a truncate, its new value, application)."""

steps = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", ALL_KEYS]),
        st.none() | st.sampled_from("xyz"),
        st.sampled_from(["good", "bad"]),
    ),
    max_size=12,
)


def log_of(story: Sequence[Step], after: int = 0) -> tuple[list[WrittenRow], list[dict[str, str]]]:
    """The changes of a story, one a hub epoch, and the rows behind each; first those before it."""
    log, states = list[WrittenRow](), [dict[str, str]()]
    for number, (key, value, app) in enumerate(story, after + 1):
        rows = dict(states[-1])
        if key == ALL_KEYS:
            op = Op.TRUNCATE
            rows.clear()
        elif value is None:
            op = Op.DELETE
            rows.pop(key, None)
        else:
            op = Op.UPDATE
            rows[key] = value
        log.append(written(key, number, op, app=app))
        states.append(rows)
    return log, states


def undo(order: UndoOrder, log: list[WrittenRow], states: list[dict[str, str]]) -> dict[str, str]:
    """The rows behind an undo."""
    seen, rows = len(log), dict(states[-1])
    for row in touched_rows(order, seen, log[order.to :], states[order.to].keys()):
        if is_kept(order, seen, row):
            continue
        then = states[row.base.hub_epoch if row.base else order.to].get(row.key)
        rows.pop(row.key, None)
        if then is not None:
            rows[row.key] = then
    return rows


@examples()
@given(steps, st.data())
def test_an_undo_leaves_the_rows_as_they_stood(story: list[Step], data: st.DataObject) -> None:
    """Whatever was written behind the moment, all of it is undone."""
    log, states = log_of(story)
    to = data.draw(st.integers(0, len(story)))

    assert undo(replace(ORDER, to=to), log, states) == states[to]


@examples()
@given(steps)
def test_undoing_an_application_leaves_what_others_wrote_last(story: list[Step]) -> None:
    """A row stands as its last good write left it, or if that came before all bad ones, as then."""
    log, states = log_of(story)

    rows = undo(replace(ORDER, to=0, app="bad"), log, states)

    for key in "abc":
        mine = [
            (app, states[n + 1].get(key))
            for n, (name, _, app) in enumerate(story)
            if name == key or (name == ALL_KEYS and key in states[n])
        ]
        first_bad = next((n for n, (app, _) in enumerate(mine) if app == "bad"), len(mine))
        is_good_again = any(app == "good" for app, _ in mine[first_bad:])
        good = mine if is_good_again else mine[:first_bad]
        assert rows.get(key) == (good[-1][1] if good else None)


@examples()
@given(steps, st.data())
def test_an_undo_of_an_undo_leaves_the_rows_as_they_were(
    story: list[Step], data: st.DataObject
) -> None:
    """It is a change like any other, by its own application."""
    log, states = log_of(story)
    to = data.draw(st.integers(0, len(story)))
    before, after = states[-1], undo(replace(ORDER, to=to), log, states)
    changed = [key for key in "abc" if before.get(key) != after.get(key)]
    again: list[Step] = [(key, after.get(key), "undo: me") for key in changed]
    more, behind = log_of(again, len(log))
    rows = [{**before, **one} for one in behind]
    for number, key in enumerate(changed, 1):
        for state in rows[number:]:
            if after.get(key) is None:
                state.pop(key, None)

    undone = replace(ORDER, to=len(log), app="undo: me")

    assert undo(undone, [*log, *more], [*states[:-1], *rows]) == before
