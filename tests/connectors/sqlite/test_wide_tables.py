"""A table may have as many columns as SQLite allows."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from connectors.agent.each_item import EachItem
from connectors.sqlite.apply.each_item import SqliteItemRows
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.install.install import install, objects
from connectors.sqlite.store import SqliteStore
from connectors.sqlite.values.columns import AFFINITIES, Affinity
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Change, Op
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType
from tests.connectors.sqlite.sqlite_replica import Replica, make
from tests.connectors.sqlite.test_reinit import start

KINDS = tuple(ColumnType)
VALUES = {
    ColumnType.BOOL: 1,
    ColumnType.INT32: -7,
    ColumnType.INT64: 2**60,
    ColumnType.FLOAT64: 0.1,
    ColumnType.DECIMAL: 12.5,
    ColumnType.TEXT: "Zoë",
    ColumnType.BYTES: b"\x00\xff",
    ColumnType.TIMESTAMP: "2024-02-29T23:59:58.000000Z",
}


def wide(count: int) -> tuple[str, Table]:
    """A table of so many columns, of every type in turn, and its declaration."""
    kinds = {f"c{place}": KINDS[place % len(KINDS)] for place in range(count - 1)}
    declared = {name: max(AFFINITIES[kind] - {Affinity.BLOB}) for name, kind in kinds.items()}
    columns = ", ".join(f"{name} {affinity}" for name, affinity in declared.items())
    table = Table("wide", ("id",), {"id": ColumnType.INT64} | kinds)
    return f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {columns})", table


def carry(origin: Replica, consumer: Replica, first: int) -> int:
    """Apply what one replica captured at another; how many changes there are by now."""
    changes = origin.changes()
    with closing(consumer.store()) as store:
        carry_into(store, changes[first:])
    return len(changes)


def carry_into(store: SqliteStore, changes: Sequence[Change]) -> None:
    """Apply the changes of another replica."""
    items = tuple(
        Item(ItemType.CHANGE, one.table, one.key, one.op, one.after, one.csn, 1) for one in changes
    )
    store.start_session("s", None, lost=False)
    batch = ApplyBatch(store.position, store.position.reached + 1, items)
    assert store.apply(batch, 1, 0).refused == ()


@pytest.mark.more
def test_a_wide_table_is_captured_and_applied(tmp_path: Path) -> None:
    """An expression over all columns would be deeper than SQLite parses."""
    count = 400
    create, table = wide(count)
    origin, consumer = (make(tmp_path / f"{name}.db", {create: table}) for name in "oc")
    row = [1, *(VALUES[kind] for kind in list(table.columns.values())[1:])]
    marks = ", ".join("?" * count)
    done = 0
    for statement, values in (
        (f"INSERT INTO wide VALUES ({marks})", row),
        ("INSERT INTO wide (id) VALUES (2)", []),
        (f"REPLACE INTO wide VALUES ({marks})", [2, *row[1:]]),
        ("UPDATE wide SET c3 = -0.3, c4 = NULL WHERE id = 1", []),
        ("DELETE FROM wide WHERE id = 2", []),
    ):
        origin.client.execute(statement, values)
        done = carry(origin, consumer, done)
        assert consumer.rows("wide") == origin.rows("wide")
    assert [change.op for change in origin.changes()] == [
        *(Op.INSERT, Op.INSERT, Op.UPDATE, Op.UPDATE, Op.DELETE),
    ]
    origin.client.close()
    consumer.client.close()


def test_a_table_of_as_many_columns_as_sqlite_has_is_captured(tmp_path: Path) -> None:
    """The limit of 2,000 is SQLite's own; the agent's triggers add nothing to it."""
    create, table = wide(2_000)
    replica = make(tmp_path / "r.db", {create: table})

    with closing(replica.client):
        replica.client.execute("INSERT INTO wide (id, c1997) VALUES (1, 'last of its type')")

        (change,) = replica.changes()
        row = json.loads(change.after or "{}")
        assert (len(row), row["c1997"]) == (2_000, "last of its type")


def test_a_row_of_as_many_columns_as_sqlite_has_is_applied_and_saved(tmp_path: Path) -> None:
    """Nothing reads or writes a row with a column beside its own; the limit is a lower one here."""
    count = 40
    create, table = wide(count)
    origin, consumer = (make(tmp_path / f"{name}.db", {create: table}) for name in "oc")
    origin.client.execute("INSERT INTO wide (id, c0) VALUES (1, 1), (2, 0), (3, NULL)")
    with closing(consumer.store()) as store:
        store.connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, count)
        carry_into(store, origin.changes())
        origin.client.execute("UPDATE wide SET c0 = 0 WHERE id = 1")
        origin.client.execute("DELETE FROM wide WHERE id = 2")
        carry_into(store, origin.changes()[3:])
        assert consumer.rows("wide") == origin.rows("wide")

        store.reinit(start(), lambda *_: False, tmp_path / "saved.jsonl")

    saved = [json.loads(line) for line in (tmp_path / "saved.jsonl").read_text().splitlines()]
    assert [(one["key"], one["row"]["c0"]) for one in saved] == [
        ({"id": "1"}, 0),
        ({"id": "3"}, None),
    ]
    origin.client.close()
    consumer.client.close()


def test_rows_of_as_many_columns_as_sqlite_has_swap_their_unique_values(tmp_path: Path) -> None:
    """One is kept apart meanwhile, without its rowid, for which there is no column; see above."""
    count = 40
    kinds = {f"c{place}": ColumnType.INT64 for place in range(count - 2)}
    table = Table("wide", ("k",), {"k": ColumnType.TEXT, "u": ColumnType.INT64} | kinds)
    with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as connection:
        connection.execute(f"CREATE TABLE wide (k TEXT PRIMARY KEY, u UNIQUE, {', '.join(kinds)})")
        connection.execute("INSERT INTO wide (k, u, c37) VALUES ('a', 1, 7), ('b', 2, 8)")
        install(connection, 1, [table], rows_are_shared=True)
        connection.setlimit(sqlite3.SQLITE_LIMIT_COLUMN, count)
        swapped = [
            Item(ItemType.CHANGE, "wide", f'{{"k":"{k}"}}', Op.UPDATE, f'{{"u":"{u}"}}', None, 2)
            for k, u in (("a", 2), ("b", 1))
        ]

        connection.execute("BEGIN")
        by_item = SqliteItemRows(connection, writers(connection, [table]), swapped)
        each = EachItem(by_item, connection.execute, 1, swapped)
        refused = each.write(range(len(swapped)))

        assert refused == {}
        rows = connection.execute("SELECT k, u, c37 FROM wide ORDER BY k").fetchall()
        assert rows == [("a", 2, 7), ("b", 1, 8)]


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 30),
        (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 20),
        (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 20_000),
    ],
)
def test_a_limit_of_a_sqlite_is_named_before_anything_is_written(
    tmp_path: Path, limit: int, value: int
) -> None:
    """Each build has its own; a trigger beyond it would make the application's writes fail."""
    create, table = wide(40)
    with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as connection:
        connection.execute(create)
        connection.setlimit(limit, value)

        with pytest.raises(ConfigError, match=r"wide.*(too (many|large|big)|must be between)"):
            install(connection, 1, [table])

        assert objects(connection) == {}
