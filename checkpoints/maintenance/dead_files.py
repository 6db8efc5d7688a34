"""Removes the files that a compaction replaced, once no reader can be reading them any more.

Only files are removed that the table's log names as removed: no version will ever name them again,
so a crash in between, or another hub that does the same, does no harm. A file that is being
appended is in no log yet and is left alone.
"""

import math
from dataclasses import dataclass, field

from deltalake import DeltaTable

from checkpoints.root import remove_file
from streaming.core.access.root import StateRoot

DEAD_KEPT_S = 600
"""How long a reader may go on with a version that it opened just before a compaction."""


@dataclass(slots=True)
class DeadFiles:
    """The replaced files of the tables, each with the time at which it may be removed."""

    kept_s: float = DEAD_KEPT_S
    _due_s: dict[str, dict[str, float]] = field(default_factory=dict)

    def remove(self, root: StateRoot, name: str, table: DeltaTable, now_s: float) -> None:
        """Remove the files of this table of the root that were first seen replaced `kept_s` ago.

        `table`: at its newest version.
        """
        known = self._due_s.get(name, {})
        replaced = table.vacuum(0, dry_run=True, enforce_retention_duration=False)
        due_s = {file: known.get(file, now_s + self.kept_s) for file in replaced}
        for file in [file for file, at_s in due_s.items() if at_s <= now_s]:
            remove_file(root, f"{name}/{file}")
            due_s[file] = math.inf  # the log names it for a while still
        self._due_s[name] = due_s
