"""A value that one database keeps may not fit into another one's column."""

import pytest

from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.compare import compared
from streaming.core.schema.document import DatabaseSchema, SchemaColumn, SchemaTable, SchemaUnique
from streaming.core.schema.limits import condition_of, limiting_check

T = ColumnType
SHOP = Table("shop", ("id",), {"id": T.INT64, "price": T.DECIMAL})
PLAIN = SchemaColumn("price", "NUMERIC", "NUMERIC")
WIDE = SchemaColumn("price", "numeric", "numeric")
NARROW = SchemaColumn("price", "numeric(6,2)", "numeric", limit="numeric(6,2)")
OTHER = SchemaColumn("price", "numeric(9,2)", "numeric", limit="numeric(9,2)")


SAID = 'abs("price") < 1e4 AND "price" + 0 = round("price", 2)'


def schema(
    replica: str, product: str, price: SchemaColumn, checks: tuple[str, ...] = ()
) -> DatabaseSchema:
    """A database with this column."""
    id_ = SchemaColumn("id", "", "integer")
    table = SchemaTable("shop", (id_, price), (SchemaUnique(("id",), ("",)),), checks)
    is_limiting = product.startswith("PostgreSQL")
    return DatabaseSchema(replica, product, "UTF8", (table,), declares_limits=is_limiting)


def limits_of(*schemas: DatabaseSchema) -> list[tuple[str, dict[str, str], bool]]:
    """The differences between these schemas."""
    rids = {one.replica: number for number, one in enumerate(schemas, 1)}
    found = compared(schemas, [SHOP], rids).differences
    return [(one.subject, dict(one.at), one.matters) for one in found]


B = schema("b", "PostgreSQL 15", NARROW)


@pytest.mark.parametrize(
    ("product", "price", "shown"),
    [
        ("PostgreSQL 15", WIDE, "no limit"),
        ("MariaDB 11", OTHER, "numeric(9,2)"),
        ("PostgreSQL 15", OTHER, "numeric(9,2)"),
        ("PostgreSQL 15", NARROW, None),
    ],
)
def test_a_limit_that_others_could_declare_and_do_not_is_named(
    product: str, price: SchemaColumn, shown: str | None
) -> None:
    """Once, and as what will refuse rows, also between databases of several products."""
    at = limits_of(B, schema("l", product, price))

    expected = ("column price, limit", {"b": "numeric(6,2)", "l": shown}, True)
    assert at == ([] if shown is None else [expected])


def test_a_database_that_cannot_declare_a_limit_is_no_fault() -> None:
    """The ordinary cluster of two products is listed with its remedy, and is in order."""
    found = compared([B, schema("l", "SQLite 3.40", PLAIN)], [SHOP], {"b": 1, "l": 2})

    (one,) = found.differences
    assert one.at == {"b": "numeric(6,2)", "l": "no limit"}
    assert one.remedy == f"l cannot declare it: say it there by CHECK ({SAID})"
    assert "`slackwater status` lists the row as differing" in one.causes
    assert found.is_good


def test_two_limits_differ_whatever_a_third_database_cannot_declare() -> None:
    """The one that can be set right is not hidden by the one that cannot."""
    other = schema("c", "PostgreSQL 15", OTHER)

    found = limits_of(B, other, schema("l", "SQLite 3.40", PLAIN))

    at = {"b": "numeric(6,2)", "c": "numeric(9,2)", "l": "no limit"}
    assert found == [("column price, limit", at, True)]


@pytest.mark.parametrize(
    ("check", "shown"),
    [
        (SAID, None),
        ("(ABS(price) < 1e4 and price+0 = round(price, 2))", None),
        (SAID.replace("1e4", "1e7"), SAID.replace("1e4", "1e7")),
    ],
)
def test_a_condition_that_says_a_limit_is_compared_with_the_limits(
    check: str, shown: str | None
) -> None:
    """Who followed the remedy has no difference left; who says another limit has one."""
    found = limits_of(B, schema("l", "SQLite 3.40", PLAIN, (check,)))

    at = {"b": "numeric(6,2)", "l": f"CHECK {shown}"}
    assert found == ([] if shown is None else [("column price, limit", at, True)])


def test_a_condition_that_says_more_is_still_one_of_one_product_only() -> None:
    """Nobody can tell whether a row that it lets in has a place everywhere."""
    found = limits_of(B, schema("l", "SQLite 3.40", PLAIN, ("price < 10", SAID)))

    assert [(subject, matters) for subject, _, matters in found] == [("conditions", True)]


def test_a_limit_that_no_condition_is_known_for_is_listed_too() -> None:
    """Then the application has to keep to it."""
    bits = SchemaColumn("price", "bit(3)", "bit", limit="bit(3)")
    schemas = [schema("b", "PostgreSQL 15", bits), schema("l", "SQLite 3.40", PLAIN)]

    (one,) = compared(schemas, [SHOP], {"b": 1, "l": 2}).differences

    assert one.remedy.endswith("see in the application that no other value is written")
    assert not one.matters


@pytest.mark.parametrize(
    ("limit", "condition"),
    [
        ("character varying(20)", 'length("price") <= 20'),
        ("character(5)", 'length("price") <= 5'),
        ("numeric(6,0)", 'abs("price") < 1e6 AND "price" + 0 = round("price", 0)'),
        ("numeric(16,2)", None),
        ("numeric(2,-3)", None),
        ("bit(3)", None),
    ],
)
def test_what_a_limit_refuses_is_refused_by_a_condition(limit: str, condition: str | None) -> None:
    """Whose words are known again where they are declared."""
    assert condition_of("price", limit) == condition
    assert limiting_check("price", [condition or limit]) == condition
    assert limiting_check("rice", [condition or limit]) is None
