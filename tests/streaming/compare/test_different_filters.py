"""Two databases that are shown different parts differ, and nothing is wrong with them."""

from dataclasses import replace

import pytest

from connectors.agent.settings import DatabaseAddress
from streaming.compare.sides import ComparedPair, ComparedSide, check_filters
from streaming.core.compare.difference import DifferenceKind
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import QuestionError
from streaming.core.model.table import ColumnType, Table
from streaming.filters.row_predicate import RowPredicate

TABLE = Table("t", ("k",), {"k": ColumnType.TEXT})


def side(name: str, condition: str | None = None, columns: str = "") -> ComparedSide:
    """A replica that is shown the rows of t by this condition, and these columns."""
    rows = {} if condition is None else {"t": RowPredicate(condition, TABLE)}
    address = None if name == "hub" else DatabaseAddress("sqlite", f"/{name}.db")
    short = {"t": ColumnFilter(frozenset(columns))} if columns else {}
    return ComparedSide(name, name, frozenset({"t", "u"}), address, rows, short)


@pytest.mark.parametrize(
    ("one", "other", "tables"),
    [
        (side("a"), side("b"), ["t"]),
        (side("a", "k = 'x'"), side("b", "k = 'x'"), ["t"]),
        (side("a", "k = 'x'"), side("b"), ["u"]),
        (side("hub"), side("b", "k = 'x'"), ["t"]),
        (side("hub"), side("b", columns="k"), ["t"]),
        (side("a", columns="k"), side("b", columns="k"), ["t"]),
    ],
)
def test_what_both_are_shown_can_be_compared(
    one: ComparedSide, other: ComparedSide, tables: list[str]
) -> None:
    """The hub is compared by what the other one is shown."""
    check_filters(one, other, tables)


@pytest.mark.parametrize("condition", [None, "k = 'y'"])
def test_who_asks_for_more_is_sent_to_the_hub(condition: str | None) -> None:
    """Each row that only one of them is shown would count as one that differs."""
    with pytest.raises(QuestionError, match="a and b are shown different rows of table t"):
        check_filters(side("a", "k = 'x'"), side("b", condition), ["u", "t"])


@pytest.mark.parametrize("columns", ["", "kv"])
def test_who_asks_for_more_columns_is_sent_to_the_hub(columns: str) -> None:
    """Each row would count as one that differs."""
    with pytest.raises(QuestionError, match="a and b are shown different columns of table t"):
        check_filters(side("a", columns="k"), side("b", columns=columns), ["u", "t"])


def test_two_archives_are_sent_to_the_hub() -> None:
    """Each may have rows that nobody else has any more."""
    first, second = (replace(side(name), keeps_deleted=True) for name in "ab")

    check_filters(first, side("c"), ["t"])
    with pytest.raises(QuestionError, match="a and b both keep what others delete"):
        check_filters(first, second, ["t"])


@pytest.mark.parametrize(
    ("keeping", "ignored"),
    [("", None), ("a", DifferenceKind.ONLY_FIRST), ("b", DifferenceKind.ONLY_SECOND)],
)
def test_rows_that_an_archive_alone_has_are_no_difference(
    keeping: str, ignored: DifferenceKind | None
) -> None:
    """Rows that it lacks are."""
    first, second = (replace(side(name), keeps_deleted=name == keeping) for name in "ab")

    pair = ComparedPair(first, second, (TABLE,), {})

    assert (pair.ignored, pair.archive) == (ignored, keeping or None)
