"""Which rounds of a comparison may go once they are old."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.retention.rounds import rounds_that_count
from tests.harness.examples import examples

ENDED = {"agreement": "b", "settled": {}}
DOCUMENTS = st.builds(
    lambda agreement, reason, tables: (
        {"agreement": agreement, "reason": "away"}
        if reason
        else {"agreement": agreement, "settled": {table: {"x": 1} for table in tables}}
    ),
    st.sampled_from("bc"),
    st.booleans(),
    st.lists(st.sampled_from("tu"), max_size=2),
)


def told(rounds: list[tuple[int, dict[str, Any]]]) -> tuple[object, ...]:
    """What a reader of these rounds knows, folded in their order."""
    ended, failed, settled = dict[str, int](), dict[str, int](), dict[tuple[str, str], int]()
    for number, document in rounds:
        agreement = document["agreement"]
        if "reason" in document:
            failed[agreement] = number
            continue
        ended[agreement] = number
        failed.pop(agreement, None)
        settled |= {(agreement, table): number for table in document["settled"]}
    return ended, failed, settled


@examples(100)
@given(st.lists(DOCUMENTS, max_size=12), st.integers(0, 12))
def test_a_reader_knows_the_same_without_what_counts_no_more(
    documents: list[dict[str, Any]], old: int
) -> None:
    """However many of them are old enough to go."""
    rounds = [*enumerate(documents)]
    kept = rounds_that_count(rounds[:old])

    assert told([one for one in rounds if one[0] >= old or one[0] in kept]) == told(rounds)


def test_a_round_that_was_repeated_goes() -> None:
    """Each hour one is recorded, for years."""
    assert rounds_that_count([(n, ENDED) for n in range(5)]) == {4}
