"""The section `retention`: for how long the history is kept, and for how long consumers hold it."""

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Hours = Annotated[float, Field(gt=0)]
_HOUR_MS = 3_600_000
_DAY_H = 24


class RetentionConfig(BaseModel):
    """What is purged from the state, beside the batches: see docs/protocol.md, Purge."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    keep_h: Hours | None = None
    """For how many hours the history is kept, though every consumer has it; none: for
    hub.replay_window_h. What an open transaction, a pin or a consumer still needs is kept longer.
    """
    max_away_h: Hours = 168
    """A consumer that counts as away for so many hours no longer keeps what it lacks from being
    purged; when it comes back, it gets a full copy."""
    conflicts_h: Hours = 2_160
    """For how many hours conflicts are kept, with what lost, and the worst delay of each day; a
    refused row until it is closed."""

    @property
    def max_away_ms(self) -> int:
        """`max_away_h` in milliseconds."""
        return round(self.max_away_h * _HOUR_MS)

    @property
    def conflicts_ms(self) -> int:
        """`conflicts_h` in milliseconds."""
        return round(self.conflicts_h * _HOUR_MS)

    def rows_h(self, replay_window_h: int) -> int:
        """For how many hours the versions of `rows` are kept.

        A day longer than the history: the state with which that begins is a little older.
        """
        return max(replay_window_h, math.ceil(self.keep_h or 0)) + _DAY_H

    def keep_ms(self, replay_window_h: int) -> int:
        """For how many milliseconds the history is kept."""
        return round((self.keep_h or replay_window_h) * _HOUR_MS)
