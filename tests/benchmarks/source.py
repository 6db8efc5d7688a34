"""The input of a hub as Spark alone reads it: for the peers of the hub.

The options are those of the hub's own source, so that the comparison is fair.
"""

import json
from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from streaming.config.config import Config

RECORD = (
    "v bigint, kind string, session string, csn string, prim_csn string, epoch bigint,"
    " `table` string, key string, op string, before string, after string, opno bigint"
)
"""The members of a change; an object is its text."""
_RECORDS_PER_TASK = "25000"


def whole(spark: SparkSession, config: Config) -> DataFrame:
    """All records of a hub's changes topics, once."""
    return spark.read.format("kafka").options(**_options(config)).load()


def stream(spark: SparkSession, config: Config, offsets_per_batch: int) -> DataFrame:
    """The same as a stream, so many records in a micro-batch."""
    limits = {"maxOffsetsPerTrigger": str(offsets_per_batch)}
    return spark.readStream.format("kafka").options(**_options(config), **limits).load()


def parsed() -> Column:
    """The value of a Kafka record as a struct of RECORD."""
    return F.from_json(F.col("value").cast("string"), RECORD)


def _options(config: Config) -> Mapping[str, str]:
    topics = [config.changes_topic(replica.name) for replica in config.replicas]
    return {
        "kafka.bootstrap.servers": config.kafka.bootstrap_servers,
        "kafka.fetch.max.wait.ms": "1",
        "assign": json.dumps({topic: [0] for topic in topics}),
        "startingOffsets": "earliest",
        "failOnDataLoss": "true",
        "minPartitions": str(config.limits.min_partitions),
        "maxRecordsPerPartition": _RECORDS_PER_TASK,
    }
