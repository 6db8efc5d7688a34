"""A value that one database keeps may not fit into another one's column."""

import pytest

from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.compare import compared
from streaming.core.schema.document import DatabaseSchema, SchemaColumn, SchemaTable, SchemaUnique

T = ColumnType
SHOP = Table("shop", ("id",), {"id": T.INT64, "price": T.DECIMAL})
PLAIN = SchemaColumn("price", "NUMERIC", "NUMERIC")
WIDE = SchemaColumn("price", "numeric", "numeric")
NARROW = SchemaColumn("price", "numeric(6,2)", "numeric", limit="numeric(6,2)")
OTHER = SchemaColumn("price", "numeric(9,2)", "numeric", limit="numeric(9,2)")


def schema(replica: str, product: str, price: SchemaColumn) -> DatabaseSchema:
    """A database with this column."""
    id_ = SchemaColumn("id", "", "integer")
    table = SchemaTable("shop", (id_, price), (SchemaUnique(("id",), ("",)),))
    return DatabaseSchema(replica, product, "UTF8", (table,))


@pytest.mark.parametrize(
    ("product", "price", "shown"),
    [
        ("SQLite 3.40", PLAIN, "no limit"),
        ("PostgreSQL 15", WIDE, "no limit"),
        ("PostgreSQL 15", OTHER, "numeric(9,2)"),
        ("PostgreSQL 15", NARROW, None),
    ],
)
def test_a_limit_that_others_do_not_have_is_named(
    product: str, price: SchemaColumn, shown: str | None
) -> None:
    """Once, and as what will refuse rows, also between databases of several products."""
    schemas = [schema("b", "PostgreSQL 15", NARROW), schema("l", product, price)]

    found = compared(schemas, [SHOP], {"b": 1, "l": 2}).differences

    at = [(one.subject, one.at, one.matters) for one in found]
    expected = ("column price, limit", {"b": "numeric(6,2)", "l": shown}, True)
    assert at == ([] if shown is None else [expected])
