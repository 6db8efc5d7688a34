"""Pending lists: what becomes eligible when, by cases and against brute force."""

from collections.abc import Iterable
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.pending import Context, PendingLists

RIDS = (1, 2)


def csn(number: int) -> str:
    """A CSN of which only the order matters here."""
    return f"{number:020x}"


def lists_of(members: dict[str, list[int]], committed: Iterable[str], rid: int = 1) -> PendingLists:
    """Lists of one replica: transaction -> the numbers of its CSNs."""
    lists = PendingLists()
    for name, numbers in members.items():
        for number in numbers:
            lists.insert(csn(number), rid, (name, rid))
    for name in committed:
        lists.commit((name, rid))
    return lists


CASES = {
    "nothing is announced": ({}, "", ""),
    "one, open": ({"a": [1]}, "", ""),
    "one, committed": ({"a": [1]}, "a", "a"),
    "the highest committed does not win": ({"a": [1], "b": [2]}, "b", ""),
    "the lower one does not wait for the higher": ({"a": [1], "b": [2]}, "a", "a"),
    "both": ({"a": [1], "b": [2]}, "ba", "ab"),
    "an open one between the changes of a transaction": ({"a": [1, 3], "b": [2]}, "a", ""),
    "committed around an open one that is higher": ({"a": [1, 3], "b": [4]}, "a", "a"),
    "two that interleave": ({"a": [1, 3], "b": [2, 4]}, "ab", "ab"),
    "two that interleave around an open one": ({"a": [1, 4], "b": [2, 5], "c": [3]}, "ab", ""),
    "below the open one of an interleaved pair": ({"a": [1, 4], "b": [2], "c": [5]}, "ab", "ba"),
    "a chain is held by its last link": (
        {"a": [1, 3], "b": [2, 5], "c": [4, 7], "d": [6]},
        "abc",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_eligible_in_order_of_the_largest_csn(case: tuple[dict[str, list[int]], str, str]) -> None:
    """A transaction goes when nothing below its largest CSN stays: the RUV never runs ahead."""
    members, committed, expected = case
    lists = lists_of(members, committed)

    going = lists.eligible([1])

    assert [name for name, _ in going] == list(expected)


def test_a_transaction_over_two_lists_waits_for_both() -> None:
    """In the list of its second replica stands an open one below it."""
    lists = PendingLists()
    lists.insert(csn(1), 1, ("a", 1))
    lists.insert(csn(3), 2, ("a", 1))
    lists.insert(csn(2), 2, ("b", 2))
    lists.commit(("a", 1))

    assert lists.eligible([1]) == []
    lists.commit(("b", 2))
    assert lists.eligible([2]) == [("b", 2), ("a", 1)]


def test_a_commit_in_one_list_frees_what_is_tied_to_it_in_another() -> None:
    """Each was held by the other alone; neither list is asked for the other's sake."""
    lists = PendingLists()
    lists.insert(csn(5), 1, ("a", 1))
    lists.insert(csn(3), 2, ("a", 1))
    lists.insert(csn(7), 2, ("a", 1))
    lists.insert(csn(6), 2, ("b", 2))
    lists.commit(("b", 2))
    assert lists.eligible([2]) == []

    lists.commit(("a", 1))

    assert lists.eligible([1]) == [("b", 2), ("a", 1)]


def test_an_aborted_transaction_holds_nothing_back() -> None:
    """It leaves the lists as if it had never been announced."""
    lists = lists_of({"a": [1, 3], "b": [2, 4]}, "b")

    assert lists.remove(("a", 1)) == (csn(1), csn(3))
    assert lists.eligible([1]) == [("b", 1)]
    assert lists.open_of(1) == ()


def test_one_that_is_not_ready_holds_back_what_is_above_it() -> None:
    """A hole in the opnos below a transaction keeps it, and all that comes after it."""
    lists = lists_of({"a": [1], "b": [2], "c": [3]}, "abc")

    assert lists.eligible([1], lambda context: context[0] != "b") == [("a", 1)]


def test_a_commit_of_an_unknown_transaction_says_so() -> None:
    """It is counted and ignored by who asked."""
    assert not PendingLists().commit(("a", 1))


def test_a_copy_stands_alone() -> None:
    """A batch that is not committed must leave no trace."""
    lists = lists_of({"a": [1], "b": [2]}, "a")

    copied = lists.copy()
    copied.remove(("a", 1))
    copied.insert(csn(9), 1, ("b", 1))
    copied.commit(("b", 1))

    assert lists == lists_of({"a": [1], "b": [2]}, "a")


entries = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from(RIDS)), min_size=1, max_size=9
)


@given(entries, st.sets(st.sampled_from("abcde")), st.sets(st.sampled_from("abcde"), min_size=3))
def test_the_fixpoint_is_the_largest_set_that_may_go(
    announced: list[tuple[str, int]], committed: set[str], ready: set[str]
) -> None:
    """Tried against every set of transactions; a union of sets that may go may go."""
    lists = PendingLists()
    for number, (name, rid) in enumerate(announced):
        lists.insert(csn(number), rid, (name, 1))
    for name in sorted(committed):
        lists.commit((name, 1))

    going = lists.eligible(RIDS, lambda context: context[0] in ready)

    candidates = sorted(c for c in lists.committed if c[0] in ready)
    subsets = chain.from_iterable(combinations(candidates, n) for n in range(len(candidates) + 1))
    assert set(going) == max((set(s) for s in subsets if _may_go(lists, set(s))), key=len)
    assert going == sorted(going, key=lambda c: max(lists.members[c]))
    for rid in RIDS:
        asked = lists.eligible([rid], lambda context: context[0] in ready)
        assert {c for c in going if rid in lists.rids_of(c)} <= set(asked) <= set(going)


def _may_go(lists: PendingLists, going: set[Context]) -> bool:
    """Claim that nothing below the largest CSN of each of them stays behind."""
    return all(
        other in going
        for context in going
        for rid in lists.rids_of(context)
        for number, other in lists.by_rid[rid]
        if number < max(lists.members[context])
    )
