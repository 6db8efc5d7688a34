"""What waits in quarantine for a column goes on: the hub orders its release by itself.

It orders as an operator does, by commands: a plan names those that its batch takes, so a hub that
dies anywhere takes each once (docs/protocol.md, section 4.4).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from checkpoints.config import append_commands
from checkpoints.reading.reader import Reader, open_state
from checkpoints.reading.waiting_columns import commits_of_waiting, waiting_for_columns
from checkpoints.store import StateStore
from checkpoints.times import ms_of, time_of
from streaming.core.intake.waiting_columns import WaitingChange, going_on
from streaming.core.model.command import CommandName
from streaming.core.model.csn import is_skewed
from streaming.core.state.topology import Topology
from streaming.operator.release import Originals, Revalidate, releasable

MOST = 1_000
"""So many changes go on at once, apart from the rest of their transactions."""


@dataclass(frozen=True, slots=True)
class WaitingColumns:
    """The look for what waits for a column and may go on, of the hub with this rid.

    `topology`: of a table of which its replica is shown some rows only, what that writes is judged
    by what it is shown, which a change of the hub does not tell. It waits for a person, as does
    what a clock wrote that was wrong.
    """

    store: StateStore
    hub_rid: int
    topology: Topology
    revalidate: Revalidate
    originals: Originals

    def order(self, at_ms: int) -> int:
        """Order the release of what may go on; how many changes that is."""
        reader = open_state(self.store.root)
        ordered = {
            row["argument"]
            for row in reader.commands()
            if row["command"] in _OF_QUARANTINE and row["number"] > _taken(reader)
        }
        found = [one for one in self._going_on(reader) if one.id not in ordered]
        fields = {"command": CommandName.RELEASE.value, "at": time_of(at_ms)}
        commands = [fields | {"argument": one.id, "seen": one.mre} for one in found]
        append_commands(self.store, commands)
        return len(found)

    def _going_on(self, reader: Reader) -> list[WaitingChange]:
        rows = waiting_for_columns(reader, self.hub_rid)
        judged = [row for row in rows if row["is_known"] and self._may_judge(row)]
        if not judged:
            return []
        valid = releasable(judged, self.revalidate, self.originals)
        waiting = [
            WaitingChange(
                row["id"],
                row["rid"],
                row["batch"],
                row["offset"],
                (row["prim_csn"] or row["csn"], row["rid"]),
                (row["table"] or "", row["key"] or ""),
                row["mre"] or 0,
                is_valid=row["id"] in valid,
                is_overwritten=row["is_overwritten"],
                is_contended=row["is_contended"],
            )
            for row in rows
        ]
        alone = {(row["csn"], row["rid"]) for row in rows if row["prim_csn"] is None}
        committed = {*alone, *commits_of_waiting(reader, min(row["batch"] for row in rows))}
        return going_on(waiting, committed, MOST)

    def _may_judge(self, row: Mapping[str, Any]) -> bool:
        """Return whether its MRE says what its replica had seen of the row."""
        is_ahead = is_skewed(row["csn"], "", ms_of(row["time"]), self.topology.skew_s)
        return not (is_ahead or self.topology.has_filter(row["rid"], row["table"]))


_OF_QUARANTINE = {CommandName.RELEASE.value, CommandName.DROP.value}


def _taken(reader: Reader) -> int:
    return reader.commit.command_number if reader.commit else 0
