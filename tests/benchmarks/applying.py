"""One process that applies rows to a SQLite database, by whatever code stands on its path.

    python applying.py ROWS

It prints the items a second of processor time: of inserts, and of updates behind them.
"""

import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from connectors.sqlite.apply.batch import apply_batch
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.install.install import install
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.change import Op
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType

TABLE = Table(
    "account",
    ("id",),
    {
        "id": ColumnType.INT64,
        "owner": ColumnType.TEXT,
        "balance": ColumnType.DECIMAL,
        "active": ColumnType.BOOL,
        "changed": ColumnType.TIMESTAMP,
    },
)
CREATE = (
    "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL UNIQUE,"
    " balance NUMERIC(10,2), active BOOLEAN, changed DATETIME)"
)
BATCH = 1_000


def item(number: int, turn: int) -> Item:
    """A row of another replica."""
    after = (
        f'{{"id":"{number}","owner":"owner {number}","balance":"{number}.{turn}5","active":true,'
        f'"changed":"2024-02-29T23:59:{number % 60:02}.000000Z"}}'
    )
    return Item(ItemType.CHANGE, "account", f'{{"id":"{number}"}}', Op.UPDATE, after, None, 1)


def main(rows: int) -> None:
    """Apply the rows twice."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(sqlite3.connect(Path(folder) / "r.db", isolation_level=None)) as connection,
    ):
        connection.execute(CREATE)
        install(connection, 2, [TABLE])
        connection.execute("PRAGMA synchronous = OFF")
        known = writers(connection, [TABLE])
        batches = [
            ApplyBatch(Position("s"), 1, tuple(item(n, turn) for n in range(first, first + BATCH)))
            for turn in (1, 2)
            for first in range(0, rows, BATCH)
        ]
        started_s = time.process_time()
        for batch in batches:
            apply_batch(connection, known, batch, 1, 0)
        rate = 2 * rows / (time.process_time() - started_s)
    sys.stdout.write(f"{rate}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
