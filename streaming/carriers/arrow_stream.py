"""Arriving: a query's rows as Arrow batches, the first ones while Spark still makes the others.

This is what `DataFrame.toArrow` does inside, without waiting for the last batch and its order.
"""

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.util import _load_from_socket

_WORTH_IT = 10_000
"""Of so many records on, what one takes of the time counts, not how often one begins."""


def arriving(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows, in any order; PySparkException when the query fails."""
    port, secret, server = frame._jdf.collectAsArrowToPython()  # noqa: SLF001
    serializer = ArrowCollectSerializer()  # type: ignore[no-untyped-call]
    try:
        with _load_from_socket((port, secret), serializer) as stream:
            for part in stream:
                if isinstance(part, pa.RecordBatch):  # behind the last one comes their order
                    yield part
    except Exception:
        _end(server)  # knows the reason
        raise
    _end(server)


def gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, small ones together: dozens of calls take a table apart, whatever its size."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _WORTH_IT:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _end(server: object) -> None:
    with unwrap_spark_exception():
        server.getResult()  # type: ignore[attr-defined]
