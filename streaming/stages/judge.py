"""Judge a batch: uncontended changes are accepted in bulk, contended ones are judged by core.

A change is uncontended if no other replica writes its row in this batch, and the row that the
window holds cannot make it concurrent. The last such change of a row becomes the row.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.batch.after import TablesAfter
from streaming.core.batch.batch_judge import BatchJudge
from streaming.core.batch.sending import Refresh
from streaming.core.conflict.judge import Judged
from streaming.core.conflict.winner import Resolution
from streaming.core.intake.intake import Intake
from streaming.core.model.change import Op, RowKey
from streaming.core.model.function import ConflictRule
from streaming.core.model.row import Arrived, RowState, with_image
from streaming.core.model.row_name import SEPARATOR, text_of
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS, Truncations
from streaming.core.records.arrival import Repair
from streaming.core.state.topology import Topology
from streaming.core.tracking.resync import ResyncPage
from streaming.stages.checked import (
    Bools,
    Fetch,
    Ints,
    bools,
    ints,
    is_away,
    one_array,
    with_images,
)
from streaming.stages.csns import CsnNumbers, csn_numbers
from streaming.stages.identities import Identities, RowHash
from streaming.stages.intake import arrived_of
from streaming.stages.standing import RowsAt
from streaming.stages.window import AcceptedRows, ChangedRows, RowColumns, Window, accepted_rows

LAST = 1 << 62
"""A position after every change of the batch."""

NO_ROWS: Mapping[RowKey, RowState] = {}

LookUpOthers = Callable[[str, Collection[str]], Iterable[RowState]]
"""Looks up what stands for the rows of a table whose keys are not known (core: `summary`)."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The outcome of judging a batch's eligible changes.

    `changes`: ELIGIBLE in hub order, with the images of the changes that core judged.
    `judged`: position in `changes` -> the outcome of a contended change.
    `refreshes`: (position, refresh): the refresh follows the change at this position; a refresh
    of a repair has the position LAST.
    `row_author`, `row_epoch`, `row_csn`: one value per change, the row before it; valid only for
    changes that were accepted in bulk.
    `rows`: every row that changed.
    `contended`: the rows that core judged, as they are after the batch.
    `tables`: what the batch makes of whole tables.
    """

    changes: pa.Table
    judged: Mapping[int, Judged]
    refreshes: Sequence[tuple[int, Refresh]]
    row_author: Ints
    row_epoch: Ints
    row_csn: pa.Array
    rows: ChangedRows
    contended: Collection[RowState]
    tables: TablesAfter


def judge(
    eligible: pa.Table,
    intake: Intake,
    hub_epoch: int,
    standing: RowsAt,
    others: LookUpOthers,
    earlier_resolutions: Mapping[str, Resolution],
    fetch: Fetch,
    pages: Sequence[ResyncPage] = (),
    prepared: Mapping[RowKey, RowState] = NO_ROWS,
) -> Verdicts:
    """Judge the eligible changes of a batch, in their order, at this hub epoch.

    `eligible`: ELIGIBLE. `standing`: the rows before the batch. `earlier_resolutions`: CSN -> what
    the user's function returned, if the batch was judged before. `fetch`: fetches the images that
    are kept on the executors. `pages`: those of resyncs that stand behind the changes; `prepared`:
    their tracked rows as they are before the batch, where they were looked up for them.
    """
    window, state = standing.window, intake.state
    truncated, refused = _truncated(eligible), intake.refused.for_judging()
    grouped = _grouped(eligible, window, state.truncations)
    parts = [one for page in pages for one in page.parts]
    paged = {(one.part.table, key) for one in parts for key, _ in one.tracked}
    by_core = _by_core(grouped, intake, window.hashes, paged, truncated)
    contended = _contended(grouped, eligible, intake, window, by_core)[grouped.code]
    accepted = _accept_in_bulk(grouped, ~contended, hub_epoch, eligible)
    places = np.flatnonzero(contended).tolist()
    changes = with_images(eligible, contended & is_away(eligible), fetch)
    few = changes.take(pa.array(places, pa.int64()))
    arrived = arrived_of(few)
    keys = {one.change.row for one in arrived} | {repair.row for repair in intake.repairs} | paged
    # a truncate meets the refused rows of its table too
    keys |= {row for rows in refused.values() for row in rows if row[0] in truncated}
    keys = {row for row in keys if row[1] != ALL_KEYS}
    before = {**standing.with_images(keys - prepared.keys()), **prepared}
    known = {table: [key for of, key in before if of == table] for table in truncated}
    batch_judge = BatchJudge(
        before,
        hub_epoch,
        intake.topology,
        intake.replicas,
        earlier_resolutions,
        refused,
        list(state.ranges),
        dict(state.truncations),
        cache(lambda table: others(table, known[table])),
        standing=intake.standing,
        tombstone_epoch=state.tombstone_epoch,
    )
    names = few["tx"].to_pylist()
    judged, refreshes = _judge_contended(batch_judge, places, arrived, names, intake.repairs)
    batch_judge.refresh(intake.repairs)
    for page in pages:
        batch_judge.send_tracked(page, intake.agreements[page.agreement].consumer)
    refreshes += [(LAST, one) for one in batch_judge.take_entries() if isinstance(one, Refresh)]
    by_name = {text_of(key): with_image(row, None) for key, row in batch_judge.changed.items()}
    rows = ChangedRows(accepted, by_name)
    after = {**before, **batch_judge.changed}.values()
    met = _rows_before(grouped, eligible, hub_epoch)
    tables = batch_judge.tables_after()
    return Verdicts(changes, judged, refreshes, *met, rows, after, tables)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The changes by row: `code[i]` is the row of change i, `order` sorts changes by row.

    `first[j]`: the j-th change in that order is the first of its row. `names`, `csn` and `rid` are
    by change. The other fields are by row: `rows` and what follows describe it as the window holds
    it; 0 or null: it does not. `tables[table[i]]`: the table of row i.
    """

    names: pa.ChunkedArray
    code: Ints
    order: Ints
    first: Bools
    csn: CsnNumbers
    rid: Ints
    identities: Identities
    tables: list[str]
    table: Ints
    rows: RowColumns
    unknown: Bools

    def __len__(self) -> int:
        """How many rows."""
        return len(self.identities)


def _truncated(eligible: pa.Table) -> frozenset[str]:
    truncates = eligible.filter(pc.equal(eligible["op"], Op.TRUNCATE.value))
    return frozenset(truncates["table"].to_pylist())


def _grouped(eligible: pa.Table, window: Window, truncations: Truncations) -> _Grouped:
    names = pc.binary_join_element_wise(eligible["table"], eligible["key"], SEPARATOR)
    of_changes = window.hashes.of(names)
    order, first = of_changes.grouped()
    heads, code = order[first], np.empty(len(order), dtype=np.int64)
    code[order] = np.cumsum(first) - 1
    identities, encoded = of_changes.take(heads), _encoded(eligible["table"])
    tables: list[str] = encoded.dictionary.to_pylist()
    table = np.asarray(encoded.indices, dtype=np.int64)[heads]
    found = window.find(identities)
    rows, unknown = window.at(found), found < 0
    above = {name: one for name, one in truncations.items() if one.hub_epoch > window.edge}
    for name in above.keys() & set(tables):
        rows = rows.truncated(unknown & (table == tables.index(name)), above[name])
    csn, rid = csn_numbers(eligible["csn"]), ints(eligible["rid"])
    return _Grouped(names, code, order, first, csn, rid, identities, tables, table, rows, unknown)


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return one_array(column.combine_chunks().dictionary_encode())


def _by_core(
    grouped: _Grouped,
    intake: Intake,
    hashes: RowHash,
    paged: Collection[RowKey],
    truncated: Collection[str],
) -> Bools | None:
    """Mark the rows that core must judge whatever the changes are; None: no row."""
    names = {text_of(repair.row) for repair in intake.repairs} | {text_of(row) for row in paged}
    refused = intake.refused.for_judging()
    writers = {*grouped.rid.tolist()} if refused else set()
    for rid, mine in refused.items():
        of_some = (row for row in mine if intake.topology.sends_some(rid, row[0]))
        names |= {text_of(row) for row in (mine if rid in writers else of_some)}
    if not names and not truncated:
        return None
    marked = grouped.identities.among(hashes.of(pa.array(sorted(names), pa.string())))
    gone = [number for number, name in enumerate(grouped.tables) if name in truncated]
    return marked | np.isin(grouped.table, gone)


def _contended(
    grouped: _Grouped, eligible: pa.Table, intake: Intake, window: Window, by_core: Bools | None
) -> Bools:
    """Mark the rows that core must judge. A needless mark costs time and changes no verdict."""
    code, rid, mre = grouped.code, grouped.rid, ints(eligible["mre"])
    marked = grouped.rows.is_realigned.copy()
    first_rid = np.zeros(len(marked), dtype=np.int64)
    first_rid[code[::-1]] = rid[::-1]
    shared = rid != first_rid[code]
    epoch, edge = _compared(grouped, intake.topology.tables, window.edge)
    foreign = (grouped.rows.author[code] != rid) & (epoch[code] > mre)
    below = grouped.unknown[code] & (mre < edge[code])
    hidden = _may_be_hidden(grouped, eligible, intake.topology, window.edge)
    hidden |= _may_be_kept(grouped, eligible, intake.topology)
    floored = _floored(eligible, rid, mre, intake) | _in_ranges(eligible, rid, mre, intake)
    odd = _lacks_columns(eligible) | _not_configured(eligible, intake.topology.tables)
    odd |= _may_be_adopted(grouped, eligible, window.edge) | (mre < intake.state.tombstone_epoch)
    marked[code[shared | foreign | below | floored | odd | hidden]] = True
    if by_core is not None:
        marked |= by_core
    whole = any(
        t.function.rule is ConflictRule.EPOCH_TRANS for t in intake.topology.tables.values()
    )
    if whole:
        return _whole_transactions(grouped, eligible, marked)
    # what was rejected with its transaction stays so when no function does that any more
    rejecting = grouped.rows.is_rejecting.copy()
    rejecting[code[below | _in_ranges(eligible, rid, mre, intake, only_rejecting=True)]] = True
    if by_core is not None:
        rejecting |= by_core  # a truncate meets rows that are not in the batch
    if not rejecting.any():
        return marked
    return marked | _whole_transactions(grouped, eligible, rejecting)


def _floored(eligible: pa.Table, rid: Ints, mre: Ints, intake: Intake) -> Bools:
    """Mark the changes that a floor of their replica may block, or that its hello overtook."""
    offset, marked = ints(eligible["offset"]), np.zeros(len(rid), dtype=np.bool_)
    for replica in intake.replicas.values():
        for floor in replica.floors:
            marked |= (rid == replica.rid) & ((mre < floor.hub_epoch) | (offset < floor.offset))
    return marked


def _in_ranges(
    eligible: pa.Table, rid: Ints, mre: Ints, intake: Intake, *, only_rejecting: bool = False
) -> Bools:
    """Mark the changes that a range which was sent to their replica may block.

    `only_rejecting`: those whose transaction it rejects.
    """
    marked = np.zeros(len(rid), dtype=np.bool_)
    for one in intake.state.ranges:
        if only_rejecting and not one.rejects_transaction:
            continue
        older = (rid == one.rid) & (mre < one.hub_epoch)
        if older.any():
            marked |= older & bools(pc.equal(eligible["table"], one.range.table))
    return marked


def _compared(grouped: _Grouped, tables: Mapping[str, Table], edge: int) -> tuple[Ints, Ints]:
    """Return, by row, its epoch and the window's edge as its conflict function compares them."""
    edges, epochs = np.full(len(grouped), edge, dtype=np.int64), grouped.rows.epoch
    for number, name in enumerate(grouped.tables):
        if name in tables and tables[name].function.bits is not None:
            function, here = tables[name].function, grouped.table == number
            different, where = np.unique(epochs[here], return_inverse=True)
            coarse = np.array([function.stored(one) for one in different.tolist()], dtype=np.int64)
            epochs = epochs.copy()
            epochs[here], edges[here] = coarse[where], function.stored(edge)
    return epochs, edges


def _whole_transactions(grouped: _Grouped, eligible: pa.Table, marked: Bools) -> Bools:
    """Extend the marks to all rows of a transaction that has a marked one, transitively.

    Such a transaction may be rejected as a whole.
    """
    tx = np.asarray(_encoded(eligible["tx"]).indices, dtype=np.int64)
    several = np.bincount(tx, minlength=1) > 1
    while True:
        touched = np.zeros(len(several), dtype=np.bool_)
        touched[tx[marked[grouped.code]]] = True
        wider = marked.copy()
        wider[grouped.code[(touched & several)[tx]]] = True
        if bool((wider == marked).all()):
            return marked
        marked = wider


def _lacks_columns(eligible: pa.Table) -> Bools:
    """Mark the changes whose image must be merged into the row."""
    written = pc.not_equal(eligible["op"], Op.DELETE.value)
    return bools(eligible["partial"]) & bools(written)


def _may_be_adopted(grouped: _Grouped, eligible: pa.Table, edge: int) -> Bools:
    """Mark the rows of snapshots, unless they are surely the first of their row."""
    published = bools(pc.is_valid(eligible["snapshot"]))
    if not published.any() or edge:
        return published
    code = grouped.code
    is_alone = np.bincount(code, minlength=len(grouped)) == 1
    is_first = grouped.unknown & is_alone
    return np.asarray(published & ~is_first[code], dtype=np.bool_)


def _may_be_hidden(grouped: _Grouped, eligible: pa.Table, topology: Topology, edge: int) -> Bools:
    """Mark the changes of replicas with a filter that may meet a hidden row, or leave one."""
    marked = np.zeros(len(grouped.code), dtype=np.bool_)
    for subscription in topology.subscriptions.values():
        for name, row_filter in subscription.rows.items():
            own = (grouped.rid == subscription.consumer) & bools(pc.equal(eligible["table"], name))
            if not own.any():
                continue
            author, unknown = grouped.rows.author[grouped.code], grouped.unknown[grouped.code]
            is_own = (author == subscription.consumer) | (unknown & (edge == 0))
            places = np.flatnonzero(own)
            images = eligible["after"].take(pa.array(places)).to_pylist()
            leaves = np.zeros(len(marked), dtype=np.bool_)
            leaves[places] = [
                image is not None and not is_shown
                for image, is_shown in zip(images, row_filter.shown(images), strict=True)
            ]
            marked |= own & (~is_own | leaves)
    return marked


def _may_be_kept(grouped: _Grouped, eligible: pa.Table, topology: Topology) -> Bools:
    """Mark the changes of replicas that are sent no deletes, unless the row surely stands."""
    keeping = [one.consumer for one in topology.subscriptions.values() if not one.sends_deletes]
    own = np.isin(grouped.rid, keeping) & ~grouped.rows.exists[grouped.code]
    return np.asarray(own & bools(pc.not_equal(eligible["op"], Op.INSERT.value)), dtype=np.bool_)


def _not_configured(eligible: pa.Table, tables: Mapping[str, Table]) -> Bools:
    return ~bools(pc.is_in(eligible["table"], pa.array(sorted(tables), pa.string())))


def _accept_in_bulk(
    grouped: _Grouped, uncontended: Bools, hub_epoch: int, eligible: pa.Table
) -> AcceptedRows:
    """Return the rows that the uncontended changes write: each as its last change leaves it.

    `uncontended`: by change.
    """
    last = np.append(grouped.first[1:], True)[: len(grouped.order)]
    final = grouped.order[last]
    final = final[uncontended[final]]
    exists = bools(pc.not_equal(eligible["op"].take(pa.array(final)), Op.DELETE.value))
    columns = accepted_rows(grouped.rid[final], hub_epoch, grouped.csn.take(final), exists)
    code = grouped.code[final]
    identities, table = grouped.identities.take(code), grouped.table[code]
    return AcceptedRows(identities, columns, grouped.tables, table, grouped.names, final)


def _rows_before(
    grouped: _Grouped, eligible: pa.Table, hub_epoch: int
) -> tuple[Ints, Ints, pa.Array]:
    """Return author, epoch and CSN of the row before each change, if all changes are accepted."""
    count, order, first = len(grouped.code), grouped.order, grouped.first
    met = np.empty(count, dtype=np.int64)  # indices of earlier changes; from `count` on, of rows
    met[order[1:]] = order[:-1]
    met[order[first]] = count + np.arange(len(grouped))
    author = np.concatenate([grouped.rid, grouped.rows.author])[met]
    epochs = np.full(count, hub_epoch, dtype=np.int64)
    epoch = np.concatenate([epochs, grouped.rows.epoch])[met]
    csns = pa.chunked_array([*eligible["csn"].chunks, grouped.rows.csns()])
    return author, epoch, csns.take(pa.array(met)).combine_chunks()


def _judge_contended(
    batch_judge: BatchJudge,
    places: Sequence[int],
    arrived: Sequence[Arrived],
    names: Sequence[str],
    repairs: Sequence[Repair],
) -> tuple[dict[int, Judged], list[tuple[int, Refresh]]]:
    """Judge one transaction after another; a refresh has the position of its change.

    `places`, `arrived`, `names`: of each change its position, the change, and its transaction.
    The changes of one transaction are adjacent.
    """
    judged: dict[int, Judged] = {}
    refreshes: list[tuple[int, Refresh]] = []
    batch_judge.realign(repairs)
    for _, group in groupby(zip(names, places, arrived, strict=True), key=itemgetter(0)):
        several = list(group)
        batch_judge.judge([one for _, _, one in several])
        ahead = iter(place for _, place, _ in several)
        place = LAST
        for entry in batch_judge.take_entries():
            if isinstance(entry, Judged):
                place = next(ahead)
                judged[place] = entry
            elif isinstance(entry, Refresh):
                refreshes.append((place, entry))
    return judged, refreshes
