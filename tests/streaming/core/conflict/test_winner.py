"""Who wins under each conflict function, and what a function cannot do without."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.conflict.judge import Cause, ConflictKind, Verdict, judge
from streaming.core.conflict.winner import (
    ConflictFacts,
    Failed,
    Image,
    Merged,
    Resolution,
    Winner,
    missing,
    winner,
)
from streaming.core.model.change import Change, Op
from streaming.core.model.function import ConflictRule, parse_function
from streaming.core.model.row import Arrived, Floor, Realign, RowState
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Reason
from tests.harness.builders import csn

ME, OTHER, NOW = 1, 2, 9
COLUMNS = {"k": ColumnType.TEXT, "x": ColumnType.INT64, "v": ColumnType.TEXT}


def table(function: str) -> Table:
    """A table with a compared column x; PRIMARY names me."""
    return Table("t", ("k",), COLUMNS, replace(parse_function(function), replica=ME))


def image(x: str | None, v: str = "v") -> str:
    """A row with this x."""
    value = "null" if x is None else f'"{x}"'
    return f'{{"k":"k","x":{value},"v":"{v}"}}'


def change(op: Op, new: str | None = "5", old: str | None = None, number: int = 10) -> Arrived:
    """A change of mine that sets x to `new` where it was `old`, by one who has seen nothing."""
    after = None if op is Op.DELETE else image(new)
    before = None if op is Op.INSERT else image(old)
    one = Change(csn(number, ME), ME, 1, "t", '{"k":"k"}', op, after, before)
    return Arrived(one, "content", "s", 5, 0, 0, 0)


def row(x: str | None = "4", *, author: int = OTHER, number: int = 8) -> RowState:
    """A row of another's."""
    return RowState(author, 5, csn(number, author), exists=True, image=image(x))


TOMBSTONE = RowState(OTHER, 5, csn(8, OTHER))

CASES = {
    "EPOCH loses": ("EPOCH", change(Op.UPDATE), row(), False),
    "EPOCH_TRANS loses": ("EPOCH_TRANS", change(Op.UPDATE), row(), False),
    "EPOCH2 loses on a row": ("EPOCH2", change(Op.UPDATE), row(), False),
    "EPOCH2 deletes a deleted row": ("EPOCH2", change(Op.DELETE), TOMBSTONE, True),
    "EPOCH2 does not insert over another's delete": ("EPOCH2", change(Op.INSERT), TOMBSTONE, False),
    "EPOCH2 inserts behind its own delete": (
        "EPOCH2",
        change(Op.INSERT),
        TOMBSTONE._replace(author=ME),
        True,
    ),
    "EPOCH2 goes on behind its own word": ("EPOCH2", change(Op.UPDATE), row(author=ME), True),
    "EPOCH2 loses to a newer answer": (
        "EPOCH2",
        change(Op.UPDATE),
        row(author=ME)._replace(realign=(Realign(ME, 6),)),
        False,
    ),
    "OLD saw what stands": ("OLD(x)", change(Op.UPDATE, old="4"), row("4"), True),
    "OLD saw something else": ("OLD(x)", change(Op.UPDATE, old="3"), row("4"), False),
    "OLD deletes what it saw": ("OLD(x)", change(Op.DELETE, old="4"), row("4"), True),
    "OLD inserts where nothing is": ("OLD(x)", change(Op.INSERT), TOMBSTONE, True),
    "OLD does not insert on a row": ("OLD(x)", change(Op.INSERT), row(), False),
    "OLD does not update what is deleted": ("OLD(x)", change(Op.UPDATE, old="4"), TOMBSTONE, False),
    "MAX is larger, by number": ("MAX(x)", change(Op.UPDATE, "10"), row("9"), True),
    "MAX is smaller": ("MAX(x)", change(Op.UPDATE, "3"), row("4"), False),
    "MAX ties lose": ("MAX(x)", change(Op.UPDATE, "4"), row("4"), False),
    "MAX null is smallest": ("MAX(x)", change(Op.UPDATE, "-9"), row(None), True),
    "MAX deletes what it saw": ("MAX(x)", change(Op.DELETE, old="4"), row("4"), True),
    "MAX deletes nothing newer": ("MAX(x)", change(Op.DELETE, old="3"), row("4"), False),
    "MAX does not insert on a row": ("MAX(x)", change(Op.INSERT, "9"), row("4"), False),
    "MAX_DELETE_WIN deletes": ("MAX_DELETE_WIN(x)", change(Op.DELETE), row("4"), True),
    "MAX_DELETE_WIN deletes no deleted row": (
        "MAX_DELETE_WIN(x)",
        change(Op.DELETE),
        TOMBSTONE,
        False,
    ),
    "MAX_INS inserts the larger": ("MAX_INS(x)", change(Op.INSERT, "9"), row("4"), True),
    "MAX_INS does not insert the smaller": ("MAX_INS(x)", change(Op.INSERT, "3"), row("4"), False),
    "MAX_INS deletes nothing newer": ("MAX_INS(x)", change(Op.DELETE, old="3"), row("4"), False),
    "MAX_DEL_WIN_INS inserts": ("MAX_DEL_WIN_INS(x)", change(Op.INSERT, "9"), row("4"), True),
    "MAX_DEL_WIN_INS deletes": ("MAX_DEL_WIN_INS(x)", change(Op.DELETE), row("4"), True),
    "CSN newest wins": ("CSN", change(Op.UPDATE, number=10), row(number=9), True),
    "CSN older loses": ("CSN", change(Op.UPDATE, number=10), row(number=11), False),
    "CSN over what nobody wrote": ("CSN", change(Op.UPDATE), row()._replace(csn=None), True),
    "PRIMARY wins": ("PRIMARY(me)", change(Op.DELETE), row(), True),
    "PASS wins": ("PASS", change(Op.DELETE), row(), True),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_function_picks_the_winner(case: tuple[str, Arrived, RowState, bool]) -> None:
    """Each line of the decision tables (NDB: ndb_conflict.cc)."""
    function, one, before, wins = case

    expected = Winner.CHANGE if wins else Winner.ROW

    assert winner(one, before, table(function), None) is expected


def test_only_the_primary_wins() -> None:
    """Between two others the row stands."""
    other = replace(table("PRIMARY(x)"), function=replace(parse_function("PRIMARY(x)"), replica=7))

    assert winner(change(Op.UPDATE), row(), other, None) is Winner.ROW


@pytest.mark.parametrize(
    ("kind", "smaller", "larger"),
    [
        (ColumnType.INT64, "9", "10"),
        (ColumnType.DECIMAL, "9.5", "10.25"),
        (ColumnType.DECIMAL, "Infinity", "NaN"),
        (ColumnType.DECIMAL, "-Infinity", f"-1{'0' * 400}"),
        (ColumnType.TEXT, "10", "9"),
        (ColumnType.FLOAT64, "-Infinity", "NaN"),
        (ColumnType.TIMESTAMP, "2024-01-31T00:00:00.000000Z", "2024-02-01T00:00:00.000000Z"),
        (ColumnType.TIMESTAMP, "9999-12-31T23:59:59.999999Z", "infinity"),
        (ColumnType.TIMESTAMP, "0000-12-31T23:59:59.999999Z", "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_values_are_compared_as_their_type_is(kind: ColumnType, smaller: str, larger: str) -> None:
    """As text 9 is more than 10; null is less than all, NaN more."""
    typed = replace(table("MAX(x)"), columns={**COLUMNS, "x": kind})

    assert winner(change(Op.UPDATE, larger), row(smaller), typed, None) is Winner.CHANGE
    assert winner(change(Op.UPDATE, smaller), row(larger), typed, None) is Winner.ROW


# -- what becomes of the two -----------------------------------------------------------------


@pytest.mark.parametrize("rule", [r for r in ConflictRule if r is not ConflictRule.USER])
@pytest.mark.parametrize("op", Op)
@pytest.mark.parametrize("before", [row(), TOMBSTONE], ids=["row", "tombstone"])
def test_whoever_wins_a_concurrent_change_realigns_its_replica(
    rule: ConflictRule, op: Op, before: RowState
) -> None:
    """Without the refresh of a winner a quarter of random histories diverge."""
    if op is Op.TRUNCATE:
        return
    text = f"{rule}(x)" if rule not in PLAIN else rule.value

    judged = judge(change(op, old="4"), before, NOW, table(text))

    assert Realign(ME, NOW) in judged.after.realign
    assert judged.concurrent
    accepted = judged.verdict is Verdict.ACCEPTED
    assert accepted == (judged.after.author == ME)


PLAIN = {
    ConflictRule.EPOCH,
    ConflictRule.EPOCH_TRANS,
    ConflictRule.EPOCH2,
    ConflictRule.CSN,
    ConflictRule.PASS,
}


def test_a_change_that_wins_leaves_the_row_as_the_loser() -> None:
    """What was overwritten unseen is recorded, whoever is right."""
    judged = judge(change(Op.UPDATE), row(), NOW, table("PASS"))

    assert judged.verdict is Verdict.ACCEPTED
    assert judged.row_lost
    assert (judged.conflict, judged.cause) == (ConflictKind.UPDATE_ORIGIN_CHANGE, Cause.AUTHOR)
    assert judged.before.image == image("4")


def test_who_writes_on_behind_his_own_winner_overwrites_nobody() -> None:
    """He wrote it knowing his own; only the refresh had not come."""
    mine = RowState(ME, 7, csn(8, ME), exists=True, image=image("4"), realign=(Realign(ME, 7),))

    judged = judge(change(Op.UPDATE), mine, NOW, table("PASS"))

    assert (judged.verdict, judged.conflict, judged.cause) == ("accepted", None, Cause.REALIGN)


def test_who_lost_state_and_wins_overwrites_what_he_had_lost() -> None:
    """It wrote the row and lost it (docs/traps.md, A lost write is overwritten unseen)."""
    mine = RowState(ME, 5, csn(8, ME), exists=True, image=image("4"))

    floor = Floor(7, 0, after=csn(7, ME), upto=csn(8, ME))

    judged = judge(change(Op.UPDATE), mine, NOW, table("PASS"), [floor])

    assert judged.row_lost
    assert judged.cause is Cause.FLOOR


def test_two_deletes_are_no_loss() -> None:
    """EPOCH2 lets the second win: counted, not recorded."""
    judged = judge(change(Op.DELETE), TOMBSTONE, NOW, table("EPOCH2"))

    assert (judged.verdict, judged.conflict) == (Verdict.ACCEPTED, None)
    assert judged.after.author == ME


# -- what a function needs -------------------------------------------------------------------

WHOLE = '{"k":"k","x":"1","v":"v"}'
PART = '{"k":"k","v":"v"}'


@pytest.mark.parametrize(
    ("function", "op", "after", "before", "says"),
    [
        ("MAX(x)", Op.UPDATE, PART, WHOLE, "MAX(x) needs column x in after"),
        ("MAX(x)", Op.INSERT, PART, None, "MAX(x) needs column x in after"),
        ("MAX(x)", Op.UPDATE, WHOLE, None, None),
        ("MAX(x)", Op.DELETE, None, None, "MAX(x) needs a before-image with column x"),
        ("MAX_DELETE_WIN(x)", Op.DELETE, None, None, None),
        ("MAX_INS(x)", Op.DELETE, None, PART, None),
        ("MAX_DEL_WIN_INS(x)", Op.DELETE, None, None, None),
        ("OLD(x)", Op.UPDATE, WHOLE, None, "OLD(x) needs a before-image with column x"),
        ("OLD(x)", Op.UPDATE, WHOLE, WHOLE, None),
        ("OLD(x)", Op.UPDATE, WHOLE, PART, None),
        ("OLD(x)", Op.UPDATE, PART, WHOLE, "OLD(x) needs column x in after"),
        ("OLD(x)", Op.INSERT, WHOLE, None, None),
        ("EPOCH", Op.UPDATE, PART, None, None),
    ],
)
def test_what_a_function_compares_must_be_there(
    function: str, op: Op, after: str | None, before: str | None, says: str | None
) -> None:
    """Asked before it comes to a conflict, so that no cut of the input decides it."""
    one = Change(csn(10, ME), ME, 1, "t", '{"k":"k"}', op, after, before)

    found = missing(one, table(function))

    assert found == (None if says is None else (Reason.BEFORE, says))


# -- coarse epochs ---------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(0, 31))
def test_a_coarse_epoch_is_never_smaller_than_it_is(epoch: int, bits: int) -> None:
    """False conflicts, never a missed one; with all bits it is exact."""
    stored = parse_function(f"EPOCH({bits})").stored(epoch)

    assert stored >= epoch
    assert stored >> 6 == epoch >> 6
    assert bits < 6 or stored == epoch


@given(st.integers(0, 1_000), st.integers(0, 1_000), st.integers(0, 6))
def test_coarse_epochs_keep_their_order(one: int, other: int, bits: int) -> None:
    """The window's edge is compared as the rows below it are."""
    stored = parse_function(f"EPOCH({bits})").stored

    assert stored(min(one, other)) <= stored(max(one, other))


def test_with_no_bits_a_row_is_as_late_as_can_be() -> None:
    """What was seen in the same 64 epochs is a conflict all the same."""
    seen = change(Op.UPDATE)._replace(mre=5, mre_same=5)

    assert judge(seen, row(), NOW, table("EPOCH(0)")).verdict is Verdict.REJECTED
    assert judge(seen, row(), NOW, table("EPOCH(6)")).verdict is Verdict.ACCEPTED


# -- users' functions ------------------------------------------------------------------------

USER = "my.rules:resolve"


class Mute(Exception):  # noqa: N818
    """An error that cannot be told."""

    def __str__(self) -> str:
        """Fail too."""
        return str(1 // 0)


class Unspeakable:
    """An answer that cannot be shown."""

    def __repr__(self) -> str:
        """Fail."""
        return str(1 // 0)


class Slippery(dict[str, object]):
    """An image that cannot be looked at."""

    def __iter__(self) -> Iterator[str]:
        """Fail."""
        raise ZeroDivisionError


def resolution_of_user(
    answer: object, one: Arrived | None = None, before: RowState | None = None
) -> Resolution:
    """What becomes of a user's answer; an exception is raised."""

    def resolve(_row: Image | None, _change: Image | None, _facts: ConflictFacts) -> object:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return winner(one or change(Op.UPDATE), before or row(), table(USER), resolve)


def test_a_user_is_told_both_images_and_the_facts() -> None:
    """In Python's types; a tombstone is None."""
    arguments: list[object] = []

    def resolve(*args: object) -> Winner:
        arguments.extend(args)
        return Winner.ROW

    winner(change(Op.UPDATE, "7", old="3"), row("4"), table(USER), resolve)

    assert arguments[:2] == [{"k": "k", "x": 4, "v": "v"}, {"k": "k", "x": 7, "v": "v"}]
    assert arguments[2] == ConflictFacts(
        *("t", '{"k":"k"}', "update", csn(10, ME), ME, 0, csn(8, OTHER), OTHER, 5),
        {"k": "k", "x": 3, "v": "v"},
    )


def test_a_user_decides_or_merges() -> None:
    """The merged image is canonical, in the order of the table's columns."""
    assert resolution_of_user(Winner.CHANGE) is Winner.CHANGE
    assert resolution_of_user({"v": "both", "x": 11, "k": "k"}) == Merged(
        '{"k":"k","x":"11","v":"both"}'
    )


def test_a_user_may_leave_out_what_nobody_knows() -> None:
    """A replica that is not sent a column inserts rows without it."""
    lacking = '{"k":"k","x":"4"}'
    one = change(Op.UPDATE)._replace(change=change(Op.UPDATE).change._replace(after=lacking))

    merged = resolution_of_user({"k": "k", "x": 7}, one, row()._replace(image=lacking))
    failed = resolution_of_user({"k": "k", "x": 7}, one, row())

    assert merged == Merged('{"k":"k","x":"7"}')
    assert isinstance(failed, Failed)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (ZeroDivisionError("oh"), "failed: ZeroDivisionError: oh"),
        (None, "returned None: neither a Winner nor an image"),
        ({"k": "k", "x": 1}, "another set of columns: see v"),
        ({"k": "k", "x": 1, "v": "", "z": 1}, "another set of columns: see z"),
        ({"k": "k", "x": "1", "v": ""}, "returned what does not fit: '1' is not a value"),
        ({"k": "l", "x": 1, "v": ""}, 'another key than {"k":"k"}'),
        ({1: 2}, "another set of columns: see 1, k, x, v"),
        (SystemExit(3), "failed: SystemExit: 3"),
        (Mute(), "failed: Mute: str() of the error failed"),
        (Unspeakable(), "failed: ZeroDivisionError"),
        (Slippery(), "failed: ZeroDivisionError"),
    ],
)
def test_a_user_who_does_not_answer_fails(answer: object, says: str) -> None:
    """The change goes to quarantine with these words; the hub goes on."""
    found = resolution_of_user(answer)

    assert isinstance(found, Failed)
    assert says in found.detail
    assert found.detail.startswith(USER)


def test_a_number_that_fits_no_column_fails() -> None:
    """What Python makes of it is its affair; the hub goes on."""
    floats = replace(table(USER), columns={**COLUMNS, "x": ColumnType.FLOAT64})
    one = change(Op.INSERT)
    one = one._replace(change=one.change._replace(after='{"k":"k","x":5.5,"v":"v"}'))

    found = winner(one, TOMBSTONE, floats, lambda *_: {"k": "k", "x": 10**400, "v": ""})

    assert isinstance(found, Failed)
    assert "OverflowError" in found.detail


def test_a_row_that_would_be_too_large_to_send_is_kept_back() -> None:
    """Its parts could be sent; the whole would never go out, and hold up all that follows."""
    before = row(author=ME)._replace(image=image("4", "v" * 50))
    partial = change(Op.UPDATE)
    partial = partial._replace(change=partial.change._replace(after='{"k":"k","x":"77"}'))
    size = len('{"k":"k"}' + image("77", "v" * 50))

    fits = judge(partial, before, NOW, table("EPOCH"), record_bytes=size)
    excess = judge(partial, before, NOW, table("EPOCH"), record_bytes=size - 1)

    assert (fits.verdict, fits.after.image) == (Verdict.ACCEPTED, image("77", "v" * 50))
    assert excess.verdict is Verdict.QUARANTINED
    detail = f"the row would have {size} bytes, {size - 1} are allowed"
    assert excess.failure == Failed(detail, Reason.SIZE)
    assert excess.after == before


def test_a_concurrent_row_that_would_be_too_large_is_overwritten_by_what_stands() -> None:
    """What another replica wrote is on its way to its writer anyway: so the row is sent back."""
    before = row()._replace(image=image("4", "v" * 50))
    partial = change(Op.UPDATE)
    partial = partial._replace(change=partial.change._replace(after='{"k":"k","x":"77"}'))

    excess = judge(partial, before, NOW, table("MAX(x)"), record_bytes=50)

    assert (excess.verdict, excess.cause) == (Verdict.QUARANTINED, Cause.AUTHOR)
    assert excess.after == before._replace(realign=(Realign(ME, NOW),))


def test_a_merge_that_would_be_too_large_to_send_fails() -> None:
    """It is the user's function that made it."""

    def merge(*_: object) -> Merged:
        return Merged(image("1", "v" * 50))

    judged = judge(change(Op.UPDATE), row(), NOW, table(USER), resolve=merge, record_bytes=70)

    assert judged.verdict is Verdict.QUARANTINED
    assert judged.failure is not None
    assert judged.failure.reason is Reason.FUNCTION


def test_a_delete_cannot_be_merged() -> None:
    """Who wants the row to stay lets the row win."""
    assert isinstance(resolution_of_user({"k": "k", "x": 1, "v": ""}, change(Op.DELETE)), Failed)


def test_a_failure_leaves_the_row_and_refreshes_the_origin() -> None:
    """Else the origin would keep what nobody else has."""
    judged = judge(change(Op.UPDATE), row(), NOW, table(USER), resolve=lambda *_: Failed("oh"))

    assert (judged.verdict, judged.failure) == (Verdict.QUARANTINED, Failed("oh"))
    assert judged.after == row()._replace(realign=(Realign(ME, NOW),))
    assert judged.conflict is None
