"""Arriving: a query's rows as Arrow batches, the first ones while Spark still makes the others.

This is what `DataFrame.toArrow` does inside, without waiting for the last batch and its order.
"""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.util import _load_from_socket


def arriving(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows, in any order; PySparkException when the query fails."""
    port, secret, server = frame._jdf.collectAsArrowToPython()  # noqa: SLF001
    try:
        for part in _load_from_socket((port, secret), ArrowCollectSerializer()):  # type: ignore[no-untyped-call]
            if isinstance(part, pa.RecordBatch):  # behind the last one comes their order
                yield part
    except Exception:
        _end(server)  # knows the reason
        raise
    _end(server)


def _end(server: object) -> None:
    with unwrap_spark_exception():
        server.getResult()  # type: ignore[attr-defined]
