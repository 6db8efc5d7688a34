"""The delays in their table: what a hub reads back when it starts."""

from dataclasses import replace
from pathlib import Path

from checkpoints.delays import delay_rows
from checkpoints.query import open_table
from checkpoints.reading.delays import recorded_delays
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.delivery.day_delay import DAY_MS, DayDelay
from streaming.core.delivery.recovery_point import Delays

NOON_MS = 20_000 * DAY_MS + DAY_MS // 2
ONE = DayDelay(1, 2, 20_000, NOON_MS - 5, 7, NOON_MS - 2, NOON_MS, 5, 90_000, 30_000)
OTHER = replace(ONE, origin=2, consumer=1, is_lacking=True, is_known=False)


def test_the_last_row_of_each_pair_counts(tmp_path: Path) -> None:
    """Of an uncommitted batch, and of a pair that is gone, nothing is read."""
    store = StateStore(tmp_path)
    store.create()
    gone = replace(ONE, origin=9, day=19_990)
    over = replace(ONE, at_ms=NOON_MS + DAY_MS // 2)
    today = replace(ONE, day=20_001, at_ms=NOON_MS + DAY_MS, worst_ms=1, above_minute_ms=0)
    for batch, delays in ((1, [gone]), (2, [ONE, OTHER]), (3, [over, today, OTHER]), (4, [ONE])):
        store.append_once(TableName.DELAYS, delay_rows(delays, batch), "delays:1", batch)

    found = recorded_delays(open_table(tmp_path, TableName.DELAYS), 3)

    assert found == Delays({(1, 2): today, (2, 1): OTHER})


def test_a_state_of_before_has_none(tmp_path: Path) -> None:
    """Its hub goes on, and measures from then on."""
    assert recorded_delays(open_table(tmp_path, TableName.DELAYS), 3) == Delays()
