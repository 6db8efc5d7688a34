"""A table may have as many columns as SQLite allows."""

import json
from contextlib import closing
from pathlib import Path

from connectors.sqlite.columns import AFFINITIES, Affinity
from streaming.core.delivery.consumer import ApplyBatch
from streaming.core.model.change import Op
from streaming.core.model.record import Item, ItemType
from streaming.core.model.table import ColumnType, Table
from tests.connectors.sqlite.sqlite_replica import Replica, make

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
    items = tuple(
        Item(ItemType.CHANGE, one.table, one.key, one.op, one.after, one.csn, 1)
        for one in changes[first:]
    )
    with closing(consumer.store()) as store:
        store.start_session("s", None, lost=False)
        batch = ApplyBatch(store.position, store.position.reached + 1, items)
        assert store.apply(batch, 1, 0).refused == ()
    return len(changes)


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
