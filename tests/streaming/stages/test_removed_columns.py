"""Rows have the values of columns that are configured no more: they are sent to nobody."""

import pyarrow as pa

from streaming.core.model.column_filter import ColumnFilter
from streaming.core.state.topology import Subscription
from streaming.stages.filtered import cut, with_shown_columns

ROW = '{"k":"1","v":"x","gone":"y"}'
SENT = '{"k":"1","v":"x"}'
KNOWN = {"t": ColumnFilter(frozenset({"k", "v"}))}


def test_a_column_that_is_configured_no_more_is_sent_to_nobody() -> None:
    """By changes and by ranges; of other tables nothing is cut."""
    one = Subscription("a1", 1, frozenset("tu"), configured=KNOWN)
    log = pa.table({"table": ["t", "u"], "image": [ROW, ROW]})

    is_cut, images = cut(log, one)

    assert (is_cut.tolist(), images.to_pylist()) == ([True, False], [SENT])
    assert with_shown_columns(log, "t", one)["image"].to_pylist() == [SENT, SENT]
    assert with_shown_columns(log, "u", one)["image"].to_pylist() == [ROW, ROW]


def test_a_list_of_columns_says_it_already() -> None:
    """And removing a column is no other list, so nothing is scanned for it."""
    listed = {"t": ColumnFilter(frozenset({"k"}))}
    one = Subscription("a1", 1, frozenset("t"), columns=listed, configured=KNOWN)

    assert one.cuts == listed
    assert one.sends_as(Subscription("a1", 1, frozenset("t"), columns=listed), "t")
    assert one.has_filters
