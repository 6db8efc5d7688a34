"""Topics in memory: what replicas wrote, as the frame that a Kafka source would give."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

SCHEMA = "topic string, offset bigint, timestamp timestamp, value binary"
"""The columns of Spark's Kafka source that the stages read."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Topics:
    """Growing logs of records by topic, one partition each; for tests of stages."""

    records: dict[str, list[tuple[int, bytes | None]]] = field(default_factory=dict)
    """topic -> (CreateTime in milliseconds, value) by offset"""

    def append(self, topic: str, value: bytes | None, time_ms: int) -> int:
        """Write one record; its offset."""
        log = self.records.setdefault(topic, [])
        log.append((time_ms, value))
        return len(log) - 1

    def end_offsets(self) -> dict[str, int]:
        """Topic -> the offset that the next record will get."""
        return {topic: len(log) for topic, log in self.records.items()}

    def frame(
        self,
        spark: SparkSession,
        from_: Mapping[str, int] | None = None,
        to: Mapping[str, int] | None = None,
    ) -> DataFrame:
        """The records [`from_`, `to`) of every topic, all by default, in the columns of SCHEMA."""
        first, end = from_ or {}, {**self.end_offsets(), **(to or {})}
        rows = [
            (topic, offset, _EPOCH + timedelta(milliseconds=log[offset][0]), log[offset][1])
            for topic, log in self.records.items()
            for offset in range(first.get(topic, 0), end[topic])
        ]
        return spark.createDataFrame(rows, SCHEMA)
