"""Table `pending`: what is announced and not judged, and the memory of what never will be."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from checkpoints.epochs import ms_of, time_of
from checkpoints.store import StateStore, rows_of
from checkpoints.tables import TableName
from streaming.core.intake.pending import Context
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import rid_of
from streaming.core.model.record import Reason
from streaming.core.model.row import Arrived
from streaming.core.model.state import EndedTransaction, OpenTransactions

PENDING = "pending"
WAITING = "waiting"
ENDED = "ended"
GONE = "gone"

Ended = tuple[Context, str, tuple[Arrived, ...]]
"""A transaction that ended in this batch: its context, the reason, its changes that were open."""


def moves(
    before: OpenTransactions, after: OpenTransactions, ended: Iterable[Ended], batch: int
) -> pa.Table:
    """The rows by which a batch that turned `before` into `after` is remembered.

    An ended transaction has a row without CSN that names its reason, behind those of its changes.
    """
    rows = [
        *_entered(before, after),
        *_left(before, after),
        *(row for one in ended for row in _ended(*one)),
    ]
    return rows_of(
        TableName.PENDING, [{**row, "batch": batch, "place": n} for n, row in enumerate(rows)]
    )


def load(store: StateStore, batch: int, largest: Mapping[int, str]) -> OpenTransactions:
    """What is open after this batch, from `pending` and from the quarantine.

    largest: rid -> its largest CSN in any RUV; quarantined CSNs above it are remembered.
    """
    rows = store.read(TableName.PENDING, ds.field("batch") <= batch)
    opened = OpenTransactions()
    latest: dict[str, dict[str, Any]] = {}
    members: dict[Context, list[dict[str, Any]]] = {}
    for row in rows.sort_by([("batch", "ascending"), ("place", "ascending")]).to_pylist():
        context = (row["prim_csn"] or row["csn"], row["rid"])
        if row["csn"] is None:
            written = tuple(dict.fromkeys((m["table"], m["key"]) for m in members.get(context, ())))
            opened.ended[context] = EndedTransaction(row["reason"], written)
            continue
        latest[row["csn"]] = row
        if row["action"] == ENDED:
            members.setdefault(context, []).append(row)
            opened.ended_csns[row["csn"]] = row["content"]
    for row in latest.values():
        if row["action"] in (PENDING, WAITING):
            _reopen(opened, row)
    _remember_quarantine(store, opened, batch, largest)
    return opened


def _entered(before: OpenTransactions, after: OpenTransactions) -> Iterator[dict[str, object]]:
    for csn, arrived in after.changes.items():
        action = WAITING if _context(arrived) in after.lists.committed else PENDING
        old = before.changes.get(csn)
        if old is None or (action == WAITING and _context(old) not in before.lists.committed):
            key = after.lists.members[_context(arrived)][csn]
            yield {**_row(action, arrived), "dataset": key[0]}


def _left(before: OpenTransactions, after: OpenTransactions) -> Iterator[dict[str, object]]:
    for csn, arrived in before.changes.items():
        if csn not in after.changes and csn not in after.ended_csns:
            yield _row(GONE, arrived)


def _ended(
    context: Context, reason: str, changes: tuple[Arrived, ...]
) -> Iterator[dict[str, object]]:
    for arrived in changes:
        yield {**_row(ENDED, arrived), "reason": reason}
    yield {"action": ENDED, "reason": reason, "prim_csn": context[0], "rid": context[1]}


def _context(arrived: Arrived) -> Context:
    return arrived.change.prim_csn or arrived.change.csn, arrived.change.rid


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
    arrived = arrived_of(row)
    context = _context(arrived)
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
