"""Tables that are chosen by name or by pattern."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.config.named_tables import by_table, chosen, unknown

TABLES = ["orders", "tenant_1.orders", "tenant_2.orders", "tenant_1.items", "a*b", "a+b"]


@pytest.mark.parametrize(
    ("named", "found"),
    [
        (["*"], set(TABLES)),
        (["orders"], {"orders"}),
        (["tenant_*.orders"], {"tenant_1.orders", "tenant_2.orders"}),
        (["*orders", "tenant_1.items"], set(TABLES[:4])),
        (["tenant_1*orders*"], {"tenant_1.orders"}),
        (["a*b"], {"a*b", "a+b"}),
        (["a+b"], {"a+b"}),
        (["tenant_?.orders", "tenant_[12].orders", "order", "rders"], set()),
    ],
)
def test_only_the_asterisk_stands_for_other_text(named: list[str], found: set[str]) -> None:
    """Names of tables may have any other sign; a point is no sign of a pattern."""
    assert chosen(named, TABLES) == found


NAMES = st.text("ab*\n.", min_size=1, max_size=6)


@given(st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=6, unique=True))
def test_each_name_is_chosen_by_itself_and_each_fault_chooses_nothing(
    named: list[str], tables: list[str]
) -> None:
    """A name that is configured is found whatever it consists of, and no name is passed over."""
    assert chosen(tables, tables) == set(tables)
    assert len(list(unknown(named, tables))) == sum(not chosen([one], tables) for one in named)


def test_the_first_condition_that_names_a_table_holds() -> None:
    """A pattern may stand behind the tables that are exceptions."""
    rows = {"tenant_1.orders": "one", "tenant_*": "all", "*": "none"}

    found = by_table(rows, ["tenant_1.orders", "tenant_2.orders", "zebra"])

    assert found == {"tenant_1.orders": "one", "tenant_2.orders": "all", "zebra": "none"}


def test_who_errs_reads_the_near_names() -> None:
    """Of a thousand tables the reader wants those that were meant."""
    said = [*unknown(["tenant_*.order", "nothing.like.it"], ["tenant_1.orders", "zebra"])]

    assert said == [
        "'tenant_*.order' matches no table: use some of tenant_1.orders, or [\"*\"] for all",
        "'nothing.like.it' is no table: use some of tenant_1.orders, zebra, or [\"*\"] for all",
    ]
