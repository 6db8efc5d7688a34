"""What an undo writes, by the log of a pure hub: the reference of `streaming/operator/undo.py`."""

from collections.abc import Iterable, Iterator
from itertools import takewhile

from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.model.change import Op
from streaming.core.model.command import UndoOrder
from streaming.core.model.table import Table
from streaming.core.replay.undo import (
    UndoneRow,
    WrittenRow,
    is_kept,
    touched_rows,
    undone_row,
)

Logged = tuple[int, Judged]
"""The hub epoch of a change, and the change."""


def undone_rows(
    order: UndoOrder, seen: int, table: Table, log: Iterable[Logged]
) -> Iterator[UndoneRow]:
    """The rows that an order writes back, given at hub epoch `seen`; `log`: all of it, in order."""
    ours = [one for one in log if one[1].arrived.change.table == table.name]
    accepted = [one for one in ours if one[1].verdict is Verdict.ACCEPTED]
    written = {one.arrived.change.csn: _written(epoch, one) for epoch, one in accepted}
    images = {one.arrived.change.csn: _image(one) for _, one in accepted}
    before = _standing(takewhile(lambda one: one[0] <= order.to, ours))
    now = _standing(ours)
    behind = [one for one in written.values() if one.hub_epoch > order.to]
    for row in touched_rows(order, seen, behind, before.keys()):
        if not is_kept(order, seen, row):
            then = before.get(row.key) if row.base is None else images[row.base.csn]
            found = undone_row(row.key, now.get(row.key), then, table.columns)
            if found is not None:
                yield found


def _standing(log: Iterable[Logged]) -> dict[str, str]:
    rows = dict[str, str]()
    for _, one in log:
        if one.verdict not in (Verdict.ACCEPTED, Verdict.ADOPTED):
            continue
        if one.arrived.change.op is Op.TRUNCATE:
            rows.clear()
        elif (image := _image(one)) is None:
            rows.pop(one.arrived.change.key, None)
        else:
            rows[one.arrived.change.key] = image
    return rows


def _image(one: Judged) -> str | None:
    return one.after.image if one.after.exists else None


def _written(hub_epoch: int, one: Judged) -> WrittenRow:
    change = one.arrived.change
    named = change.csn, change.prim_csn, change.rid, change.app, change.op
    return WrittenRow(change.key, hub_epoch, *named)
