"""What an agent has done since it started, and what it has before it; any thread may look."""

import time
from dataclasses import dataclass


@dataclass(slots=True)
class AgentCounts:
    """Counts of one agent.

    `backlog`: journal entries that are not known to be in the changes topic, looked up every
    second. `batches`, `items`, `refused`: of the hub, applied; items that the database refused.
    `uncarried`, `saved`: rows that are only in this database, looked up every second.
    `held_since_s`: since when, by the monotonic clock, the agent waits for the database, which is
    applying what it received or is blocked by somebody's transaction.
    """

    published: int = 0
    backlog: int = 0
    batches: int = 0
    items: int = 0
    refused: int = 0
    sessions: int = 0
    covers: int = 0
    uncarried: int = 0
    saved: int = 0
    held_since_s: float | None = None

    def held_s(self) -> float:
        """How long the agent waits for the database; 0: it does not."""
        since_s = self.held_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s
