"""Close conflicts: accepted as decided, or overridden by a change of the hub."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from checkpoints.store import StateStore, among, rows_of
from checkpoints.tables import TableName
from streaming.core.conflict.judge import ConflictKind
from streaming.core.conflict.masked import NONE_MASKED, MaskedTables, may_hold_masks
from streaming.core.model.change import Op
from streaming.core.model.command import Command, CommandName
from streaming.operator.hub_changes import HubChangeWriter


@dataclass(frozen=True, slots=True)
class Resolved:
    """The conflicts that an operator closed; `changes`: of an overridden one, its new CSN."""

    conflicts: Sequence[Mapping[str, Any]]
    changes: Mapping[str, str]

    def rows(self, batch: int, rejected: Collection[str]) -> pa.Table:
        """The rows for `conflicts`; one whose change was rejected itself stays open."""
        return rows_of(TableName.CONFLICTS, list(self._rows(batch, rejected)))

    def _rows(self, batch: int, rejected: Collection[str]) -> Iterator[dict[str, Any]]:
        for row in self.conflicts:
            csn = self.changes.get(row["id"])
            if csn is None:
                yield {**row, "batch": batch, "resolution": "accepted"}
            elif csn not in rejected:
                yield {**row, "batch": batch, "resolution": "overridden", "resolved_by": csn}


def act(
    store: StateStore,
    commands: Sequence[Command],
    author: HubChangeWriter,
    batch: int,
    *,
    masked: MaskedTables = NONE_MASKED,
) -> Resolved:
    """Carry out commands that are `accept` or `override`, each conflict once.

    An override is a change of the hub with the loser's image; it is judged by the hub epoch that
    the operator looked at, so it loses against later changes of the row. A conflict of a table that
    is no longer configured, of a truncate, or of a loser that may hold masks, cannot be overridden
    and stays open.
    """
    by_id = {c.argument: c for c in commands if c.argument}
    if not by_id:
        return Resolved((), {})
    found = [
        row
        for row in _open(store, list(by_id), batch)
        if by_id[row["id"]].name is CommandName.ACCEPT
        or (author.knows(row["table"]) and _can_win(row, masked))
    ]
    changes = {
        row["id"]: _overridden(row, author, by_id[row["id"]].seen)
        for row in found
        if by_id[row["id"]].name is CommandName.OVERRIDE
    }
    return Resolved(found, changes)


def _open(store: StateStore, ids: Sequence[str], batch: int) -> Iterator[dict[str, Any]]:
    """The conflicts of these ids that are open before this batch, no refused rows among them."""
    where = among("id", ids) & (ds.field("batch") < batch)
    rows = store.read(TableName.CONFLICTS, where).sort_by("batch").to_pylist()
    newest = {row["id"]: row for row in rows}
    yield from (
        row
        for row in newest.values()
        if row["resolution"] == "open" and row["kind"] != ConflictKind.REFUSED
    )


def _can_win(row: Mapping[str, Any], masked: MaskedTables) -> bool:
    loser = row["kind"], row["loser_rid"], row["table"], row["after"]
    return row["op"] != Op.TRUNCATE and not may_hold_masks(*loser, masked)


def _overridden(row: Mapping[str, Any], author: HubChangeWriter, seen: int) -> str:
    """Make a change with the loser's image; return its CSN."""
    op = Op.DELETE if row["after"] is None else Op.UPDATE
    before = row["winner_image"]
    return author.make(row["table"], row["key"], op, row["after"], before, seen).change.csn
