"""How far a consumer lags, by the hub epochs that were committed lately."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from streaming.core.delivery.epoch_history import (
    SPANS_MAX,
    EpochHistory,
    EpochSpan,
    LagBehind,
)

ME, OTHER = 1, 2
TABLES = ("t",)


def spans(counts: Sequence[tuple[int, int]]) -> list[EpochSpan]:
    """Hub epoch n is committed at n seconds, with so many changes of me and of the other."""
    return [
        EpochSpan(n, n * 1_000, {(ME, "t"): mine, (OTHER, "t"): theirs, (OTHER, "u"): 1})
        for n, (mine, theirs) in enumerate(counts, 1)
    ]


def history(counts: Sequence[tuple[int, int]], acked: int = 0) -> EpochHistory:
    """The history when all of these are committed."""
    found = EpochHistory()
    for one in spans(counts):
        found = found.added(one, acked)
    return found


def test_a_lag_counts_what_others_wrote_to_the_tables_that_one_is_sent() -> None:
    """A replica does not wait for its own changes, nor for tables that it does not get."""
    found = history([(1, 1), (5, 0), (0, 3)])

    assert found.behind(1, TABLES, ME) == LagBehind(2_000, 3)
    assert found.behind(3, TABLES, ME) == LagBehind(None, 0)
    assert found.lacking(1, TABLES, OTHER) == LagBehind(3_000, 3)
    assert found.lacking(1, TABLES, 3) == LagBehind(None, 0)


def test_what_is_too_long_ago_is_not_guessed() -> None:
    """A lag of nothing would be the worst of answers."""
    found = history([(0, 1)] * 5, acked=2)

    assert found.behind(1, TABLES, ME) is None
    assert found.lacking(1, TABLES, OTHER) is None
    assert found.behind(2, TABLES, ME) == LagBehind(3_000, 3)
    assert found.preceded_by(history([(0, 1)] * 3)).behind(1, TABLES, ME) == LagBehind(2_000, 4)


def test_a_long_history_stays_small_and_never_says_too_little() -> None:
    """A consumer may be away for days."""
    count = 10 * SPANS_MAX
    long = history([(0, 1)] * count)

    assert len(long.spans) <= SPANS_MAX
    for position in range(0, count, 97):
        lag = long.behind(position, TABLES, ME)
        assert lag is not None
        assert lag.changes >= count - position
        assert lag.since_ms is not None
        assert lag.since_ms <= (position + 1) * 1_000
    assert long.behind(0, TABLES, ME) == LagBehind(1_000, count)
    assert long.behind(count - 1, TABLES, ME) == LagBehind(count * 1_000, 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20), st.data())
def test_the_lags_by_origin_add_up(counts: list[tuple[int, int]], data: st.DataObject) -> None:
    """The matrix and the lag of the agreement are one fact."""
    found = history(counts)
    position = data.draw(st.integers(0, len(counts)))

    whole = found.behind(position, TABLES, ME)
    parts = [found.lacking(position, TABLES, rid) for rid in (OTHER, 3)]

    assert whole is not None
    assert whole.changes == sum(one.changes for one in parts if one is not None)
