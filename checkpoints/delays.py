"""Delays as rows of `delays`, which a batch writes once a minute."""

from collections.abc import Iterable

import pyarrow as pa

from checkpoints.reading.delays import SAME
from checkpoints.store import rows_of
from checkpoints.tables import TableName
from checkpoints.times import time_of
from streaming.core.delivery.day_delay import DAY_MS, DayDelay


def delay_rows(delays: Iterable[DayDelay], batch: int) -> pa.Table:
    """The rows for `delays` that a batch writes."""
    return rows_of(TableName.DELAYS, (_row(one, batch) for one in delays))


def _row(delay: DayDelay, batch: int) -> dict[str, object]:
    return {
        **{name: getattr(delay, name) for name in SAME},
        "batch": batch,
        "day": time_of(delay.day * DAY_MS).date(),
        "complete_to": time_of(delay.complete_to_ms),
        "known_since": time_of(delay.known_since_ms),
        "at": time_of(delay.at_ms),
        "lacking": delay.is_lacking,
        "known": delay.is_known,
    }
