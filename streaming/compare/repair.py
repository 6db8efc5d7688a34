"""What sets rows right that differ: the hub's row sent to a replica, or a change of the hub.

One side is the source. Where the hub has the row as the source has it, the other side is sent a
refresh. Where it has it otherwise, the source's row becomes a change of the hub, which goes to
everybody and loses to whatever was written since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from streaming.core.compare.difference import DifferingRow, differing_columns
from streaming.core.compare.row_text import Image
from streaming.core.model.command import CommandName, RowRepair
from streaming.core.model.table import Table
from streaming.core.model.values import json_text
from streaming.core.tracking.ranges import listed_order


class LeftOut(StrEnum):
    """Why a row is not set right."""

    NO_AGREEMENT = "no agreement sends the table to the replica that would be sent the row"
    """it gets rows from nobody"""
    NO_RIGHT = "the replica that is the source may not write the table"
    """what it writes there goes to quarantine"""
    NO_REPLICA = "its database is of no replica of the configuration"
    """the hub can neither send it a row nor take one"""
    NOT_CARRIED = "the row has a key or a value that no record can carry"
    """correct it in its database"""


@dataclass(frozen=True, slots=True)
class RepairSide:
    """A side as it can be repaired; `rid` None: it is no replica, as the hub is none.

    `receives`, `writes`: the tables that it is sent, and those that it may write.
    """

    name: str
    rid: int | None
    is_hub: bool = False
    receives: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RepairStep:
    """An order to the hub, for people: `replica` is sent the row, or its row is preferred."""

    command: CommandName
    replica: str
    repair: RowRepair

    @property
    def text(self) -> str:
        """Return what it does."""
        if self.command is CommandName.REPAIR:
            return f"the hub's row is sent to {self.replica}"
        if self.repair.after is None:
            return f"{self.replica} does not have the row: it is deleted for everybody"
        return f"the row of {self.replica} becomes a change of the hub"


@dataclass(frozen=True, slots=True)
class RepairPlan:
    """The orders that set rows right, and the rows that are left out."""

    steps: tuple[RepairStep, ...]
    left_out: tuple[tuple[DifferingRow, LeftOut], ...]


@dataclass(frozen=True, slots=True)
class RepairPlanner:
    """Plans what sets rows right by the row of `source`, which is the first side or the second.

    `hub`: row -> its image at the hub; a row that is absent does not stand there.
    """

    tables: Mapping[str, Table]
    source: RepairSide
    other: RepairSide
    is_first: bool
    hub: Mapping[tuple[str, str], Image]
    who: str
    why: str

    def plan(self, rows: Sequence[DifferingRow]) -> RepairPlan:
        """The orders for these rows."""
        found = [(row, self._step(row)) for row in rows]
        return RepairPlan(
            tuple(one for _, one in found if isinstance(one, RepairStep)),
            tuple((row, one) for row, one in found if isinstance(one, LeftOut)),
        )

    def _step(self, row: DifferingRow) -> RepairStep | LeftOut:
        wanted = row.first if self.is_first else row.second
        at_hub = self.hub.get((row.table, row.key))
        repair = RowRepair(row.table, row.key, 0, self.who, self.why)
        if listed_order(self.tables[row.table])(row.key)[0]:
            return LeftOut.NOT_CARRIED
        if self.source.is_hub or self._is_same(row, wanted, at_hub):
            return self._refresh(repair)
        return self._preferred(repair, wanted, at_hub)

    def _refresh(self, repair: RowRepair) -> RepairStep | LeftOut:
        if self.other.rid is None:
            return LeftOut.NO_REPLICA
        if repair.table not in self.other.receives:
            return LeftOut.NO_AGREEMENT
        sent = replace(repair, rid=self.other.rid)
        return RepairStep(CommandName.REPAIR, self.other.name, sent)

    def _preferred(
        self, repair: RowRepair, wanted: Image | None, at_hub: Image | None
    ) -> RepairStep | LeftOut:
        if self.source.rid is None:
            return LeftOut.NO_REPLICA
        if repair.table not in self.source.writes:
            return LeftOut.NO_RIGHT
        if any(isinstance(value, dict) for value in (wanted or {}).values()):
            return LeftOut.NOT_CARRIED
        before, after = _text(at_hub), _text(wanted)
        preferred = replace(repair, rid=self.source.rid, before=before, after=after)
        return RepairStep(CommandName.PREFER, self.source.name, preferred)

    def _is_same(self, row: DifferingRow, wanted: Image | None, at_hub: Image | None) -> bool:
        """Return whether the hub has the row so, with every column in which it differs."""
        if wanted is None or at_hub is None:
            return wanted is at_hub
        is_known = at_hub.keys() >= {*row.columns}
        return is_known and not differing_columns(self.tables[row.table], wanted, at_hub)


def _text(image: Image | None) -> str | None:
    return None if image is None else json_text(image)
