"""Core's check and the vectorized check of the same records, compared."""

import random
from collections.abc import Iterator, Sequence
from unittest.mock import patch

import pyarrow as pa

from streaming.core.records.check import CheckedRecord, Limits, check
from streaming.stages import canonical
from streaming.stages.check import check_records
from tests.harness.mutations import KNOWN, mutated
from tests.harness.raw_records import TIME_S, TOPIC, TOPICS

LIMITS = Limits(record_bytes=1_000)
Difference = tuple[bytes, CheckedRecord, CheckedRecord]
"""(the record, core's result, the vectorized check's result)."""


def records_of(values: Sequence[bytes | None], time_ms: int = TIME_S * 1000) -> pa.Table:
    """Values as the records of one topic (carriers/read.py: COLUMNS)."""
    columns = {
        "topic": pa.array([TOPIC] * len(values), pa.string()),
        "offset": pa.array(range(len(values)), pa.int64()),
        "timestamp": pa.array([time_ms * 1000] * len(values), pa.timestamp("us", tz="UTC")),
        "value": pa.array(values, pa.binary()),
    }
    return pa.table(columns)


def differences(
    values: Sequence[bytes], limits: Limits = LIMITS, *, few: int = canonical.FEW
) -> Iterator[Difference]:
    """The records on which both checks disagree; `few`: see stages/canonical.py."""
    with patch.object(canonical, "FEW", few):
        found = check_records(records_of(values), TOPICS, KNOWN, limits).sort_by("offset")
    assert found["offset"].to_pylist() == list(range(len(values)))
    checked = found.select(list(CheckedRecord._fields)).to_pylist()
    kept = found["value"].to_pylist()
    for value, row, bytes_ in zip(values, checked, kept, strict=True):
        expected = check(value, TOPICS[TOPIC], KNOWN, limits)
        good_change = expected.reason is None and expected.kind == "change"
        same_bytes = bytes_ == (None if good_change else value)
        if CheckedRecord(**row) != expected or not same_bytes:
            yield value, expected, CheckedRecord(**row)


def fuzz(
    seed: int, count: int, at_once: int = 5_000, limits: Limits = LIMITS
) -> Iterator[Difference]:
    """Differences on so many random records; the same seed gives the same records."""
    rng = random.Random(seed)
    for _ in range(0, count, at_once):
        yield from differences([mutated(rng) for _ in range(min(at_once, count))], limits)
