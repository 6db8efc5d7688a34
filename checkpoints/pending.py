"""Table `pending`: what is announced and not judged, and the memory of what never will be."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints.query import in_schema
from checkpoints.store import StateStore, among, rows_of
from checkpoints.tables import PENDING as PENDING_SCHEMA
from checkpoints.tables import TableName
from checkpoints.times import ms_of, time_of
from streaming.core.intake.eviction import evict, restore, restore_ended
from streaming.core.model.change import Change, Op, RowKey
from streaming.core.model.csn import rid_of
from streaming.core.model.row import Arrived
from streaming.core.records.record import Reason
from streaming.core.state.open_transactions import EndedTransaction, OpenTransactions
from streaming.core.state.pending import Context, ListKey
from streaming.core.state.replica_state import ReplicaState

PENDING = "pending"
WAITING = "waiting"
ENDED = "ended"
GONE = "gone"

FACTS = tuple(name for name in PENDING_SCHEMA.names if name not in ("before", "after"))
"""The columns without the images."""

_NAMES = ("batch", "place", "action", "dataset", "rid", "csn", "prim_csn")
"""The columns that say which change it is."""

_ROW = ("table", "key")

_AT_ONCE = 50_000
"""How many rows are values at a time."""

Ended = tuple[Context, str, tuple[Arrived, ...]]
"""A transaction that ended in this batch: its context, the reason, its changes that were open."""


def moves(
    store: StateStore,
    before: OpenTransactions,
    after: OpenTransactions,
    ended: Sequence[Ended],
    batch: int,
) -> pa.Table:
    """The rows by which a batch that turned `before` into `after` is remembered.

    An ended transaction has a row without CSN that names its reason, behind those of its changes.
    The rows of an evicted one are copied from the table, without images if it ended; if it was
    judged, only its names.
    """
    names = [context for context, _, _ in ended]
    committed = [c for c in before.evicted if _is_now_committed(c, before, after)]
    gone = [c for c in before.evicted if c not in after.lists.members and c not in set(names)]
    parts = [
        rows_of(TableName.PENDING, _entered(before, after)),
        _again(on_disk(store, before, committed, batch - 1), WAITING),
        rows_of(TableName.PENDING, _left(before, after)),
        _again(on_disk(store, before, gone, batch - 1, _NAMES), GONE),
    ]
    for context, reason, changes in ended:
        if context in before.evicted:
            there = on_disk(store, before, [context], batch - 1, FACTS)
            parts.append(_again(there, ENDED, reason))
            changes = tuple(one for one in changes if one.change.csn not in before.changes)  # noqa: PLW2901
        parts.append(rows_of(TableName.PENDING, _ended(context, reason, changes)))
    rows = pa.concat_tables(parts)
    numbers = {"batch": np.full(rows.num_rows, batch), "place": np.arange(rows.num_rows)}
    return _with(rows, {name: pa.array(values, pa.int64()) for name, values in numbers.items()})


def on_disk(
    store: StateStore,
    opened: OpenTransactions,
    contexts: Collection[Context],
    batch: int,
    columns: Sequence[str] = PENDING_SCHEMA.names,
) -> pa.Table:
    """The rows of these evicted transactions after this batch, in CSN order of each replica.

    `opened`: what is open then. Columns that are left out are null.
    """
    parts = (
        _on_disk_of(store, opened, [c for c in contexts if c[1] == rid], batch, columns)
        for rid in sorted({context[1] for context in contexts})
    )
    return pa.concat_tables([PENDING_SCHEMA.empty_table(), *parts])


def restored(
    store: StateStore, opened: OpenTransactions, contexts: Collection[Context], batch: int
) -> OpenTransactions:
    """A copy in which these transactions, evicted or ended, are in memory, images apart."""
    opened = opened.copy()
    evicted = [context for context in contexts if context in opened.evicted]
    for context in evicted:
        there = on_disk(store, opened, [context], batch, FACTS)
        restore(opened, context, _with_lists(there))
    for context in set(contexts) - set(evicted):
        rows = _rows_of(store, context, ds.field("action") == ENDED, batch)
        restore_ended(opened, context, zip(*(rows[c].to_pylist() for c in _ROW), strict=True))
    return opened


def transaction_of(store: StateStore, rid: int, csn: str, batch: int) -> str | None:
    """The name of the transaction that this change belongs to, if `pending` knows it."""
    where = (ds.field("rid") == rid) & (ds.field("batch") <= batch) & (ds.field("csn") == csn)
    names = store.read(TableName.PENDING, where, ["csn", "prim_csn"]).to_pylist()
    return names[0]["prim_csn"] or csn if names else None


def load(
    store: StateStore,
    batch: int,
    largest: Mapping[int, str],
    replicas: Mapping[int, ReplicaState],
    pending_changes: int,
) -> OpenTransactions:
    """What is open after this batch, from `pending` and from the quarantine.

    largest: rid -> its largest CSN in any RUV; quarantined CSNs above it are remembered. Replicas
    with at least `pending_changes` open changes have them evicted; an ended transaction with so
    many is left on disk.
    """
    facts = store.read(TableName.PENDING, ds.field("batch") <= batch, FACTS)
    facts = facts.sort_by([("csn", "ascending"), ("batch", "ascending"), ("place", "ascending")])
    opened = OpenTransactions()
    _load_ended(opened, facts.filter(pc.equal(facts["action"], ENDED)), pending_changes)
    open_ = _latest(facts)
    open_ = open_.filter(pc.is_in(open_["action"], pa.array([PENDING, WAITING])))
    for start in range(0, open_.num_rows, _AT_ONCE):
        for row in open_.slice(start, _AT_ONCE).to_pylist():
            _reopen(opened, row)
        evict(opened, replicas, pending_changes)
    _load_images(store, opened, batch)
    _remember_quarantine(store, opened, batch, largest)
    return opened


def _load_ended(opened: OpenTransactions, ended: pa.Table, many: int) -> None:
    """Ended transactions; the CSNs and rows of one with many changes stay on disk."""
    ended = ended.append_column("name", pc.coalesce(ended["prim_csn"], ended["csn"]))
    counts = ended.group_by(["name", "rid"]).aggregate([("csn", "count"), ("csn", "max")])
    large = {
        (row["name"], row["rid"]): row["csn_max"]
        for row in counts.to_pylist()
        if row["csn_count"] >= many
    }
    for (_, rid), csn in large.items():
        opened.on_disk[rid] = max(csn, opened.on_disk.get(rid, ""))
    small = ended
    if large:
        names = pa.array(sorted({name for name, _ in large}))
        several = pc.and_(pc.is_in(ended["name"], names), pc.is_valid(ended["csn"]))
        small = ended.filter(pc.invert(several))
    ordered = small.sort_by([("batch", "ascending"), ("csn", "ascending")])  # none is the last
    members: dict[Context, list[RowKey]] = {}
    for row in ordered.to_pylist():
        context = (row["name"], row["rid"])
        if row["csn"] is None:
            written = tuple(dict.fromkeys(members.get(context, ())))
            opened.ended[context] = EndedTransaction(row["reason"], written, context in large)
        else:
            members.setdefault(context, []).append((row["table"], row["key"]))
            opened.ended_csns[row["csn"]] = row["content"]


def _load_images(store: StateStore, opened: OpenTransactions, batch: int) -> None:
    """Give the open changes that are not evicted their images."""
    members = opened.lists.members.items()
    csns = [csn for context, m in members if context not in opened.evicted for csn in m]
    if not csns:
        return
    is_open = ds.field("action").isin([PENDING, WAITING])
    where = is_open & (ds.field("batch") <= batch) & among("csn", csns)
    for row in store.read(TableName.PENDING, where, ["csn", "before", "after"]).to_pylist():
        old = opened.changes[row["csn"]]
        change = old.change._replace(before=row["before"], after=row["after"])
        opened.changes[row["csn"]] = old._replace(change=change)


def _on_disk_of(
    store: StateStore,
    opened: OpenTransactions,
    contexts: Sequence[Context],
    batch: int,
    columns: Sequence[str],
) -> pa.Table:
    """The rows of evicted transactions of one replica.

    A merged one has the rows of its list in its range that are of no other open transaction.
    """
    rid, lists = contexts[0][1], opened.lists.members
    csns = [csn for context in contexts for csn in (min(lists[context]), max(lists[context]))]
    here = ds.field("rid") == rid
    here &= (ds.field("csn") >= min(csns)) & (ds.field("csn") <= max(csns))
    here &= ds.field("batch") <= batch
    is_open = ds.field("action").isin([PENDING, WAITING])
    found = _latest(_read(store, here & is_open, columns))
    names = pc.coalesce(found["prim_csn"], found["csn"])
    merged = [context for context in contexts if opened.evicted[context].merged]
    own = {name for name, _ in contexts} - {name for name, _ in merged}
    wanted = pc.is_in(names, pa.array(sorted(own), pa.string()))
    if merged:
        others = {c[0] for c in lists if c[1] == rid and c not in merged}
        closed = store.read(TableName.PENDING, here & ~is_open, ["csn"])["csn"]
        free = pc.invert(pc.is_in(names, pa.array(sorted(others), pa.string())))
        free = pc.and_(free, pc.invert(pc.is_in(found["csn"], closed.combine_chunks())))
        for context in merged:
            low, high = min(lists[context]), max(lists[context])
            between = pc.and_(
                pc.greater_equal(found["csn"], low), pc.less_equal(found["csn"], high)
            )
            in_list = pc.and_(between, pc.equal(found["dataset"], lists[context][low][0]))
            wanted = pc.or_(wanted, pc.and_(free, in_list))
    return found if pc.all(wanted).as_py() else found.filter(wanted)


def _rows_of(store: StateStore, context: Context, what: pc.Expression, batch: int) -> pa.Table:
    """The rows of one transaction, whatever its state, in CSN order."""
    name, rid = context
    named = (ds.field("prim_csn") == name) | (ds.field("csn") == name)
    where = (ds.field("rid") == rid) & (ds.field("batch") <= batch) & what & named
    where &= ds.field("csn").is_valid()
    return _read(store, where, FACTS).sort_by([("csn", "ascending"), ("batch", "ascending")])


def _read(store: StateStore, where: pc.Expression, columns: Sequence[str]) -> pa.Table:
    """Rows of `pending`; what is not among the columns is null."""
    return in_schema(store.read(TableName.PENDING, where, columns), PENDING_SCHEMA)


def _latest(rows: pa.Table) -> pa.Table:
    """Of each CSN its last row, in CSN order."""
    order = pc.sort_indices(
        rows.select(["csn", "batch", "place"]),
        [("csn", "ascending"), ("batch", "ascending"), ("place", "ascending")],
    )  # a null comes last
    csn = rows["csn"].take(order).combine_chunks()
    if not len(csn):
        return rows
    differs = pc.not_equal(csn.slice(1), csn.slice(0, len(csn) - 1))
    is_last = pc.or_kleene(pa.concat_arrays([differs, pa.array([True])]), pc.is_null(csn))
    order = order.filter(pc.and_(pc.fill_null(is_last, True), pc.is_valid(csn)))  # noqa: FBT003
    in_place = order.equals(pa.array(np.arange(rows.num_rows), order.type))
    return rows if in_place else rows.take(order)


def _with_lists(rows: pa.Table) -> Iterator[tuple[Arrived, ListKey]]:
    for start in range(0, rows.num_rows, _AT_ONCE):
        for row in rows.slice(start, _AT_ONCE).to_pylist():
            yield arrived_of(row), (row["dataset"], row["rid"])


def _again(rows: pa.Table, action: str, reason: str | None = None) -> pa.Table:
    """Rows of the table as they are written again for another action."""
    count = rows.num_rows
    reasons = pa.array([reason] * count, pa.string())
    return _with(rows, {"action": pa.array([action] * count, pa.string()), "reason": reasons})


def _with(rows: pa.Table, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Rows with other values in these columns."""
    return pa.table(
        [columns.get(name, rows[name]) for name in rows.column_names], schema=rows.schema
    )


def _is_now_committed(context: Context, before: OpenTransactions, after: OpenTransactions) -> bool:
    return context in after.lists.committed and context not in before.lists.committed


def _entered(before: OpenTransactions, after: OpenTransactions) -> Iterator[dict[str, object]]:
    for context, members in after.lists.members.items():
        action = WAITING if context in after.lists.committed else PENDING
        moved = context not in before.evicted and _is_now_committed(context, before, after)
        for csn, key in members.items():
            if moved or csn not in before.changes:
                yield {**_row(action, after.changes[csn]), "dataset": key[0]}


def _left(before: OpenTransactions, after: OpenTransactions) -> Iterator[dict[str, object]]:
    for context, members in before.lists.members.items():
        if context in before.evicted or context in after.lists.members:
            continue
        for csn in members:
            if csn not in after.ended_csns:
                yield _row(GONE, before.changes[csn])


def _ended(
    context: Context, reason: str, changes: tuple[Arrived, ...]
) -> Iterator[dict[str, object]]:
    for arrived in changes:
        yield {**_row(ENDED, arrived), "reason": reason}
    yield {"action": ENDED, "reason": reason, "prim_csn": context[0], "rid": context[1]}


def _row(action: str, arrived: Arrived) -> dict[str, object]:
    return {"action": action, **arrived_row(arrived)}


def arrived_row(arrived: Arrived) -> dict[str, object]:
    """An arrived change under the column names of the tables."""
    return {
        **arrived.change._asdict(),
        "op": str(arrived.change.op),
        "content": arrived.content,
        "session": arrived.session,
        "offset": arrived.offset,
        "time": time_of(arrived.time_ms),
        "mre": arrived.mre,
        "mre_same": arrived.mre_same,
    }


def arrived_of(row: Mapping[str, Any]) -> Arrived:
    """The change that a row of `pending` holds."""
    change = Change(
        **{name: row[name] for name in Change._fields if name != "op"}, op=Op(row["op"])
    )
    return Arrived(
        change,
        row["content"],
        row["session"],
        row["offset"],
        ms_of(row["time"]),
        row["mre"],
        row["mre_same"],
    )


def _reopen(opened: OpenTransactions, row: Mapping[str, Any]) -> None:
    arrived = arrived_of({**row, "before": None, "after": None})
    context = (row["prim_csn"] or row["csn"], row["rid"])
    opened.changes[arrived.change.csn] = arrived
    opened.lists.insert(arrived.change.csn, (row["dataset"], arrived.change.rid), context)
    if row["action"] == WAITING:
        opened.lists.commit(context)


def _remember_quarantine(
    store: StateStore, opened: OpenTransactions, batch: int, largest: Mapping[int, str]
) -> None:
    where = (
        (ds.field("batch") <= batch)
        & (ds.field("action") == "kept")
        & ds.field("content").is_valid()
        & (ds.field("reason") != Reason.SESSION.value)
    )
    rows = store.read(TableName.QUARANTINE, where, ["csn", "content"])
    for row in rows.to_pylist():
        if row["csn"] > largest.get(rid_of(row["csn"]), ""):
            known = opened.quarantined.get(row["csn"], ())
            opened.quarantined[row["csn"]] = (*known, row["content"])
