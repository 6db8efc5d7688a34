"""Removes the files that a compaction replaced, once no reader can be reading them any more.

Only files are removed that the table's log names as removed: no version will ever name them again,
so a crash in between, or another hub that does the same, does no harm. A file that is being
appended is in no log yet and is left alone.
"""

import math
from dataclasses import dataclass, field
from pathlib import Path

from deltalake import DeltaTable

DEAD_KEPT_S = 600
"""How long a reader may go on with a version that it opened just before a compaction."""


@dataclass(slots=True)
class DeadFiles:
    """The replaced files of the tables, each with the time at which it may be removed."""

    kept_s: float = DEAD_KEPT_S
    _due_s: dict[Path, dict[str, float]] = field(default_factory=dict)

    def remove(self, folder: Path, table: DeltaTable, now_s: float) -> None:
        """Remove the files of the table in this folder that were first seen replaced `kept_s` ago.

        `table`: at its newest version.
        """
        known = self._due_s.get(folder, {})
        due_s = {name: known.get(name, now_s + self.kept_s) for name in _replaced(table)}
        for name in [name for name, at_s in due_s.items() if at_s <= now_s]:
            (folder / name).unlink(missing_ok=True)
            due_s[name] = math.inf  # the log names it for a while still
        self._due_s[folder] = due_s


def _replaced(table: DeltaTable) -> list[str]:
    """The files that the table's log names as removed, until their entries expire."""
    return table.vacuum(0, dry_run=True, enforce_retention_duration=False)
