"""How questions to the past read the tables: beside a hub that may be running, never writing."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from checkpoints.commit.recorded import ROWS_AT_ONCE, BatchMark, Read, from_spark, from_store
from checkpoints.reading.past import PastStore
from streaming.config.config import Config
from streaming.jvm.java import check_java
from streaming.jvm.master import LOCAL, is_local_master
from streaming.jvm.session import started


@contextmanager
def own_session(config: Config, what: str) -> Iterator[SparkSession]:
    """A Spark session as `[spark]` has it, whose scratch is outside of the state."""
    check_java()
    with tempfile.TemporaryDirectory(prefix="slackwater-") as scratch:
        warehouse = {"spark.sql.warehouse.dir": Path(scratch).absolute().as_uri()}
        with started(f"slackwater {what}", {**warehouse, **config.spark}) as spark:
            yield spark


@contextmanager
def reading(config: Config, store: PastStore, marks: Sequence[BatchMark]) -> Iterator[Read]:
    """What reads these batches: this process, or the cluster that `[spark]` names if they are many.

    Spark in this process reads no faster than Arrow, and its rows cross from the JVM to Python.
    """
    is_local = is_local_master(config.spark.get("spark.master", LOCAL))
    if is_local or sum(mark.entries for mark in marks) <= ROWS_AT_ONCE:
        yield from_store(store)
        return
    with own_session(config, "replay") as spark:
        yield from_spark(spark, store.root)
