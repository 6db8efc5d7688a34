"""Pending lists: what becomes eligible when, by cases and against brute force."""

from collections.abc import Iterable
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.state.pending import Context, ListKey, PendingLists
from tests.harness.builders import csn

ONE, TWO, OTHER = ("default", 1), ("default", 2), ("other", 1)
LISTS = (ONE, TWO, OTHER)


def lists_of(members: dict[str, list[int]], committed: Iterable[str]) -> PendingLists:
    """One list of one replica: transaction -> the numbers of its CSNs."""
    lists = PendingLists()
    for name, numbers in members.items():
        for number in numbers:
            lists.insert(csn(number), ONE, (name, 1))
    for name in committed:
        lists.commit((name, 1))
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

    going = lists.eligible([ONE])

    assert [name for name, _ in going] == list(expected)


def test_the_highest_committed_csn_does_not_win() -> None:
    """389's roll-up of issue 359: a consumer whose RUV covers 3 is never sent what 1 and 2 were."""
    lists = lists_of({"a": [1], "b": [2], "c": [3]}, "c")
    highest_committed = max(c for c, context in lists.by_list[ONE] if context in lists.committed)
    assert highest_committed == csn(3)

    assert lists.eligible([ONE]) == []
    lists.commit(("a", 1))
    assert lists.eligible([ONE]) == [("a", 1)]


def test_a_context_is_the_primary_csn_and_who_announced_it() -> None:
    """The same prim_csn in two topics names two operations: an end of one ends one."""
    lists = PendingLists()
    lists.insert(csn(2), ONE, (csn(1), 1))
    lists.insert(csn(3), TWO, (csn(1), 2))

    assert lists.open_of(1) == ((csn(1), 1),)
    assert lists.open_with(csn(1)) == ((csn(1), 1), (csn(1), 2))
    assert lists.open_with(csn(3)) == ((csn(1), 2),)
    assert lists.remove((csn(1), 2)) == (csn(3),)
    assert lists.open_of(1) == ((csn(1), 1),)


def test_insertion_keeps_a_list_in_csn_order() -> None:
    """Parallel operations announce in any order; roll-up goes from the smallest."""
    lists = lists_of({"b": [2, 5], "a": [1], "c": [4]}, "ca")

    assert [number for number, _ in lists.by_list[ONE]] == [csn(n) for n in (1, 2, 4, 5)]
    assert lists.eligible([ONE]) == [("a", 1)]


def test_nested_csns_of_other_rids_and_data_sets_are_cancelled_with_their_primary() -> None:
    """None of them survives, so none may move a RUV or hold one back (2.2 and 2.3)."""
    lists = PendingLists()
    for number, key in ((1, ONE), (2, TWO), (3, OTHER)):
        lists.insert(csn(number), key, ("a", 1))
    for number, key in ((4, TWO), (5, OTHER)):
        lists.insert(csn(number), key, (f"b{number}", key[1]))
        lists.commit((f"b{number}", key[1]))
    assert lists.eligible(LISTS) == []

    assert lists.remove(("a", 1)) == (csn(1), csn(2), csn(3))
    assert lists.eligible(LISTS) == [("b4", 2), ("b5", 1)]
    assert ONE not in lists.by_list


def test_a_transaction_in_two_data_sets_goes_at_once_or_not_at_all() -> None:
    """A consumer of one data set must not see the half of what the other may still abort."""
    lists = PendingLists()
    lists.insert(csn(2), ONE, ("a", 1))
    lists.insert(csn(4), OTHER, ("a", 1))
    lists.insert(csn(3), OTHER, ("b", 1))
    lists.commit(("a", 1))

    assert lists.eligible([ONE, OTHER]) == []
    lists.commit(("b", 1))
    assert lists.eligible([OTHER]) == [("b", 1), ("a", 1)]


def test_what_is_open_above_it_in_a_list_holds_nothing_back_there() -> None:
    """Each list rolls up on its own: below 2 nothing is open here, whatever 4 is there."""
    lists = PendingLists()
    lists.insert(csn(2), ONE, ("a", 1))
    lists.insert(csn(4), OTHER, ("a", 1))
    lists.insert(csn(3), ONE, ("b", 1))
    lists.commit(("a", 1))

    assert lists.eligible([ONE]) == [("a", 1)]


def test_a_transaction_over_two_lists_waits_for_both() -> None:
    """In the list of its second replica stands an open one below it."""
    lists = PendingLists()
    lists.insert(csn(1), ONE, ("a", 1))
    lists.insert(csn(3), TWO, ("a", 1))
    lists.insert(csn(2), TWO, ("b", 2))
    lists.commit(("a", 1))

    assert lists.eligible([ONE]) == []
    lists.commit(("b", 2))
    assert lists.eligible([TWO]) == [("b", 2), ("a", 1)]


def test_a_commit_in_one_list_frees_what_is_tied_to_it_in_another() -> None:
    """Each was held by the other alone; eligibility checks both lists."""
    lists = PendingLists()
    lists.insert(csn(5), ONE, ("a", 1))
    lists.insert(csn(3), TWO, ("a", 1))
    lists.insert(csn(7), TWO, ("a", 1))
    lists.insert(csn(6), TWO, ("b", 2))
    lists.commit(("b", 2))
    assert lists.eligible([TWO]) == []

    lists.commit(("a", 1))

    assert lists.eligible([ONE]) == [("b", 2), ("a", 1)]


def test_an_aborted_transaction_holds_nothing_back() -> None:
    """It leaves the lists as if it had never been announced."""
    lists = lists_of({"a": [1, 3], "b": [2, 4]}, "b")

    assert lists.remove(("a", 1)) == (csn(1), csn(3))
    assert lists.eligible([ONE]) == [("b", 1)]
    assert lists.open_of(1) == ()


def test_one_that_is_not_ready_holds_back_what_is_above_it() -> None:
    """A hole in the opnos below a transaction keeps it, and all that comes after it."""
    lists = lists_of({"a": [1], "b": [2], "c": [3]}, "abc")

    assert lists.eligible([ONE], lambda context: context[0] != "b") == [("a", 1)]


def test_a_commit_of_an_unknown_transaction_says_so() -> None:
    """The caller counts and ignores it."""
    assert not PendingLists().commit(("a", 1))


def test_a_copy_stands_alone() -> None:
    """A batch that is not committed must leave no trace."""
    lists = lists_of({"a": [1], "b": [2]}, "a")

    copied = lists.copy()
    copied.remove(("a", 1))
    copied.insert(csn(9), ONE, ("b", 1))
    copied.commit(("b", 1))

    assert lists == lists_of({"a": [1], "b": [2]}, "a")


entries = st.lists(
    st.tuples(st.sampled_from("abcde"), st.sampled_from(LISTS)), min_size=1, max_size=9
)


@given(entries, st.sets(st.sampled_from("abcde")), st.sets(st.sampled_from("abcde"), min_size=3))
def test_the_fixpoint_is_the_largest_set_that_may_go(
    announced: list[tuple[str, ListKey]], committed: set[str], ready: set[str]
) -> None:
    """Tried against every set of transactions; a union of sets that may go may go."""
    lists = PendingLists()
    for number, (name, key) in enumerate(announced):
        lists.insert(csn(number), key, (name, 1))
    for name in sorted(committed):
        lists.commit((name, 1))

    going = lists.eligible(LISTS, lambda context: context[0] in ready)

    candidates = sorted(c for c in lists.committed if c[0] in ready)
    subsets = chain.from_iterable(combinations(candidates, n) for n in range(len(candidates) + 1))
    assert set(going) == max((set(s) for s in subsets if _may_go(lists, set(s))), key=len)
    assert going == sorted(going, key=lambda c: max(lists.members[c]))
    for key in LISTS:
        eligible = lists.eligible([key], lambda context: context[0] in ready)
        assert {c for c in going if key in lists.lists_of(c)} <= set(eligible) <= set(going)


def _may_go(lists: PendingLists, going: set[Context]) -> bool:
    """Return whether nothing is left below the largest CSN of each in each of its lists."""
    return all(
        other in going
        for context in going
        for key in lists.lists_of(context)
        for number, other in lists.by_list[key]
        if number < max(c for c, where in lists.members[context].items() if where == key)
    )


deeds = st.lists(
    st.tuples(
        st.sampled_from(["announce", "announce", "announce", "commit", "commit", "cancel"]),
        st.sampled_from("abcd"),
        st.sampled_from(LISTS),
    ),
    max_size=40,
)


@given(deeds)
def test_a_ruv_never_passes_what_is_open_and_never_covers_what_was_cancelled(
    done: list[tuple[str, str, ListKey]],
) -> None:
    """The law of document 001: whatever a RUV's max names is in the changelog, and all below it."""
    lists, maxima, judged, announced = PendingLists(), dict[ListKey, str](), set[str](), set[str]()
    for number, (deed, name, key) in enumerate(done):
        context = (name, 1)
        match deed:
            case "announce" if context not in lists.committed:
                lists.insert(csn(number), key, context)
                announced.add(csn(number))
            case "commit":
                lists.commit(context)
            case "cancel" if context not in lists.committed:
                announced -= set(lists.remove(context))
            case _:
                pass
        for gone in lists.eligible(LISTS):
            assert gone in lists.committed
            for text, where in lists.members[gone].items():
                maxima[where] = max(text, maxima.get(where, ""))
                judged.add(text)
        for gone in lists.eligible(LISTS):
            lists.remove(gone)

        assert set(maxima.values()) <= judged
        for where, entries_of_it in lists.by_list.items():
            assert all(text > maxima.get(where, "") for text, _ in entries_of_it)
        left = {text for csns in lists.members.values() for text in csns}
        assert judged | left == announced
