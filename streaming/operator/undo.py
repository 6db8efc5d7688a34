"""Undo for everybody: rows as they stood back, as one transaction of the hub.

The order is small, and says which changes are undone. Who plans it, the command line or a hub in
its batch, reads the rows in the tables: a batch that is repeated reads the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import pyarrow.dataset as ds

from checkpoints.commit.recorded import batch_marks
from checkpoints.reading.as_of import rows_as_of, travel_to
from checkpoints.reading.lookup import ACCEPTED, HUB_ORDER, between
from checkpoints.reading.past import PastStore
from checkpoints.store import StateStore, among
from checkpoints.tables import TableName
from streaming.core.model.change import Op
from streaming.core.model.command import Command, UndoOrder, app_of, parse_undo_order
from streaming.core.model.errors import HubError, QuestionError
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.replay.span import Moment
from streaming.core.replay.undo import (
    TouchedRow,
    UndoneRow,
    UndoPlan,
    WrittenRow,
    is_kept,
    touched_rows,
    undone_row,
)
from streaming.filters.row_predicate import RowPredicate
from streaming.operator.hub_changes import HubChangeWriter

CHANGES_MAX = 2_000_000
"""Among how many changes of its table an undo may have to look."""

_OPS = {op.value: op for op in Op}

Images = Mapping[str, str]
"""Key -> image, of rows that stand."""

UndoneRows = Callable[[StateStore, Table, UndoOrder, int, int], Sequence[UndoneRow] | None]
"""What an order for a table writes back, given at one hub epoch, by the state behind another."""


def act(
    commands: Iterable[Command],
    store: StateStore,
    tables: Mapping[str, Table],
    author: HubChangeWriter,
    upto: int,
    purge_epoch: int,
    undone: UndoneRows,
) -> int:
    """Carry out commands that are `undo`, by the state behind hub epoch `upto`; how many cannot be.

    Of those the table is not configured any more, or the past that they name is not kept. What is
    purged up to `purge_epoch` is not looked for: a batch that is repeated may not find it any more.
    """
    refused = 0
    for command in commands:
        order = parse_undo_order(command.argument or "")
        table = tables.get(order.table)
        if table is None or order.to < purge_epoch:
            rows = None
        else:
            rows = undone(store, table, order, command.seen, upto)
        if rows is None:
            refused += 1
        else:
            author.make_transaction(order.table, rows, upto, app_of("undo", order.who))
    return refused


def undone_rows(
    store: StateStore, table: Table, order: UndoOrder, seen: int, upto: int
) -> Sequence[UndoneRow] | None:
    """What a batch writes back, by the tables; None: the order cannot be carried out."""
    past = PastStore(store.root)
    try:
        return planned(past, table, order, seen, upto).rows
    except HubError:
        return None
    finally:
        past.close()


def planned(
    store: PastStore, table: Table, order: UndoOrder, seen: int, upto: int | None = None
) -> UndoPlan:
    """What the order does, given at hub epoch `seen`, by the state behind `upto`, by default seen.

    QuestionError: the moment is not kept any more; ConfigError: the condition is none.
    """
    marks, upto = batch_marks(store), seen if upto is None else upto
    travel_to(store, marks, _moment(order.to))
    written = _written(store, order, upto)
    is_truncated = any(one.key == ALL_KEYS for one in written)
    before = _images(store, order, order.to, None) if is_truncated else {}
    touched = touched_rows(order, seen, written, before.keys())
    unwritten = [row.key for row in touched if row.base is None]
    if not is_truncated:
        before = _images(store, order, order.to, unwritten)
    then = {key: before[key] for key in unwritten if key in before}
    then |= _behind(store, [row.base for row in touched if row.base is not None])
    travel_to(store, marks, _moment(upto))
    now = _images(store, order, upto, [row.key for row in touched])
    if order.where is not None:
        rows = now | then
        shown = RowPredicate(order.where, table).shown([*rows.values()])
        here = {key for key, is_meant in zip(rows, shown, strict=True) if is_meant}
        touched = [row for row in touched if row.key in here]
    return _plan(order, seen, table, touched, now, then)


def _plan(
    order: UndoOrder,
    seen: int,
    table: Table,
    touched: Sequence[TouchedRow],
    now: Images,
    then: Images,
) -> UndoPlan:
    kept = tuple(row for row in touched if is_kept(order, seen, row))
    left = {row.key for row in kept}
    back = [row for row in touched if row.key not in left]
    rows = [undone_row(row.key, now.get(row.key), then.get(row.key), table.columns) for row in back]
    others = tuple(row for row in back if row.since is not None)
    made = tuple(row for row in rows if row is not None)
    return UndoPlan(order, seen, made, kept, others, len(rows) - len(made))


def _moment(hub_epoch: int) -> Moment:
    return Moment(str(hub_epoch), hub_epoch=hub_epoch)


def _written(store: PastStore, order: UndoOrder, upto: int) -> list[WrittenRow]:
    """The accepted changes of the table behind the order's moment, in hub order."""
    where = between(order.to, upto) & ACCEPTED & (ds.field("table") == order.table)
    if order.key is not None:
        where &= ds.field("key").isin([order.key, ALL_KEYS])
    found = store.read(TableName.CHANGELOG, where, [*WrittenRow._fields, "place"])
    if found.num_rows > CHANGES_MAX:
        raise QuestionError(
            f"{order.table} has {found.num_rows:,} changes behind hub epoch {order.to}, and an undo"
            f" looks through {CHANGES_MAX:,} at most: name a later moment, or a key"
        )
    ordered = found.sort_by(HUB_ORDER)
    columns = {name: ordered[name].to_pylist() for name in WrittenRow._fields}
    columns["op"] = [_OPS[op] for op in columns["op"]]
    return list(map(WrittenRow, *columns.values()))


def _images(
    store: PastStore, order: UndoOrder, hub_epoch: int, keys: Sequence[str] | None
) -> dict[str, str]:
    """The rows of the order's table as they stood, to where the store has travelled."""
    if keys is not None and not keys:
        return {}
    found = rows_as_of(store, order.table, hub_epoch, keys)
    return dict(zip(found["key"].to_pylist(), found["image"].to_pylist(), strict=True))


def _behind(store: PastStore, bases: Sequence[WrittenRow]) -> dict[str, str]:
    """The rows as these changes left them, of those that stood."""
    keys = {one.csn: one.key for one in bases if one.op.has_image}
    if not keys:
        return {}
    where = among("csn", list(keys)) & ACCEPTED
    rows = store.read(TableName.CHANGELOG, where, ["csn", "image"]).to_pylist()
    return {keys[row["csn"]]: row["image"] for row in rows}
