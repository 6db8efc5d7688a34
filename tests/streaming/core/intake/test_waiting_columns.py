"""Which changes go on by themselves once the configuration has their column."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.intake.waiting_columns import WaitingChange, going_on

NOBODY: frozenset[tuple[str, int]] = frozenset()


def waiting(
    number: int, row: str = "r", rid: int = 1, tx: str | None = None, **others: bool
) -> WaitingChange:
    """The change at this offset of a replica's topic; `tx`: of that transaction."""
    id_ = f"{rid}-{number}"
    context = (tx or id_, rid)
    return WaitingChange(id_, rid, number, number, context, ("t", row), number, **others)


def goes(*changes: WaitingChange, committed: str = "", most: int = 100) -> list[str]:
    """The ids of those that go on; `committed`: the transactions of replica 1 that are."""
    alone = {one.context for one in changes if one.context[0] == one.id}
    known = {*alone, *((tx, 1) for tx in committed.split())}
    return [one.id for one in going_on(changes, known, most)]


def test_changes_go_on_in_the_order_of_their_topic() -> None:
    """Of a row the newest has to stand at last."""
    assert goes(waiting(3), waiting(1), waiting(2, "other")) == ["1-1", "1-2", "1-3"]


def test_what_is_not_valid_stays() -> None:
    """Another column of it is not configured yet."""
    assert goes(waiting(1, is_valid=False), waiting(2, "other")) == ["1-2"]


def test_an_older_change_stays_below_one_that_stays() -> None:
    """The hub would send it to its replica, over what that wrote later."""
    assert goes(waiting(1), waiting(2, is_valid=False), waiting(3, "other")) == ["1-3"]


def test_a_newer_change_goes_on_without_an_older_one() -> None:
    """It holds the whole row."""
    assert goes(waiting(1, is_valid=False), waiting(2)) == ["1-2"]


def test_what_is_overwritten_stays_alone() -> None:
    """The row that stands is newer; the rest of its transaction is nowhere else."""
    changes = waiting(1, tx="x", is_overwritten=True), waiting(2, "other", tx="x")

    assert goes(*changes, committed="x") == ["1-2"]


def test_what_is_contended_stays_with_its_transaction_and_what_is_below_it() -> None:
    """The hub wrote the row, and would overwrite that without a conflict."""
    contended = waiting(2, is_contended=True, tx="x"), waiting(3, "other", tx="x")

    assert goes(waiting(1), *contended, waiting(4, "s"), committed="x") == ["1-4"]


def test_a_transaction_goes_whole_or_stays() -> None:
    """Half of one must not be judged."""
    half = waiting(1, "p", tx="x"), waiting(2, "q", tx="x", is_valid=False)

    assert goes(*half, waiting(3, "s", tx="y"), committed="x y") == ["1-3"]


def test_a_transaction_waits_for_its_commit() -> None:
    """It may be aborted; then its rows are in no database."""
    assert goes(waiting(1, tx="x"), waiting(2, "other", tx="y"), committed="y") == ["1-2"]


def test_what_stays_holds_what_is_below_it_with_all_of_its_transaction() -> None:
    """Over as many transactions as there are."""
    found = goes(
        waiting(1, "o", tx="w"),
        waiting(2, "p", tx="w"),
        waiting(3, "p", tx="x"),
        waiting(4, "q", tx="x"),
        waiting(5, "q", is_valid=False),
        waiting(6, "s"),
        committed="w x",
    )

    assert found == ["1-6"]


def test_of_a_row_of_two_replicas_those_of_the_first_go_on() -> None:
    """The hub writes them all, so it would overwrite one without a conflict."""
    changes = waiting(1), waiting(2, rid=2), waiting(3), waiting(4, "other", rid=2)

    assert goes(*changes) == ["1-1", "1-3", "2-4"]


def test_who_is_held_makes_no_room_for_nobody() -> None:
    """The first of a row that cannot go on is no reason that the other one waits."""
    assert goes(waiting(1, is_valid=False), waiting(2, rid=2)) == ["2-2"]


def test_no_more_go_on_at_once_but_each_transaction_whole() -> None:
    """A batch takes so many commands."""
    changes = waiting(1, "p"), waiting(2, "q", tx="x"), waiting(3, "s", tx="x"), waiting(4, "u")

    assert goes(*changes, committed="x", most=2) == ["1-1", "1-2", "1-3"]


@st.composite
def waitings(draw: st.DrawFn) -> list[WaitingChange]:
    """Changes of two replicas on few rows, in few transactions."""
    facts = st.tuples(
        st.sampled_from("pqs"),
        st.sampled_from((1, 2)),
        st.sampled_from((None, "x", "y")),
        st.booleans(),
        st.booleans(),
    )
    return [
        waiting(n, row, rid, tx, is_valid=valid or n % 3 > 0, is_overwritten=over and n % 4 == 0)
        for n, (row, rid, tx, valid, over) in enumerate(draw(st.lists(facts, max_size=12)))
    ]


@given(waitings(), st.frozensets(st.sampled_from([("x", 1), ("y", 1), ("x", 2)])))
def test_what_goes_on_breaks_nothing(
    changes: list[WaitingChange], committed: frozenset[tuple[str, int]]
) -> None:
    """The laws at once, whatever waits: whole transactions, no row backwards, one replica a row."""
    known = {*committed, *(one.context for one in changes if one.context[0] == one.id)}

    found = going_on(changes, known, 1_000)

    gone = {one.id for one in found}
    contexts = {one.context for one in found}
    for one in changes:
        if one.context in contexts:
            assert one.is_valid
            assert one.is_overwritten or one.id in gone
            assert one.context in known
        elif not one.is_overwritten:
            older = [o for o in found if (o.rid, o.row) == (one.rid, one.row)]
            assert all(o.place > one.place for o in older)
    owners = {(one.row, one.rid) for one in found}
    assert len(owners) == len({row for row, _ in owners})
    assert found == sorted(found, key=lambda one: one.place)
