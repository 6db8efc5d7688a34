"""The measure of stages/recipients.py and stages/publish.py: what a consumer is sent."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from streaming.core.batch.sending import PAGE, LogEntry, RangeRefresh, Refresh, kept_item
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.model.change import HUB_RID, Op, RowKey
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.row import Floor
from streaming.core.model.row_filter import RowFilter
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import Table
from streaming.core.records.record import Item, ItemType, RangeItem
from tests.reference.columns import image_with

Filters = Mapping[str, RowFilter]
"""Table -> which of its rows a consumer is shown."""
NO_FILTERS: Filters = MappingProxyType({})
Columns = Mapping[str, ColumnFilter]
"""Table -> which of its columns a consumer is sent."""
ALL_COLUMNS: Columns = MappingProxyType({})
Tables = Mapping[str, Table]
NO_TABLES: Tables = MappingProxyType({})


def is_for(
    entry: LogEntry,
    consumer: int,
    tables: Iterable[str],
    ruv: Ruv,
    floors: Iterable[Floor] = (),
    filters: Filters = NO_FILTERS,
    *,
    deletes: bool = True,
) -> bool:
    """Return whether a changelog entry is sent to this consumer; `deletes`: they are.

    Changes that its RUV covers are skipped. Its own changes are not sent back, unless it lost them
    (`floors`). Refreshes are skipped by covers only, because they have the CSN of an old winner
    (docs/traps.md, A refresh carries an old CSN). What leaves a row hidden that surely was hidden
    before is not sent.
    """
    if not deletes and _is_delete(entry, filters):
        return False
    if isinstance(entry, Refresh | RangeRefresh):
        return entry.to == consumer
    change = entry.arrived.change
    accepted = entry.verdict is Verdict.ACCEPTED and change.table in tables
    accepted = accepted and not _stays_hidden(entry, filters)
    if change.rid == consumer:
        return accepted and any(floor.gives_back(change.csn) for floor in floors)
    return accepted and not ruv.covers(change.csn)


def _is_delete(entry: LogEntry, filters: Filters) -> bool:
    """Return whether an entry deletes rows of the consumer."""
    if isinstance(entry, RangeRefresh):
        return False
    (found,) = items_of(entry, filters)
    return isinstance(found, Item) and found.op in (Op.DELETE, Op.TRUNCATE)


def _stays_hidden(judged: Judged, filters: Filters) -> bool:
    """Return whether the row was and is hidden; an update without `before` counts as shown."""
    change = judged.arrived.change
    known = filters.get(change.table)
    if known is None or change.op is Op.TRUNCATE:
        return False
    is_shown = judged.after.image is not None and known.shown([judged.after.image])[0]
    if is_shown or judged.concurrent or change.rid == HUB_RID:
        return False
    if change.op is Op.INSERT:
        return judged.before.csn is None
    return known.surely_hidden([change.before])[0]


RowEntry = Judged | Refresh
"""An entry of one row."""


def row_of(entry: RowEntry) -> RowKey:
    """Return the row that an entry is of."""
    return (entry.table, entry.key) if isinstance(entry, Refresh) else entry.arrived.change.row


def last_of_rows(entries: Sequence[RowEntry]) -> list[RowEntry]:
    """Return the entries of a page that are sent: of each row the last one, in hub order.

    What stands before a truncate of its table is left out. A consumer applies a page as one local
    transaction and never shows what lay in between.
    """
    last = dict[RowKey, int]()
    for place, entry in enumerate(entries):
        if is_truncate(entry):
            last = {row: at for row, at in last.items() if row[0] != row_of(entry)[0]}
        last[row_of(entry)] = place
    return [entries[place] for place in sorted(last.values())]


def is_truncate(entry: LogEntry) -> bool:
    """Return whether an entry is of a truncate."""
    return isinstance(entry, Judged) and entry.arrived.change.op is Op.TRUNCATE


def tracked(
    entries: Iterable[tuple[int, LogEntry]],
    consumer: int,
    tables: Iterable[str],
    ruv: Ruv,
    floors: Iterable[Floor] = (),
    filters: Filters = NO_FILTERS,
    *,
    deletes: bool = True,
) -> dict[RowKey, int]:
    """Return the rows that these entries would have sent, each with the hub epoch of its version.

    `entries`: with their hub epochs; the other arguments as in `is_for`. Of a refresh it is the hub
    epoch of the row that it sent (docs/traps.md, A refresh carries an old CSN).
    """
    found = dict[RowKey, int]()
    for hub_epoch, entry in entries:
        if isinstance(entry, RangeRefresh) or is_truncate(entry):
            continue
        if not is_for(entry, consumer, tables, ruv, floors, filters, deletes=deletes):
            continue
        row = row_of(entry)
        version = entry.row.hub_epoch if isinstance(entry, Refresh) else hub_epoch
        found[row] = max(version, found.get(row, 0))
    return found


def items_of(
    entry: LogEntry,
    filters: Filters = NO_FILTERS,
    columns: Columns = ALL_COLUMNS,
    tables: Tables = NO_TABLES,
    *,
    deletes: bool = True,
) -> tuple[Item | RangeItem, ...]:
    """Return the items that a consumer is sent for an entry; of a range its rows behind it.

    What its filters hide is a delete, or no row of a range; of a row they may show some columns.
    Each row says which of the columns of these tables it lacks.
    """
    if not isinstance(entry, RangeRefresh):
        found = item(entry)
        known = filters.get(found.table)
        if known is not None and found.after is not None and not known.shown([found.after])[0]:
            found = replace(found, op=Op.DELETE, after=None)
        return (_with_unset(_cut(found, columns), columns, tables),)
    table = entry.range.table
    there = [Refresh(entry.to, table, key, row, PAGE) for key, row in entry.rows]
    known = filters.get(table)
    rows = [one for one in there if known is None or known.shown([one.row.image])[0]]
    hidden = len(there) - len(rows) if entry.is_vouched and deletes else 0
    kept = [kept_item(table, key) for key in entry.kept]
    items = (_with_unset(_cut(item(one), columns), columns, tables) for one in rows)
    head = RangeItem(*entry.range, len(rows) + len(kept), hidden, deletes)
    return (head, *items, *kept)


def _cut(found: Item, columns: Columns) -> Item:
    known = columns.get(found.table)
    return found if known is None else replace(found, after=image_with(found.after, known))


def _with_unset(found: Item, columns: Columns, tables: Tables) -> Item:
    """The item with the columns that its consumer is sent and that its row has no value of."""
    if found.after is None or found.table not in tables:
        return found
    table, there = tables[found.table], json.loads(found.after)
    sent = columns[found.table].columns if found.table in columns else table.columns
    lacking = [one for one in table.columns if one not in table.key and one not in there]
    return replace(found, unset=tuple(one for one in lacking if one in sent))


def item(entry: RowEntry) -> Item:
    """Return the item that a consumer is sent for an entry of one row."""
    if isinstance(entry, Refresh):
        op = Op.DELETE if entry.row.image is None else Op.UPDATE
        row = entry.row
        return Item(
            ItemType.REFRESH,
            entry.table,
            entry.key,
            op,
            row.image,
            row.csn,
            row.author,
            None,
            entry.cause,
        )
    change = entry.arrived.change
    return Item(
        ItemType.CHANGE,
        change.table,
        change.key,
        change.op,
        entry.after.image,
        change.csn,
        change.rid,
        change.prim_csn,
    )
