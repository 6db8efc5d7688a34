"""Executors of a cluster that are warm: started, and with their Python at work, before a batch is.

A new executor takes many seconds for its first task: it fetches jars and archives, loads Spark's
classes and starts Python. Spark also ends a Python worker that was idle for a minute.
"""

import logging
import threading
import time
from concurrent.futures import Future

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from checkpoints.spark_threads import SparkThreads
from streaming.carriers.parse import parse_on_executors
from streaming.core.access.root import StateRoot
from streaming.jvm.private import collect_batches, executor_count

LOG = logging.getLogger("slackwater")

EVERY_S = 30.0
SETTLED_S = 3.0
"""When no further executor has come for so long, those that are there are all."""
_POLL_S = 0.2
_TOPIC = "warm up"


class WarmExecutors:
    """The executors of a session on a cluster; `root`: of the state, for messages."""

    def __init__(self, spark: SparkSession, root: StateRoot) -> None:
        self._spark = spark
        self._threads = SparkThreads(spark, root, _TOPIC, 1)
        self._work: Future[None] | None = None
        self._due_s = 0.0
        self._said_s = 0.0

    def wait(self, end: threading.Event) -> None:
        """Wait until there are executors and their Python works, or until `end`."""
        count, since_s = 0, time.monotonic()
        while not (count and time.monotonic() - since_s > SETTLED_S):
            found = self.look()
            if found != count:
                count, since_s = found, time.monotonic()
            if end.wait(_POLL_S):
                return
        self.keep()
        while self._work is not None and not (self._work.done() or end.wait(_POLL_S)):
            pass

    def keep(self) -> None:
        """Start the next piece of work that keeps Python warm, if it is due."""
        now_s = time.monotonic()
        if self._work is not None and self._work.done():
            self._work = None
        if now_s < self._due_s or self._work is not None:
            return
        self._due_s = now_s + EVERY_S
        if self.look():
            self._work = self._threads.start(self._use_every_core)

    def close(self) -> None:
        """End the work."""
        self._threads.close()

    def _use_every_core(self) -> None:
        try:
            records = _tombstones(self._spark, self._spark.sparkContext.defaultParallelism)
            for _ in collect_batches(parse_on_executors(records, {_TOPIC: 0}, {})):
                pass
        except (Py4JJavaError, PySparkException) as error:
            LOG.warning("the executors could not be kept warm: %s", str(error).split("\n")[0])

    def look(self) -> int:
        """Return how many executors there are; without any say so, every half minute."""
        count, now_s = executor_count(self._spark), time.monotonic()
        if not count and now_s >= self._said_s + EVERY_S:
            self._said_s = now_s
            LOG.warning(
                "no executor is there, so no batch can be read: does %s have workers with free"
                " cores and %s of memory?",
                self._spark.sparkContext.master,
                self._spark.conf.get("spark.executor.memory", "1g"),
            )
        return count


def _tombstones(spark: SparkSession, tasks: int) -> DataFrame:
    """A record without a value for each task, in the columns of carriers/read.py."""
    return spark.range(0, tasks, 1, tasks).select(
        F.lit(_TOPIC).alias("topic"),
        F.col("id").alias("offset"),
        F.timestamp_micros(F.col("id")).alias("timestamp"),
        F.lit(None).cast("binary").alias("value"),
    )
