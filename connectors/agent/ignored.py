"""What an agent reads and cannot use: named at first, then only counted, for it may be a flood."""

import logging
from dataclasses import dataclass

log = logging.getLogger(__name__)

NAMED = 10
"""So many are named; then the 100th, the 1,000th, and so on."""


@dataclass(slots=True)
class IgnoredRecords:
    """The records of a topic that were ignored."""

    count: int = 0

    def note(self, record: str, error: Exception) -> None:
        """Count one, and name it or say how many there were."""
        self.count += 1
        if self.count <= NAMED:
            log.warning("%s is ignored: %s", record, error)
        elif str(self.count).strip("0") == "1":
            log.warning("%d such records are ignored by now; the last: %s", self.count, error)
