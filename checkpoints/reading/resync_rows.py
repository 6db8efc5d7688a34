"""What a resync sends, read beside the batches: the rows that a consumer lacks, in order of keys.

A table's rows are sorted by Spark, which needs no memory for it, into files of the state root. They
are scratch: a hub that starts sorts them anew, from the last key that was sent on.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import FileSelector
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from checkpoints import query
from checkpoints.root import folder_of, remove_folder, table_uri
from checkpoints.spark_errors import translated
from checkpoints.store import StateStore
from checkpoints.tables import ROWS, TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import StateError
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.ranges import KeyOrder, key_order

READ_ROWS = 5_000
"""How many rows are read from a file at a time."""

SORTED = pa.schema(
    [
        *(ROWS.field(name) for name in ROWS.names if name != "table"),
        ("tracked", pa.int64()),  # the hub epoch of the version that the consumer lacks; null: all
    ]
)
"""A row of `rows`, as it is sorted; tracked keys without a row have nulls, as in `image`."""


def row_counts(store: StateStore) -> Counter[str]:
    """Table -> how many rows it has, as far as `rows` is materialized."""
    sql = 'SELECT "table", count(*) AS n FROM t WHERE image IS NOT NULL GROUP BY "table"'
    found = query.execute(store.table(TableName.ROWS), sql)
    return Counter({row["table"]: row["n"] for row in query.records(found)})


def sort_rows(
    spark: SparkSession, store: StateStore, table: Table, tracked: pa.Table | None, folder: str
) -> "SortedRows":
    """Sort the rows of a table in order of keys, into a folder of the state root.

    With `tracked` (key, and the hub epoch `tracked` of its version) those keys only.
    """
    with translated():
        rows = spark.read.format("delta").load(store.uri(TableName.ROWS))
        rows = rows.where(F.col("table") == table.name).drop("table")
        if tracked is None:
            rows = rows.where(F.col("image").isNotNull())
            rows = rows.withColumn("tracked", F.lit(None).cast("bigint"))
        else:
            rows = spark.createDataFrame(tracked).join(rows, "key", "left")
        ordered = rows.orderBy(*_order(table)).select(*SORTED.names)
        ordered.write.mode("overwrite").parquet(table_uri(store.root, folder))
    return SortedRows(store.root, folder, key_order(table))


FAR_YEAR = 10**6
"""Behind every year of a time: they have six digits at most."""

_KINDS: dict[ColumnType, T.DataType] = {
    ColumnType.BOOL: T.BooleanType(),
    ColumnType.INT32: T.LongType(),
}
"""How a key column is read from JSON; any other as text."""


_ANY_LENGTH = {"maxNumLen": str(2**31 - 1), "maxStringLen": str(2**31 - 1)}
"""Options of `from_json`: a key is as long as a record may be, not as Jackson likes it."""


def _order(table: Table) -> list[Column]:
    """Return what keys are sorted by: core's `key_order` in columns."""
    kinds = [table.columns[name] for name in table.key]
    read = _struct(table.key, kinds)
    numbered = [f"c{place}" for place in range(len(kinds))]  # Spark ignores the case of names
    key = F.from_json("key", read, _ANY_LENGTH).cast(_struct(numbered, kinds))
    named = zip(numbered, kinds, strict=True)
    return [column for name, kind in named for column in _sorted_by(key.getField(name), kind)]


def _struct(names: Sequence[str], kinds: Sequence[ColumnType]) -> T.StructType:
    """Return key columns as they are read, with these names."""
    columns = zip(names, kinds, strict=True)
    return T.StructType([T.StructField(n, _KINDS.get(k, T.StringType())) for n, k in columns])


def _sorted_by(value: Column, kind: ColumnType) -> list[Column]:
    match kind:
        case ColumnType.INT64:
            return [value.cast("bigint")]
        case ColumnType.FLOAT64:
            return [value.cast("double")]
        case ColumnType.BYTES:
            return [F.unbase64(value)]
        case ColumnType.DECIMAL:
            return _decimal(value)
        case ColumnType.TIMESTAMP:
            return [_year(value), value]
        case ColumnType.BOOL | ColumnType.INT32 | ColumnType.TEXT:
            return [value]


def _year(text: Column) -> Column:
    """Return the year of a time; its text is ordered within a year."""
    infinite = F.when(text == "-infinity", -FAR_YEAR).when(text == "infinity", FAR_YEAR)
    return infinite.otherwise(F.regexp_extract(text, "^([+-]?[0-9]+)-", 1).try_cast("int"))


def _decimal(text: Column) -> list[Column]:
    """Return what decimals of any length are sorted by: finite or not, sign, then the digits."""
    infinite = F.when(text == "-Infinity", -1).when(text == "Infinity", 1).when(text == "NaN", 2)
    digits = F.regexp_replace(text, "^-", "")
    whole = F.regexp_replace(F.split_part(digits, F.lit("."), F.lit(1)), "^0+(?=.)", "")
    rest = F.regexp_replace(F.split_part(digits, F.lit("."), F.lit(2)), "0+$", "")
    is_zero = (whole == "0") & (rest == "")
    below = text.startswith("-") & ~is_zero
    parts = [F.length(whole), whole, rest]
    rising = [F.when(~below, part).asc() for part in parts]
    falling = [F.when(below, part).desc() for part in parts]
    return [infinite.otherwise(0), (~below).asc(), *rising, *falling]


class SortedRows:
    """The sorted rows of a table, read one part after another; `next_rows` are those behind.

    `after`: the key behind which the next row is.
    """

    def __init__(self, root: StateRoot, folder: str, order: KeyOrder) -> None:
        self.root, self.folder, self.order = root, folder, order
        self.after: str | None = None
        self._parts = self._read()
        self._ahead = SORTED.empty_table()

    def next_rows(self, count: int) -> pa.Table:
        """Return the next rows (SORTED), at least so many where there are so many."""
        while self._ahead.num_rows < count:
            part = next(self._parts, None)
            if part is None:
                break
            self._ahead = pa.concat_tables([self._ahead, part]).combine_chunks()
        return self._ahead

    def move_past(self, key: str) -> None:
        """Pass the rows up to this key."""
        place, end = self.order(key), 0
        while True:
            keys = self.next_rows(end + READ_ROWS)["key"].to_pylist()
            passed = next((n for n, k in enumerate(keys[end:]) if self.order(k) > place), None)
            if passed is not None or len(keys) == end:
                self._ahead = self._ahead.slice(end + (passed or 0))
                self.after = key
                return
            end = len(keys)

    def remove(self) -> None:
        """Remove the files."""
        remove_folder(self.root, self.folder)

    def _read(self) -> Iterator[pa.Table]:
        """Read the files in order; StateError if they are not sorted as core sorts."""
        last: Any = None
        files, folder = folder_of(self.root, self.folder)
        names = sorted(one.path for one in files.get_file_info(FileSelector(folder)))
        for name in (name for name in names if name.endswith(".parquet")):
            for batch in pq.ParquetFile(name, filesystem=files).iter_batches(READ_ROWS):
                for key in batch.column("key").to_pylist():
                    place = self.order(key)
                    if last is not None and place < last:
                        raise StateError(
                            f"the rows for a resync are not in order of keys at {key}: report this;"
                            " nothing of it was sent"
                        )
                    last = place
                yield pa.Table.from_batches([batch]).cast(SORTED)
