"""Read the changes topics of the known replicas, from given offsets to those of a micro-batch."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from streaming.core.model.errors import SourceError

COLUMNS = ("topic", "offset", "timestamp", "value")
"""What later stages see of a Kafka record: string, bigint, timestamp (CreateTime), binary."""

OFFSETS_PER_BATCH = 200_000
MIN_PARTITIONS = 1
RECORDS_PER_PARTITION = 25_000
"""Records of a task's result: the driver parses one while the next is read."""

POLL_TIMEOUT_MS = 30_000
"""How long a task waits for a record; then the batch fails, and the hub waits for its broker."""

_Reader = TypeVar("_Reader", DataFrameReader, DataStreamReader)


def stream(
    spark: SparkSession,
    options: Mapping[str, str],
    topics: Mapping[str, int],
    starting: Mapping[str, int],
    *,
    offsets_per_batch: int = OFFSETS_PER_BATCH,
    min_partitions: int = MIN_PARTITIONS,
) -> DataFrame:
    """The records of `topics` from `starting` on, a bounded number in each micro-batch.

    `options` are those of Spark's Kafka source (connectors/kafka/options.py: source_options),
    `topics` are topic -> rid, `starting` is topic -> first offset; KeyError if a topic has none.
    An offset that the topic no longer has fails the query: the hub never steps over lost input.
    """
    limits = {
        "startingOffsets": _offsets(topics, starting),
        "maxOffsetsPerTrigger": str(offsets_per_batch),
    }
    reader = _source(spark.readStream, options, topics, min_partitions)
    return reader.options(**limits).load().select(*COLUMNS)


def batch(
    spark: SparkSession,
    options: Mapping[str, str],
    topics: Mapping[str, int],
    from_: Mapping[str, int],
    to: Mapping[str, int],
    *,
    min_partitions: int = MIN_PARTITIONS,
) -> DataFrame:
    """The records of a planned batch: offsets [`from_`, `to`) of each topic."""
    limits = {"startingOffsets": _offsets(topics, from_), "endingOffsets": _offsets(topics, to)}
    reader = _source(spark.read, options, topics, min_partitions)
    return reader.options(**limits).load().select(*COLUMNS)


def end_offsets(checkpoint: Path, batch_id: int) -> dict[str, int]:
    """Topic -> the offset behind the micro-batch, from the log that Spark writes before it.

    SourceError when the log has no Kafka offsets.
    """
    path = checkpoint / "offsets" / str(batch_id)
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines()[2:] if line.startswith("{")]
    if len(lines) != 1:
        raise SourceError(f"Spark's offset log {path} names no Kafka offsets: {text!r}")
    return {topic: partitions["0"] for topic, partitions in json.loads(lines[0]).items()}


def _source(
    reader: _Reader, options: Mapping[str, str], topics: Mapping[str, int], min_partitions: int
) -> _Reader:
    """Spark's Kafka source on the one partition of each topic."""
    fixed = {
        "assign": json.dumps({topic: [0] for topic in topics}),
        "failOnDataLoss": "true",
        "minPartitions": str(min_partitions),
        "maxRecordsPerPartition": str(RECORDS_PER_PARTITION),
        "kafkaConsumer.pollTimeoutMs": str(POLL_TIMEOUT_MS),
    }
    return reader.format("kafka").options(**{**options, **fixed})


def _offsets(topics: Mapping[str, int], offsets: Mapping[str, int]) -> str:
    return json.dumps({topic: {"0": offsets[topic]} for topic in topics})
