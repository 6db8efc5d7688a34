"""Keep the images of a large batch on the executors, which append and publish them.

Records are parsed where they were read. The driver gets CHECKED without the images of valid
changes. Its decisions are sent back as a few columns, joined by (rid, offset).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from checkpoints.spark_errors import translated
from checkpoints.store import Rows
from checkpoints.tables import CHANGELOG
from connectors.wire import CHANGE_ITEM_SQL, update_ends
from streaming.carriers.parse import parse_on_executors
from streaming.core.conflict.judge import Verdict
from streaming.core.model.errors import PublishError
from streaming.core.model.table import Table
from streaming.core.records.check import Limits
from streaming.stages.checked import CHECKED, compared_tables
from streaming.stages.log import CHANGE
from streaming.stages.publish import Chunk, Outgoing

_DECIDED_COLUMNS = (
    *("rid", "offset", "batch", "hub_epoch", "place", "mre", "mre_same"),
    *("row_author", "row_epoch", "row_csn"),
)
"""What the driver sends back about a change that was accepted in bulk.

Values that differ between batches are columns, not literals. Spark generates code with its
literals, which the JVM would compile anew for each batch.
"""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where records go: the options of Spark's Kafka sink, and the topic of each agreement."""

    options: Mapping[str, str]
    topic: Callable[[str], str]


class ExecutorsCarrier:
    """A carrier whose valid changes keep their images on the executors; see Carrier."""

    def __init__(
        self,
        records: DataFrame,
        topics: Mapping[str, int],
        tables: Mapping[str, Table],
        limits: Limits,
        sink: Sink,
    ) -> None:
        """`records`: COLUMNS of carriers/read.py, read once and kept until `close`."""
        self._spark = records.sparkSession
        self._kept = parse_on_executors(records, topics, tables, limits).persist()
        self._sink = sink
        self.facts = self._kept.select(_facts(compared_tables(tables))).toArrow().cast(CHECKED)

    def images(self, places: pa.Table) -> pa.Table:
        """Before and after of changes, in the order of these (rid, offset)."""
        numbered = places.append_column("n", pa.array(np.arange(places.num_rows)))
        found = self._with_rows(numbered).select("n", "before", "after").toArrow()
        return found.sort_by("n").select(["before", "after"])

    def changelog(self, log: pa.Table) -> Rows:
        """Join the driver's decisions to the rows that the executors append."""
        away = pc.is_valid(log["size"])
        here = log.filter(pc.invert(away)).select(CHANGELOG.names)
        if here.num_rows == log.num_rows:
            return here
        there = self._with_rows(log.filter(away).select(_DECIDED_COLUMNS)).select(_logged())
        return _Appended(there.unionByName(self._frame(here)), log.num_rows)

    def send(self, outgoing: Outgoing, chunks: Sequence[Chunk]) -> None:
        """Send the records, those of one topic in order."""
        ends = self._frame(_ends(chunks, self._sink.topic))
        topics = ends.select("number", "topic")
        items = self._items(outgoing, chunks).select("place", "item", F.explode("numbers"))
        records = (
            items.withColumnRenamed("col", "number")
            .join(F.broadcast(topics), "number")
            .repartition(len({chunk.header.agreement for chunk in chunks}), "topic")
            .groupBy("topic", "number")
            .agg(F.sort_array(F.collect_list(F.struct("place", "item"))).alias("items"))
            .join(F.broadcast(ends.drop("topic")), "number")
            .sortWithinPartitions("topic", "number")
            .select("topic", "key", _value())
        )
        try:
            records.write.format("kafka").options(**self._sink.options).save()
        except (Py4JJavaError, PySparkException) as error:
            raise PublishError(
                f"a batch was not delivered ({str(error).splitlines()[0]}): check the updates "
                "topics and the brokers; the next start publishes it again"
            ) from error

    def close(self) -> None:
        """Let the executors release the batch."""
        self._kept.unpersist()

    def _with_rows(self, decided: pa.Table) -> DataFrame:
        """The kept changes of these (rid, offset), with the other columns beside them."""
        return self._kept.join(F.broadcast(self._frame(decided)), ["rid", "offset"])

    def _items(self, outgoing: Outgoing, chunks: Sequence[Chunk]) -> DataFrame:
        """(place, item, numbers): every item with the numbers of the chunks that it belongs to."""
        rows, numbers = _numbered(chunks)
        log = outgoing.log.select(["rid", "offset"]).take(rows)
        place = pa.array(np.argsort(outgoing.order)[rows.to_numpy()])
        sent = log.append_column("place", place).append_column("numbers", numbers)
        away = pa.array(outgoing.away[rows.to_numpy()])
        item = F.expr(CHANGE_ITEM_SQL).alias("item")
        there = self._with_rows(sent.filter(away)).select("place", item, "numbers")
        here = sent.append_column("item", outgoing.items.take(rows).cast(pa.string()))
        empty = [number for number, chunk in enumerate(chunks) if not len(chunk.rows)]
        columns = ["place", "item", "numbers"]
        here = pa.concat_tables([here.filter(pc.invert(away)).select(columns), _nothing(empty)])
        return there.unionByName(self._frame(here))

    def _frame(self, table: pa.Table) -> DataFrame:
        return self._spark.createDataFrame(table)


@dataclass(frozen=True, slots=True)
class _Appended:
    """Changelog rows that Spark appends."""

    rows: DataFrame
    num_rows: int

    def append(self, uri: str, key: str, number: int) -> None:
        """See RemoteRows."""
        marks = {"txnAppId": key, "txnVersion": str(number)}
        with translated():
            self.rows.write.format("delta").mode("append").options(**marks).save(uri)


def _facts(whole: Sequence[str]) -> list[Column]:
    """Select CHECKED without the images of valid changes, except those of these tables."""
    stays = F.col("reason").isNull() & ~F.col("table").isin(list(whole))
    columns = {name: F.when(~stays, F.col(name)).alias(name) for name in ("before", "after")}
    size = F.octet_length(F.expr(CHANGE_ITEM_SQL)).cast("bigint")
    columns["size"] = F.when(stays, size).alias("size")
    return [columns.get(name, F.col(name)) for name in CHECKED.names]


@lru_cache(maxsize=1)
def _logged() -> list[Column]:
    """Select CHANGELOG of changes that were accepted in bulk."""
    literals: dict[str, object] = {
        "kind": CHANGE,
        "verdict": Verdict.ACCEPTED.value,
        "concurrent": False,
        "realign_epoch": 0,
        "to": None,
        "cause": None,
        "key_after": None,
    }
    columns = {name: F.lit(value) for name, value in literals.items()} | {"image": F.col("after")}
    types = from_arrow_schema(CHANGELOG)
    return [columns.get(t.name, F.col(t.name)).cast(t.dataType).alias(t.name) for t in types]


def _numbered(chunks: Sequence[Chunk]) -> tuple[pa.Array, pa.Array]:
    """The rows of the log that are in any chunk, and of each the numbers of its chunks."""
    rows = np.concatenate([chunk.rows for chunk in chunks])
    numbers = np.repeat(np.arange(len(chunks)), [len(chunk.rows) for chunk in chunks])
    order = np.argsort(rows, kind="stable")
    found, starts = np.unique(rows[order], return_index=True)
    bounds = pa.array(np.append(starts, len(rows)), pa.int32())
    return pa.array(found), pa.ListArray.from_arrays(bounds, pa.array(numbers[order]))


def _nothing(empty: Sequence[int]) -> pa.Table:
    """One row without an item for each chunk that has none."""
    columns = {
        "place": pa.array([-1] * len(empty), pa.int64()),
        "item": pa.nulls(len(empty), pa.string()),
        "numbers": pa.array([[number] for number in empty], pa.list_(pa.int64())),
    }
    return pa.table(columns)


def _ends(chunks: Sequence[Chunk], topic: Callable[[str], str]) -> pa.Table:
    """(number, topic, key, head, tail) of each record: the text around its items."""
    headers = [chunk.header for chunk in chunks]
    heads, tails = zip(*(update_ends(header) for header in headers), strict=True)
    columns = {
        "number": np.arange(len(chunks)),
        "topic": [topic(header.agreement) for header in headers],
        "key": [header.id for header in headers],
        "head": heads,
        "tail": tails,
    }
    return pa.table(columns)


def _value() -> Column:
    """A record from its head, its items in order, and its tail."""
    items = F.array_join(F.transform("items", lambda one: one["item"]), ",")
    return F.concat("head", items, "tail").alias("value")
