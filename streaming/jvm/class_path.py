"""The jars of Spark's sessions beside pyspark's own, the same ones for driver and executors."""

from pathlib import Path

from connectors.jars import SPARK, cached
from connectors.log_store import log_store_jar


def class_path() -> list[Path]:
    """What every session has; JarsError if the cache lacks some of it."""
    return [*cached(SPARK), log_store_jar()]
