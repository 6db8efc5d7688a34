"""Threads for Spark jobs beside the batches: a batch gets a slot as soon as one is free."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any, TypeVar
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from checkpoints.store import storage_errors
from streaming.core.access.root import StateRoot

POOL = "maintenance"
"""Spark's scheduler pool of these jobs (streaming/jvm/fairscheduler.xml)."""

_CANCEL_EVERY_S = 0.1
"""One statement is several jobs, and only one that runs can be cancelled."""

Result = TypeVar("Result")


class SparkThreads:
    """So many threads that work on one state root; StateError if its storage fails."""

    def __init__(self, spark: SparkSession, root: StateRoot, name: str, count: int) -> None:
        self._spark = spark
        self._root = root
        self._tag = f"{name}-{uuid4().hex}"
        self._pool = ThreadPoolExecutor(count, name, self._yield_to_batches)
        self._works: list[Future[Any]] = []

    def start(self, work: Callable[[], Result]) -> "Future[Result]":
        """Start a piece of work; it waits until a thread is free."""
        started = self._pool.submit(self._with_storage_errors, work)
        self._works = [*(work for work in self._works if not work.done()), started]
        return started

    def close(self) -> None:
        """Cancel Spark's running jobs and end; whoever starts next starts them again."""
        running = [work for work in self._works if not work.cancel()]
        while wait(running, timeout=_CANCEL_EVERY_S).not_done:
            with suppress(ConnectionError, Py4JError):  # its JVM may be gone
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
        self._pool.shutdown()

    def _yield_to_batches(self) -> None:
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", POOL)
        self._spark.sparkContext.addJobTag(self._tag)

    def _with_storage_errors(self, work: Callable[[], Result]) -> Result:
        with storage_errors(self._root):
            return work()
