"""The naive peer: what a good Spark engineer writes first, in the hub's session, tuned fairly.

foreachBatch on the same topics with the same micro-batches; of each key the largest CSN of the
batch wins. MERGE by key into a Delta table with deletion vectors, append of all changes to a log,
and Spark's Kafka sink to the others' topics. It knows no conflicts, no crash and no bad input.
"""

import time
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from connectors.kafka.client import end_offsets, ensure_topics, source_options
from streaming.carriers.read import stream
from streaming.config.config import Config
from tests.benchmarks.counting import WrongCountError
from tests.benchmarks.ground import EVENTS_PER_BATCH, Ground, topics_of, wait
from tests.benchmarks.load import WRITERS

_RECORD = "kind string, csn string, epoch bigint, `table` string, key string, op string"
_SINK = {"kafka.linger.ms": "5", "kafka.batch.size": str(2**18), "kafka.compression.type": "lz4"}


@dataclass(frozen=True, slots=True)
class Naive:
    """What the peer did: its speed, and how many records it delivered."""

    events_per_s: float
    batches: int
    delivered: int


@dataclass(slots=True)
class _Peer:
    ground: Ground
    name: str
    batches: int
    started_s: float = 0.0
    ended_s: float = 0.0
    done: int = 0

    def table(self, name: str) -> str:
        return f"delta.`{self.ground.folder / self.name / name}`"

    def create(self) -> None:
        spark = self.ground.spark
        columns = "key STRING, csn STRING, author INT, epoch BIGINT, op STRING, after STRING"
        spark.sql(
            f"CREATE TABLE {self.table('rows')} ({columns}) USING delta"
            " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        spark.sql(f"CREATE TABLE {self.table('log')} ({columns}) USING delta")

    def micro_batch(self, records: DataFrame, _batch: int) -> None:
        if self.done >= self.batches:
            return
        self.started_s = self.started_s or time.time()
        changes = _parsed(records).persist()
        fields = F.struct(*(name for name in changes.columns if name != "key"))
        latest = changes.groupBy("key").agg(F.max_by(fields, "csn").alias("it"))
        winners = latest.select("key", "it.*")
        winners.createOrReplaceTempView("winners")
        records.sparkSession.sql(
            f"MERGE INTO {self.table('rows')} t USING winners s ON t.key = s.key"
            " WHEN MATCHED AND s.csn > t.csn THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        log = self.ground.folder / self.name / "log"
        changes.write.format("delta").mode("append").save(str(log))
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
        bootstrap = {"kafka.bootstrap.servers": self.ground.bootstrap}
        records = sent.select(topic, "key", "value")
        records.write.format("kafka").options(**bootstrap, **_SINK).save()


def _parsed(records: DataFrame) -> DataFrame:
    """The changes of the records, with what the peer needs of them."""
    text = F.col("value").cast("string")
    received = F.from_json(text, f"{_RECORD}, after string").alias("said")
    author = F.conv(F.substring("csn", 13, 4), 16, 10).cast("int").alias("author")
    return (
        records.select(received)
        .where("said.kind = 'change'")
        .select("said.key", "said.csn", "said.epoch", "said.op", "said.after")
        .select("key", "csn", author, "epoch", "op", "after")
    )


def run(ground: Ground, config: Config, name: str, events: int) -> Naive:
    """The peer works off so many of a hub's input records; WrongCountError if some are missing."""
    topics = topics_of(config)
    outputs = [f"{name}.updates.{writer}" for writer in WRITERS]
    ensure_topics(ground.bootstrap, {}, outputs, config.limits.record_bytes)
    peer = _Peer(ground, name, max(1, round(events / EVENTS_PER_BATCH)))
    peer.create()
    source = source_options(ground.bootstrap, config.kafka.options)
    rids = {topic: WRITERS[writer] for writer, topic in topics.items()}
    records = stream(
        ground.spark,
        source,
        rids,
        dict.fromkeys(rids, 0),
        offsets_per_batch=EVENTS_PER_BATCH,
        min_partitions=config.limits.min_partitions,
    )
    query = (
        records.writeStream.option("checkpointLocation", str(ground.folder / name / "checkpoint"))
        .foreachBatch(peer.micro_batch)
        .start()
    )
    wait(lambda: peer.done >= peer.batches or not query.isActive, "the peer's batches")
    if failure := query.exception():
        raise failure
    query.processAllAvailable()
    query.stop()
    return _counted(peer, outputs)


def _counted(peer: _Peer, outputs: list[str]) -> Naive:
    """The speed, if log, rows and topics hold what they must."""
    spark = peer.ground.spark
    log = spark.sql(f"SELECT count(*) n, count(DISTINCT csn) d FROM {peer.table('log')}").head()
    rows = spark.sql(
        f"SELECT count(*) n FROM {peer.table('rows')} t FULL JOIN"
        f" (SELECT key, max(csn) csn FROM {peer.table('log')} GROUP BY key) l"
        " ON t.key = l.key WHERE t.csn IS DISTINCT FROM l.csn"
    ).head()
    delivered = sum(end_offsets(peer.ground.bootstrap, {}, outputs).values())
    assert log is not None
    assert rows is not None
    if log["n"] != log["d"] or rows["n"]:
        raise WrongCountError(f"the naive peer's tables are wrong: log {log}, rows {rows}")
    seconds = peer.ended_s - peer.started_s
    return Naive(log["n"] / seconds, peer.done, delivered)
