"""The window holds what judging needs and nothing more, as its rule says a row at a time."""

import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.conflict.truncate import summary
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.row import Realign, RowState
from streaming.core.model.row_name import text_of
from streaming.core.model.truncation import Truncation
from streaming.stages.csns import csn_numbers, csn_texts
from streaming.stages.identities import Identities, RowHash
from streaming.stages.window import Window
from tests.reference.window import NamedRows

KEYS = [(table, key) for table in "tu" for key in ("a", "b", "c", "")]
NUMBERS = st.integers(0, 0xFFFF)
CSNS = st.builds(CsnParts, st.integers(0, 0xFFFF_FFFF), NUMBERS, NUMBERS, NUMBERS).map(format_csn)
REALIGNS = st.builds(
    Realign, st.integers(1, 3), st.integers(1, 12), st.integers(-1, 5), st.booleans()
)
ROWS = st.builds(
    RowState,
    st.integers(0, 0xFFFF),
    st.integers(0, 12),
    st.none() | CSNS,
    exists=st.booleans(),
    image=st.none(),
    realign=st.lists(REALIGNS, max_size=2).map(tuple),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.dictionaries(st.sampled_from(KEYS), ROWS)),
        st.tuples(st.just("truncate"), st.sampled_from("tu"), st.integers(1, 12), CSNS),
        st.tuples(st.just("advance"), st.integers(0, 12)),
        st.tuples(st.just("shrink"), st.integers(0, 6)),
    ),
    max_size=8,
)


class AlikeByHalf(RowHash):
    """Rows whose identities are equal in one half, and whose places in the table are the same."""

    def of(self, names: pa.Array) -> Identities:
        """The same with one of two first halves."""
        found = RowHash.of(self, names)
        return Identities(found.high & np.uint64(1), found.low)


@pytest.mark.parametrize("hashes", [RowHash, AlikeByHalf])
@given(STEPS)
def test_it_holds_what_the_rule_says(
    hashes: Callable[[], RowHash], steps: list[tuple[Any, ...]]
) -> None:
    """One row too few is a lost conflict; one too many is memory that never comes back."""
    window, rule = Window(hashes=hashes()), NamedRows()
    for what, *how in steps:
        if what == "put":
            window.put({text_of(key): row for key, row in how[0].items()})
            rule.put(how[0])
        elif what == "truncate":
            truncation = Truncation(2, *how[1:])
            window.truncate(how[0], truncation)
            rule.truncate(how[0], truncation)
        else:
            getattr(window, what)(*how)
            getattr(rule, what)(*how)

        assert window.edge == rule.edge
        assert window.held(KEYS) == rule.rows
        assert len(window) == len(rule.rows)
        for table in "tu":
            stands = [row for key, row in rule.rows.items() if key[0] == table and key[1]]
            assert in_order(window.newest_of(table, [""])) == in_order(stands)
            is_held = (table, "a") in rule.rows
            assert window.holds(table, ["a", "d"]) == ({"a"} if is_held else set())


def test_a_window_stays_small_and_forgets_for_good() -> None:
    """What it has forgotten has no place in it, and what it holds has one place however often."""
    rows = [
        {
            text_of(("t", str(epoch % 20 * 1_000 + number))): RowState(1, epoch, csn, exists=True)
            for number in range(2_000)
        }
        for epoch in range(1, 40)
        for csn in [format_csn(CsnParts(epoch, 0, 1, 0))]
    ]
    tracemalloc.start()
    window = Window()
    for epoch, one in enumerate(rows, 1):
        window.put(one)
        window.advance(epoch - 5)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(window) == 6_000
    assert used < 6_000 * 130


@given(st.lists(CSNS | st.none(), max_size=5))
def test_numbers_of_csns_are_one_to_one_and_in_their_order(csns: list[str | None]) -> None:
    """A row's CSN names the version that it is."""
    known = [one for one in csns if one is not None]

    numbers = csn_numbers(pa.array(known, pa.string()))

    assert csn_texts(numbers).to_pylist() == known
    ordered = sorted(range(len(known)), key=lambda n: (numbers.high[n], numbers.low[n]))
    assert [known[number] for number in ordered] == sorted(known)


@given(st.lists(st.text(max_size=12) | st.text("ab", min_size=250, max_size=270), min_size=1))
def test_rows_have_one_identity_if_they_have_one_name(names: list[str]) -> None:
    """Whatever stands beside them in a batch, and however long it is."""
    hashes = RowHash()
    together = hashes.of(pa.array(names))

    alone = [hashes.of(pa.array([name])) for name in names]

    assert [int(one.high[0]) for one in alone] == together.high.tolist()
    assert [int(one.low[0]) for one in alone] == together.low.tolist()
    different = set(zip(together.high.tolist(), together.low.tolist(), strict=True))
    assert len(different) == len(set(names))


def in_order(rows: Iterable[RowState]) -> list[RowState]:
    """What stands for them, of which something is known; a summary has no order."""
    named = (row._replace(csn=row.csn or "") for row in summary(rows) if row != RowState())
    return sorted(row._replace(realign=tuple(sorted(row.realign))) for row in named)
