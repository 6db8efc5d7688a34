"""The input of a benchmark: each replica's changes by their numbers, as bytes and as columns.

A number says everything of a change, so that what was written can be counted afterwards: its CSN,
its row, and its transaction. `text` and `frame` write the same bytes, canonical as connectors/wire.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from kafka import KafkaProducer
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from connectors import wire
from streaming.core.model.record import Hello
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.table import ColumnType, Table

TABLE = Table(
    "account",
    ("id",),
    {
        "id": ColumnType.INT64,
        "owner": ColumnType.TEXT,
        "balance": ColumnType.DECIMAL,
        "sent_ms": ColumnType.INT64,
    },
)
WRITERS = {"alpha": 1, "beta": 2, "gamma": 3}
"""The replicas that write; a benchmark may have more that only listen."""
CSNS_PER_S = 60_000
SHARED_ROWS = 1_000
"""The rows that all writers write: rows 0 and on."""
OWN_ROWS = 50_000
"""The rows that one writer alone writes: in reality most are."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the writers write: change `n` of each goes to the same shared row, or to its own.

    `shared_of_1000`: how many of 1,000 transactions go to rows that all write; whoever comes
    second has not seen the first. `transaction`: changes in each; 1 is a plain change.
    """

    base_s: int
    shared_of_1000: int = 0
    own_rows: int = OWN_ROWS
    transaction: int = 1

    def csn(self, rid: int, n: int) -> str:
        """The CSN of a writer's change."""
        return f"{self.base_s + n // CSNS_PER_S:08x}{n % CSNS_PER_S:04x}{rid:04x}0000"

    def row(self, rid: int, n: int) -> int:
        """The row that it writes."""
        unit, share = n // self.transaction, self.shared_of_1000
        before = unit * share // 1_000
        if (unit + 1) * share // 1_000 > before:
            return (before * self.transaction + n % self.transaction) % SHARED_ROWS
        return SHARED_ROWS + rid * self.own_rows + n % self.own_rows

    def text(self, name: str, rid: int, n: int, epoch: int, sent_ms: int) -> str:
        """A plain change as it stands in the topic."""
        row = self.row(rid, n)
        return (
            f'{{"v":{wire.VERSION},"kind":"change","session":"{session_of(name)}",'
            f'"csn":"{self.csn(rid, n)}","epoch":{epoch},"table":"{TABLE.name}",'
            f'"key":{{"id":"{row}"}},"op":"update","after":{{"id":"{row}",'
            f'"owner":"customer {row} of the bank at the harbour","balance":"{n}.25",'
            f'"sent_ms":"{sent_ms}"}}}}'
        )


def new_load(shared_of_1000: int = 0, own_rows: int = OWN_ROWS, transaction: int = 1) -> Load:
    """A load whose CSNs are of the last hour."""
    return Load(int(time.time()) - 3_600, shared_of_1000, own_rows, transaction)


def frame(
    spark: SparkSession, load: Load, name: str, rid: int, first: int, behind: int
) -> DataFrame:
    """A writer's changes [first, behind) in order, as `value` in one partition."""
    n, size, share = F.col("id"), load.transaction, load.shared_of_1000
    unit = F.floor(n / size)
    before = F.floor(unit * share / 1_000)
    is_shared = F.floor((unit + 1) * share / 1_000) > before
    row = F.when(is_shared, (before * size + n % size) % SHARED_ROWS).otherwise(
        F.lit(SHARED_ROWS + rid * load.own_rows) + n % load.own_rows
    )
    texts = {"csn": _csn(load, rid, n), "prim": _csn(load, rid, unit * size), "row": row}
    rows = spark.range(first, behind, 1, 1).select("id", *(c.alias(k) for k, c in texts.items()))
    head = f'{{"v":{wire.VERSION},"kind":"%s","session":"{session_of(name)}",'
    prim = [F.lit('"prim_csn":"'), F.col("prim"), F.lit('",')] if size > 1 else []
    change = F.concat(
        *(F.lit(head % "change"), F.lit('"csn":"'), F.col("csn"), F.lit('",'), *prim),
        F.lit(f'"epoch":1,"table":"{TABLE.name}","key":{{"id":"'),
        *(F.col("row"), F.lit('"},"op":"update","after":{"id":"'), F.col("row")),
        *(F.lit('","owner":"customer '), F.col("row"), F.lit(' of the bank at the harbour"')),
        *(F.lit(',"balance":"'), n, F.lit('.25","sent_ms":"0"}}')),
    )
    if size == 1:
        return rows.select(change.alias("value"))
    commit = F.concat(F.lit(head % "commit"), F.lit('"prim_csn":"'), F.col("prim"), F.lit('"}'))
    both = F.when(n % size == size - 1, F.array(change, commit)).otherwise(F.array(change))
    return rows.select(F.explode(both).alias("value"))


def _csn(load: Load, rid: int, n: Column) -> Column:
    time_s = F.lower(F.hex(F.lit(load.base_s) + F.floor(n / CSNS_PER_S)))
    sequence = F.lower(F.hex(n % CSNS_PER_S))
    return F.concat(F.lpad(time_s, 8, "0"), F.lpad(sequence, 4, "0"), F.lit(f"{rid:04x}0000"))


def session_of(name: str) -> str:
    """The session in which a benchmark's replica speaks."""
    return f"session-of-{name}"


def greet(bootstrap: str, topics: Mapping[str, str], covers: int = 0, generation: int = 0) -> None:
    """Say hello for every replica: name -> its changes topic."""
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    hello = Hello(0, covers, generation, NOTHING_KNOWN, None, lost=False)
    for name, topic in topics.items():
        producer.send(topic, value=wire.encode(session_of(name), hello), partition=0)
    producer.close()


def preload(
    spark: SparkSession,
    bootstrap: str,
    topics: Mapping[str, str],
    load: Load,
    first: int,
    behind: int,
) -> int:
    """Write the changes [first, behind) of every writer to its topic; how many these are.

    Spark writes them, because Python would take longer than the hub.
    """
    frames = [
        frame(spark, load, name, rid, first, behind).withColumn("topic", F.lit(topics[name]))
        for name, rid in WRITERS.items()
    ]
    together = frames[0]
    for one in frames[1:]:
        together = together.unionAll(one)
    together.write.format("kafka").options(
        **{
            "kafka.bootstrap.servers": bootstrap,
            "kafka.linger.ms": "5",
            "kafka.batch.size": str(2**18),
            "kafka.compression.type": "lz4",
        }
    ).save()
    return (behind - first) * len(WRITERS)
