"""The section `retention`: from the configuration's hours to what a hub is told."""

import pytest

from streaming.config.config import Config
from streaming.config.retention import RetentionConfig
from streaming.hub.configured import settings_of, topology_of
from tests.streaming.config.test_holding import KNOWN

HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("keep_h", "kept_h", "rows_h"), [(None, 168, 192), (0.5, 0.5, 192), (200, 200, 224)]
)
def test_the_history_is_kept_for_the_replay_window_unless_said_otherwise(
    keep_h: float | None, kept_h: float, rows_h: int
) -> None:
    """The versions of `rows` are there for the oldest state that is kept."""
    section = RetentionConfig(keep_h=keep_h)

    assert section.keep_ms(168) == kept_h * HOUR_MS
    assert section.rows_h(168) == rows_h


def test_a_hub_is_told_in_milliseconds() -> None:
    """The one clock that counts is the hub's."""
    retention = {"keep_h": 2, "max_away_h": 3, "conflicts_h": 4}
    config = Config.model_validate({**KNOWN, "retention": retention})

    found = settings_of(config).retention

    assert (found.keep_ms, found.conflicts_ms) == (2 * HOUR_MS, 4 * HOUR_MS)
    assert topology_of(config).max_away_ms == 3 * HOUR_MS
