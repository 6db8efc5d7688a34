"""The naive peer: what a good Spark engineer writes first, in the hub's session, tuned fairly.

foreachBatch on the same topics with the same micro-batches; of each key the largest CSN of the
batch wins. MERGE by key into a Delta table with deletion vectors, append of all changes to a log,
and Spark's Kafka sink to the others' topics. It handles no conflicts, crashes or invalid input.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from connectors.kafka.topics import end_offsets, ensure_topics
from streaming.config.config import Config
from tests.benchmarks import source
from tests.benchmarks.counting import WrongCountError
from tests.benchmarks.environment import EVENTS_PER_BATCH, BenchmarkEnvironment, wait
from tests.benchmarks.load import WRITERS

_SINK = {"kafka.linger.ms": "5", "kafka.batch.size": str(2**18), "kafka.compression.type": "lz4"}
_ROW = pa.schema(
    [
        ("key", pa.string()),
        ("csn", pa.string()),
        ("author", pa.int32()),
        ("epoch", pa.int64()),
        ("op", pa.string()),
        ("after", pa.string()),
    ]
)
_ROWS_OF_A_FILE = 1_000_000
_STRIDE = 7_368_787
"""A prime: rows that are written together are spread over all files, as in a table with a past."""


def table(environment: BenchmarkEnvironment, name: str, rows: int) -> Path:
    """A new table of the peer with so many rows, written without Spark: 10 M in some seconds."""
    path = environment.folder / name
    DeltaTable.create(path, schema=_ROW, configuration={"delta.enableDeletionVectors": "true"})
    for first in range(0, rows, _ROWS_OF_A_FILE):
        write_deltalake(path, _past(first, min(first + _ROWS_OF_A_FILE, rows), rows), mode="append")
    return path


def _past(first: int, behind: int, rows: int) -> pa.Table:
    """Rows that some replica wrote long ago."""
    numbers = np.arange(first, behind, dtype=np.int64) * _STRIDE % rows
    n, count = pa.array(numbers).cast(pa.string()), behind - first

    def text(*parts: str | pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(*parts, "")

    columns = {
        "key": text('{"id":"', n, '"}'),
        "csn": text("0" * 8, pc.utf8_lpad(n, 12, "0")),
        "author": pa.array(np.ones(count, np.int32)),
        "epoch": pa.array(np.zeros(count, np.int64)),
        "op": pa.repeat("insert", count),
        "after": text(
            *('{"id":"', n, '","owner":"customer ', n, " of the bank at the harbour"),
            *('","balance":"', n, '.25","sent_ms":"0"}'),
        ),
    }
    return pa.table(columns, _ROW)


@dataclass(frozen=True, slots=True)
class NaiveResult:
    """The result of the peer: its speed, and how many records it delivered."""

    events_per_s: float
    batches: int
    delivered: int


@dataclass(slots=True)
class _Peer:
    environment: BenchmarkEnvironment
    name: str
    rows: Path
    batches: int
    started_s: float = 0.0
    ended_s: float = 0.0
    done: int = 0

    @property
    def log(self) -> Path:
        return self.environment.folder / self.name / "log"

    def micro_batch(self, records: DataFrame, _batch: int) -> None:
        if self.done >= self.batches:
            return
        self.started_s = self.started_s or time.time()
        changes = _parsed(records).persist()
        fields = F.struct(*(name for name in _ROW.names if name != "key"))
        latest = changes.groupBy("key").agg(F.max_by(fields, "csn").alias("it"))
        winners = latest.select("key", "it.*")
        winners.createOrReplaceTempView("winners")
        records.sparkSession.sql(
            f"MERGE INTO delta.`{self.rows}` t USING winners s ON t.key = s.key"
            " WHEN MATCHED AND s.csn > t.csn THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        changes.write.format("delta").mode("append").save(str(self.log))
        self.publish(winners)
        changes.unpersist()
        self.done += 1
        self.ended_s = time.time()

    def publish(self, winners: DataFrame) -> None:
        writers = [
            F.struct(F.lit(rid).alias("rid"), F.lit(name).alias("name"))
            for name, rid in WRITERS.items()
        ]
        others = F.filter(F.array(*writers), lambda one: one["rid"] != F.col("author"))
        value = F.to_json(F.struct("key", "op", "after", "csn", "author")).alias("value")
        sent = winners.select(F.explode(others).alias("to"), "key", value)
        topic = F.concat(F.lit(f"{self.name}.updates."), "to.name").alias("topic")
        bootstrap = {"kafka.bootstrap.servers": self.environment.bootstrap}
        records = sent.select(topic, "key", "value")
        records.write.format("kafka").options(**bootstrap, **_SINK).save()


def _parsed(records: DataFrame) -> DataFrame:
    """The changes of the records, with what the peer needs of them."""
    author = F.conv(F.substring("csn", 13, 4), 16, 10).cast("int").alias("author")
    return (
        records.select(source.parsed().alias("record"))
        .where("record.kind = 'change'")
        .select("record.*")
        .select("key", "csn", author, "epoch", "op", "after", "before")
    )


def run(
    environment: BenchmarkEnvironment,
    config: Config,
    name: str,
    events: int,
    rows: Path | None = None,
) -> NaiveResult:
    """Run the peer on this many of a hub's input records; WrongCountError if some are missing.

    `rows`: the table into which it merges; a new and empty one by default.
    """
    outputs = [f"{name}.updates.{writer}" for writer in WRITERS]
    ensure_topics(environment.bootstrap, {}, outputs, config.limits.record_bytes)
    rows = table(environment, f"{name}/rows", 0) if rows is None else rows
    peer = _Peer(environment, name, rows, max(1, round(events / EVENTS_PER_BATCH)))
    query = (
        source.stream(environment.spark, config, EVENTS_PER_BATCH)
        .writeStream.option("checkpointLocation", str(environment.folder / name / "checkpoint"))
        .foreachBatch(peer.micro_batch)
        .start()
    )
    wait(lambda: peer.done >= peer.batches or not query.isActive, "the peer's batches")
    if failure := query.exception():
        raise failure
    query.processAllAvailable()
    query.stop()
    return _counted(peer, outputs)


def _counted(peer: _Peer, outputs: list[str]) -> NaiveResult:
    """The speed, if log, rows and topics hold what they must."""
    spark = peer.environment.spark
    log = spark.sql(f"SELECT count(*) n, count(DISTINCT csn) d FROM delta.`{peer.log}`").head()
    wrong = spark.sql(
        f"SELECT count(*) n FROM (SELECT key, max(csn) csn FROM delta.`{peer.log}` GROUP BY key) l"
        f" LEFT JOIN delta.`{peer.rows}` t ON t.key = l.key WHERE t.csn IS DISTINCT FROM l.csn"
    ).head()
    delivered = sum(end_offsets(peer.environment.bootstrap, {}, outputs).values())
    assert log is not None
    assert wrong is not None
    if not log["n"] or log["n"] != log["d"] or wrong["n"]:
        raise WrongCountError(f"the naive peer's tables are wrong: log {log}, rows {wrong}")
    seconds = peer.ended_s - peer.started_s
    return NaiveResult(log["n"] / seconds, peer.done, delivered)
