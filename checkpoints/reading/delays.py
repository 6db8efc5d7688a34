"""The delays as `delays` has them, read back when a hub starts, and by who asks for a status."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable

from checkpoints.query import execute, records
from checkpoints.times import ms_of
from streaming.core.delivery.day_delay import DayDelay, day_of
from streaming.core.delivery.recovery_point import Delays

SAME = ("origin", "consumer", "covers", "last_ms", "worst_ms", "above_minute_ms")
"""What a row holds under the name and in the type that DayDelay has it."""

_NEWEST = """
    SELECT * FROM (
        SELECT *, row_number() OVER (
            PARTITION BY origin, consumer ORDER BY batch DESC, at DESC
        ) AS n FROM t WHERE batch <= {batch} AND day >= (
            SELECT max(day) FROM t WHERE batch <= {batch}
        ) - INTERVAL '1 day'
    ) WHERE n = 1
"""
"""Each pair that there still is has a row of every day on which a batch was committed."""


def recorded_delays(table: DeltaTable | None, batch: int) -> Delays:
    """The newest delay of each pair up to this batch; none of a state without the table."""
    if table is None:
        return Delays()
    found = map(_delay, records(execute(table, _NEWEST.format(batch=batch))))
    return Delays({(one.origin, one.consumer): one for one in found})


def _delay(row: Mapping[str, Any]) -> DayDelay:
    midnight = datetime.combine(row["day"], datetime.min.time(), UTC)
    return DayDelay(
        **{name: row[name] for name in SAME},
        day=day_of(ms_of(midnight)),
        complete_to_ms=ms_of(row["complete_to"]),
        known_since_ms=ms_of(row["known_since"]),
        at_ms=ms_of(row["at"]),
        is_lacking=row["lacking"],
        is_known=row["known"],
    )
