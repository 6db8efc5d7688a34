"""The hub's rows as one side of a comparison, as its last commit has them."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager

import orjson
import pyarrow as pa

from checkpoints.commit.recorded import batch_marks
from checkpoints.reading.as_of import rows_as_of, travel_to
from streaming.config.config import Config
from streaming.core.compare.digest import hash_of
from streaming.core.compare.row_text import Image, quick_text, row_text
from streaming.core.compare.side import ComparedTable, OpenTable, RowsInMemory
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.row_filter import RowFilter
from streaming.core.model.table import Table
from streaming.facts.history.past_rows import past

BATCH_ROWS = 10_000
"""So many rows at a time are Python's."""


@contextmanager
def compared(
    config: Config, rows: Mapping[str, RowFilter], columns: Mapping[str, ColumnFilter]
) -> Iterator[OpenTable]:
    """What opens the tables of the hub for a comparison; StateError: no hub has run yet.

    `rows`, `columns`: table -> which of its rows are compared, and which columns; absent: all.
    """
    with past(config):
        yield lambda table: _opened(config, table, rows.get(table.name), columns.get(table.name))


def _opened(
    config: Config, table: Table, shown: RowFilter | None, known: ColumnFilter | None
) -> ComparedTable:
    text, quick = row_text(table), quick_text(table)
    rows = (
        (key, hash_of(quick(image.encode()) or text(orjson.loads(image)).encode()))
        for part in _parts(config, table, shown, known)
        for key, image in zip(part["key"].to_pylist(), part["image"].to_pylist(), strict=True)
    )
    return RowsInMemory(table, rows, lambda keys: images_of(config, table, keys, shown, known))


def images_of(
    config: Config,
    table: Table,
    keys: Collection[str],
    shown: RowFilter | None = None,
    known: ColumnFilter | None = None,
) -> dict[str, Image]:
    """The hub's rows of these keys, as the last commit has them; of filters what they show."""
    found = _rows(config, table, list(keys)) if keys else None
    rows = _shown(found, shown, known).to_pylist() if found else []
    return {row["key"]: orjson.loads(row["image"]) for row in rows}


def _parts(
    config: Config, table: Table, shown: RowFilter | None, known: ColumnFilter | None
) -> Iterator[pa.RecordBatch]:
    """The rows that are compared, key and image, so many at a time."""
    rows = _rows(config, table, None).select(["key", "image"])
    for part in rows.to_batches(BATCH_ROWS):
        yield from _shown(pa.Table.from_batches([part]), shown, known).to_batches()


def _shown(rows: pa.Table, shown: RowFilter | None, known: ColumnFilter | None) -> pa.Table:
    if shown is not None:
        rows = rows.filter(pa.array(shown.shown(rows["image"].to_pylist())))
    if known is None:
        return rows
    images = known.all_shown(rows["image"].to_pylist())
    return pa.table({"key": rows["key"], "image": pa.array(images, pa.string())})


def _rows(config: Config, table: Table, keys: list[str] | None) -> pa.Table:
    """The rows as the last commit has them, which is another one each time."""
    with past(config) as store:
        epoch = travel_to(store, batch_marks(store), None)
        return rows_as_of(store, table.name, epoch, keys)
