"""Judge a batch: what nobody contends is settled in columns, the contended few by core's rule.

A change is settled in bulk when no other replica writes its row in this batch and the row, as
the window has it, cannot make it concurrent: then it is accepted, and the row is the last one's.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.conflict.batch import BatchJudge
from streaming.core.conflict.function import ConflictRule
from streaming.core.conflict.judge import Judged
from streaming.core.conflict.window import (
    SEPARATOR,
    Window,
    WindowRow,
    key_of,
    packed,
    text_of,
    unpacked,
)
from streaming.core.conflict.winner import Resolution
from streaming.core.delivery.sending import Refresh
from streaming.core.intake.arrival import Repair
from streaming.core.intake.transactions import Intake
from streaming.core.model.change import NOBODY, Op, RowKey
from streaming.core.model.row import Arrived, RowState
from streaming.core.model.table import Table
from streaming.stages.checked import Bools, Fetch, Ints, bools, ints, is_away, with_images
from streaming.stages.intake import arrived_of

LAST = 1 << 62
"""A place behind every change of the batch."""

Rows = Callable[[Collection[RowKey]], Mapping[RowKey, RowState]]
"""Looks rows up below the window, images included."""
Images = Callable[[Mapping[RowKey, RowState]], Mapping[RowKey, str | None]]
"""Looks up the images of row versions that the window knows."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What judging made of the eligible changes, in their order.

    `changes`: they themselves, with the images of those that core judged.
    `judged`: by place, the contended ones as core judged them. `refreshes`: (place, refresh),
    each behind the change of that place; those of repairs at LAST, behind all. The arrays tell of
    the settled ones the row that they met. `rows`: every row that changed. `contended`: the
    rows that core judged, as they are after the batch.
    """

    changes: pa.Table
    judged: Mapping[int, Judged]
    refreshes: Sequence[tuple[int, Refresh]]
    row_author: Ints
    row_epoch: Ints
    row_csn: pa.Array
    rows: Mapping[str, WindowRow]
    contended: Collection[RowState]


def judge(
    eligible: pa.Table,
    intake: Intake,
    hub_epoch: int,
    window: Window,
    look_up: Rows,
    images: Images,
    settled: Mapping[str, Resolution],
    fetch: Fetch,
) -> Verdicts:
    """Judge the eligible changes of a batch, in their order, at this hub epoch.

    `settled`: what users' functions said of them before, if the batch was judged before. `fetch`:
    gets the images that are left on the executors.
    """
    grouped = _grouped(eligible, window)
    contended = _contended(grouped, eligible, intake, window)[grouped.code]
    rows = _settle(grouped, ~contended, hub_epoch, eligible)
    places = np.flatnonzero(contended).tolist()
    changes = with_images(eligible, contended & is_away(eligible), fetch)
    few = changes.take(pa.array(places, pa.int64()))
    arrived = arrived_of(few)
    keys = {one.change.row for one in arrived} | {repair.row for repair in intake.repairs}
    before = _rows_with_images(keys, window, look_up, images)
    bench = BatchJudge(before, hub_epoch, intake.topology, intake.replicas, settled)
    names = few["tx"].to_pylist()
    judged, refreshes = _judge_contended(bench, places, arrived, names, intake.repairs)
    rows.update({text_of(key): packed(row) for key, row in bench.changed.items()})
    after = {**before, **bench.changed}.values()
    return Verdicts(changes, judged, refreshes, *_met(grouped, eligible, hub_epoch), rows, after)


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The changes by row: `code[i]` is the row of change i, `order` sorts changes by row.

    `first[j]`: the j-th change in that order is the first of its row. The other arrays are by
    row and hold it as the window knows it: 0 and None where it does not.
    """

    names: list[str]
    code: Ints
    order: Ints
    first: Bools
    rid: Ints
    author: Ints
    epoch: Ints
    csn: list[str | None]
    unknown: Bools
    realigned: Bools


_UNKNOWN: WindowRow = (NOBODY, 0, None, False, ())


def _grouped(eligible: pa.Table, window: Window) -> _Grouped:
    names = pc.binary_join_element_wise(eligible["table"], eligible["key"], SEPARATOR)
    encoded = _encoded(names)
    code = np.asarray(encoded.indices, dtype=np.int64)
    order = np.argsort(code, kind="stable")
    first = np.ones(len(code), dtype=np.bool_)
    first[1:] = code[order][1:] != code[order][:-1]
    texts: list[str] = encoded.dictionary.to_pylist()
    known = [window.rows.get(name) for name in texts]
    author, epoch, csn, _, realign = (
        zip(*(k or _UNKNOWN for k in known), strict=True) if known else ((),) * 5
    )
    return _Grouped(
        texts,
        code,
        order,
        first,
        ints(eligible["rid"]),
        np.array(author, dtype=np.int64),
        np.array(epoch, dtype=np.int64),
        list(csn),
        np.array([k is None for k in known], dtype=np.bool_),
        np.array([bool(r) for r in realign], dtype=np.bool_),
    )


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def _contended(grouped: _Grouped, eligible: pa.Table, intake: Intake, window: Window) -> Bools:
    """Mark the rows that need the exact rule; one mark too many costs time, never a verdict."""
    code, rid, mre = grouped.code, grouped.rid, ints(eligible["mre"])
    marked = grouped.realigned.copy()
    first_rid = np.zeros(len(marked), dtype=np.int64)
    first_rid[code[::-1]] = rid[::-1]
    shared = rid != first_rid[code]
    epoch, edge = _compared(grouped, intake.topology.tables, window.edge)
    foreign = (grouped.author[code] != rid) & (epoch[code] > mre)
    below = grouped.unknown[code] & (mre < edge[code])
    floored = np.isin(rid, [r.rid for r in intake.replicas.values() if r.floors])
    marked[code[shared | foreign | below | floored | _lacks_columns(eligible)]] = True
    if intake.repairs:
        repaired = {text_of(repair.row) for repair in intake.repairs}
        marked |= np.array([name in repaired for name in grouped.names], dtype=np.bool_)
    whole = any(
        t.function.rule is ConflictRule.EPOCH_TRANS for t in intake.topology.tables.values()
    )
    return _closed(grouped, eligible, marked) if whole else marked


def _compared(grouped: _Grouped, tables: Mapping[str, Table], edge: int) -> tuple[Ints, Ints]:
    """The rows' epochs and the window's edge as the rows' functions compare them."""
    edges = np.full(len(grouped.names), edge, dtype=np.int64)
    coarse = {name: t.function for name, t in tables.items() if t.function.bits is not None}
    if not coarse:
        return grouped.epoch, edges
    epochs = grouped.epoch.copy()
    for number, name in enumerate(grouped.names):
        function = coarse.get(key_of(name)[0])
        if function is not None:
            epochs[number] = function.stored(int(epochs[number]))
            edges[number] = function.stored(edge)
    return epochs, edges


def _closed(grouped: _Grouped, eligible: pa.Table, marked: Bools) -> Bools:
    """Mark all rows of a transaction that has a marked one, and so on: it may go whole."""
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
    """Mark images that must be merged over the row as it stands."""
    written = pc.not_equal(eligible["op"], Op.DELETE.value)
    return bools(eligible["partial"]) & bools(written)


def _settle(
    grouped: _Grouped, settled: Bools, hub_epoch: int, eligible: pa.Table
) -> dict[str, WindowRow]:
    """The rows that the settled changes leave: of each row its last change."""
    last = np.ones(len(grouped.order), dtype=np.bool_)
    last[:-1] = grouped.first[1:]
    final = grouped.order[last]
    final = final[settled[final]]
    taken = eligible.select(["csn", "op"]).take(pa.array(final))
    exists = bools(pc.not_equal(taken["op"], Op.DELETE.value)).tolist()
    csns = taken["csn"].to_pylist()
    names = [grouped.names[code] for code in grouped.code[final]]
    authors = grouped.rid[final].tolist()
    return {
        name: (author, hub_epoch, csn, there, ())
        for name, author, csn, there in zip(names, authors, csns, exists, strict=True)
    }


def _met(grouped: _Grouped, eligible: pa.Table, hub_epoch: int) -> tuple[Ints, Ints, pa.Array]:
    """The row that each change met, had all before it been accepted: true of the settled."""
    count, order, first = len(grouped.code), grouped.order, grouped.first
    met = np.empty(count, dtype=np.int64)  # a change before it, or behind all changes the row
    met[order[1:]] = order[:-1]
    met[order[first]] = count + grouped.code[order[first]]
    author = np.concatenate([grouped.rid, grouped.author])[met]
    epoch = np.concatenate([np.full(count, hub_epoch, dtype=np.int64), grouped.epoch])[met]
    written = eligible["csn"].combine_chunks()
    csns = pa.chunked_array([*_chunks(written), pa.array(grouped.csn, pa.string())])
    return author, epoch, csns.take(pa.array(met)).combine_chunks()


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _judge_contended(
    bench: BatchJudge,
    places: Sequence[int],
    arrived: Sequence[Arrived],
    names: Sequence[str],
    repairs: Sequence[Repair],
) -> tuple[dict[int, Judged], list[tuple[int, Refresh]]]:
    """Judge one transaction after the other; refreshes keep the place of their change.

    `names`: of each change, its transaction; those of one transaction stand together.
    """
    judged: dict[int, Judged] = {}
    refreshes: list[tuple[int, Refresh]] = []
    bench.realign(repairs)
    for _, group in groupby(zip(names, places, arrived, strict=True), key=itemgetter(0)):
        several = list(group)
        bench.judge([one for _, _, one in several])
        ahead = iter(place for _, place, _ in several)
        place = LAST
        for entry in bench.taken():
            if isinstance(entry, Judged):
                place = next(ahead)
                judged[place] = entry
            else:
                refreshes.append((place, entry))
    bench.refresh(repairs)
    refreshes += ((LAST, entry) for entry in bench.taken() if isinstance(entry, Refresh))
    return judged, refreshes


def _rows_with_images(
    keys: Collection[RowKey], window: Window, look_up: Rows, images: Images
) -> Mapping[RowKey, RowState]:
    """The contended rows as they stand before the batch."""
    known = {key: row for key in keys if (row := window.rows.get(text_of(key))) is not None}
    found = dict(look_up([key for key in keys if key not in known]))
    states = {key: unpacked(row) for key, row in known.items()}
    seen = images(states)
    found.update({key: row._replace(image=seen.get(key)) for key, row in states.items()})
    return found
