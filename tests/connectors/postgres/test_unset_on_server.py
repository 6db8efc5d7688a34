"""A column that an item names as unset gets its default here, as it has in every other database."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import psycopg
import pytest

from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.record import Item
from tests.connectors.postgres.apply_site import ApplySite, made, row

TABLE = Table(
    "t",
    ("id",),
    {"id": ColumnType.INT32, "a": ColumnType.TEXT, "w": ColumnType.TEXT, "n": ColumnType.INT32},
)
UNSET = ("w", "n", "later")
WITH_DEFAULTS = "w text DEFAULT 'ne%w', n int DEFAULT -7"
DEFAULTS = {
    "literal": (WITH_DEFAULTS, ("ne%w", "-7")),
    "none": ("w text, n int", (None, None)),
    "expression": ("w text DEFAULT 'n' || 'ew', n int DEFAULT (1 + 1)", ("new", "2")),
    "not null": ("w text NOT NULL DEFAULT '', n int NOT NULL DEFAULT 0", ("", "0")),
}


@pytest.fixture
def session(dsn: str) -> Iterator[psycopg.Connection]:
    """The agent's connection."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def site_of(dsn: str, session: psycopg.Connection, columns: str = WITH_DEFAULTS) -> ApplySite:
    """A replica with these columns beside the key and `a`."""
    return made(dsn, session, [TABLE], f"CREATE TABLE t (id int PRIMARY KEY, a text, {columns})")


def item(id_: int, unset: Sequence[str] = UNSET, **image: object) -> Item:
    """A row that lacks these columns."""
    sent = row("t", json_text({"id": id_}), json_text({"id": id_, **image}))
    return replace(sent, unset=tuple(unset))


def rows(site: ApplySite) -> list[tuple[object, ...]]:
    """The rows of the table."""
    return site.rows("SELECT * FROM t ORDER BY id")


REFUSED = row("t", '{"id":9}', '{"id":9,"n":"no number"}')
"""An item for which a batch is written item by item."""


@pytest.mark.parametrize("others", [(), (REFUSED,)], ids=["at once", "item by item"])
@pytest.mark.parametrize(("columns", "values"), DEFAULTS.values(), ids=DEFAULTS)
def test_an_unset_column_gets_its_default(
    dsn: str,
    session: psycopg.Connection,
    columns: str,
    values: tuple[str | None, str | None],
    others: tuple[Item, ...],
) -> None:
    """This replica wrote a value and lost against a row that has none: it would keep it alone."""
    site = site_of(dsn, session, columns)
    site.write("INSERT INTO t VALUES (1, 'a', 'mine', 1), (3, 'c', 'kept', 3), (4, 'd', 'mine', 4)")

    refused = site.refused(
        item(1, a="b"), item(2, a="b"), item(3, ("n",), a="c"), item(4, (), a="e"), *others
    )

    assert len(refused) == len(others)
    assert rows(site) == [
        ("1", "b", *values),
        ("2", "b", *values),
        ("3", "c", "kept", values[1]),
        ("4", "e", "mine", "4"),
    ]


@pytest.mark.parametrize(
    "columns", [WITH_DEFAULTS, f"{WITH_DEFAULTS}, own text NOT NULL DEFAULT ''"]
)
def test_the_last_item_of_a_row_counts(dsn: str, session: psycopg.Connection, columns: str) -> None:
    """Of items with the same columns only those that unset the same ones are written at once."""
    site = site_of(dsn, session, columns)
    site.write("INSERT INTO t (id, a, w, n) VALUES (1, 'a', 'mine', 1), (2, 'b', 'mine', 2)")

    site.apply(item(1, ("w",), a="b"), item(1, ("n",), a="c"), item(2, ("w",)), item(2, ("w",)))

    found = [one[:4] for one in rows(site)]
    assert found == [("1", "c", "ne%w", "-7"), ("2", "b", "ne%w", "2")]


def test_a_column_that_cannot_be_null_and_has_no_default_is_refused(
    dsn: str, session: psycopg.Connection
) -> None:
    """The row cannot stand here as it does elsewhere, which somebody has to see."""
    site = site_of(dsn, session, "w text NOT NULL, n int")
    site.write("INSERT INTO t VALUES (1, 'a', 'mine', 1)")

    (refused,) = site.refused(item(1, a="b"))

    assert (refused.key, refused.code) == ('{"id":1}', "check")
    assert rows(site) == [("1", "a", "mine", "1")]


def test_what_no_statement_sets_is_never_unset(dsn: str, session: psycopg.Connection) -> None:
    """A row with an identity that is always generated is deleted and inserted again."""
    identity = "id2 int GENERATED ALWAYS AS IDENTITY"
    create = (
        f"CREATE TABLE t (id int PRIMARY KEY, a text, w text DEFAULT 'new', {identity},"
        " n int GENERATED ALWAYS AS (id + 1) STORED, local text)"
    )
    table = replace(TABLE, columns={**TABLE.columns, "id2": ColumnType.INT32})
    site = made(dsn, session, [table], create)
    site.write("INSERT INTO t OVERRIDING SYSTEM VALUE VALUES (1, 'a', 'mine', 5, DEFAULT, 'kept')")

    assert site.refused(item(1, ("id", "w", "id2", "n"), a="b")) == ()

    assert rows(site) == [("1", "b", "new", "5", "2", "kept")]


@pytest.mark.parametrize("unique", ["a", "w"])
@pytest.mark.parametrize("default", ["'ne%w'", "'ne%' || 'w'"])
def test_unique_values_may_swap_beside_unset_columns(
    dsn: str, session: psycopg.Connection, default: str, unique: str
) -> None:
    """A row that was taken out of the way comes back with the default, which others may hold."""
    site = site_of(dsn, session, f"w text DEFAULT {default}, n int DEFAULT 4")
    site.write(
        f"CREATE UNIQUE INDEX one ON t ({unique})",
        "INSERT INTO t VALUES (1, 'a', 'x', 1), (2, 'b', 'ne%w', 2), (9, 'own', 'own', 9)",
    )

    (refused,) = site.refused(
        item(1, a="b"), item(2, ("n",), a="a", w="x"), item(3, ("n",), a="own", w="own")
    )

    assert refused.key == '{"id":3}'
    assert rows(site)[:2] == [("1", "b", "ne%w", "4"), ("2", "a", "x", "4")]
