"""Read the records of a planned batch without the JVM, one by one within a bound of memory.

For a batch that hubs died of: a record of some kB may be a gigabyte once it is decompressed. What
can be read is checked as ever; the others are quarantined by their offsets, so the hub goes on.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from checkpoints.commit.epochs import Plan
from checkpoints.times import time_of
from connectors.kafka.bounded_reader import BoundedReader, UnreadableRecords
from connectors.kafka.record_stream import FoundRecord
from streaming.core.model.table import Table
from streaming.core.records.check import Limits, size_fault
from streaming.core.records.members import RecordFault
from streaming.core.records.record import Reason
from streaming.stages.check import check_records
from streaming.stages.checked import checked

_ARRIVED = pa.schema(
    [
        ("topic", pa.string()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("value", pa.binary()),
    ]
)
"""carriers/read.py: COLUMNS."""


def read_apart(
    reader: BoundedReader,
    plan: Plan,
    topics: Mapping[str, int],
    tables: Mapping[str, Table],
    limits: Limits,
) -> pa.Table:
    """CHECKED of the plan's records (`topics`: topic -> rid); those that fail have no bytes."""
    whole, faults = list[dict[str, object]](), list[dict[str, object]]()
    for topic, (first, end) in plan.named.items():
        for found in reader.read(topic, first, end):
            if isinstance(found, FoundRecord) and found.kept.sha256 is None:
                time = time_of(max(found.time_ms, 0))
                row = {"topic": topic, "offset": found.offset, "timestamp": time}
                whole.append(row | {"value": found.kept.whole})
            else:
                faults += _faults(found, topics[topic], plan, limits)
    arrived = pa.Table.from_pylist(whole, schema=_ARRIVED)
    names = ("rid", "offset", "time", "reason", "detail")
    columns = {name: [one[name] for one in faults] for name in names}
    good = check_records(arrived, topics, tables, limits)
    return pa.concat_tables([good, checked(columns, len(faults))])


def _faults(
    found: FoundRecord | UnreadableRecords, rid: int, plan: Plan, limits: Limits
) -> Iterator[dict[str, object]]:
    """The rows of records that are too large to be checked, or that cannot be read."""
    if isinstance(found, UnreadableRecords):
        offsets, time_ms = found.offsets, plan.at_ms  # nobody can tell when it was written
        fault = RecordFault(Reason.UNREADABLE, found.reason)
    else:
        offsets, time_ms = range(found.offset, found.offset + 1), max(found.time_ms, 0)
        fault = size_fault(found.kept.size or 0, limits)
    for offset in offsets:
        place = {"rid": rid, "offset": offset, "time": time_of(time_ms)}
        yield place | {"reason": fault.reason.value, "detail": fault.detail}
