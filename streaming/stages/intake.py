"""From facts to eligible changes: runs of whole transactions in bulk, else record by record.

The exact rule is core's `Intake.take`; a run is what it would have let pass one by one.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.tables import CHANGELOG
from streaming.core.intake.intake import Intake
from streaming.core.intake.transactions import Transaction
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import is_csn_of
from streaming.core.model.row import Arrived
from streaming.core.model.values import json_text
from streaming.core.records.check import decode_checked
from streaming.core.records.record import Reason, ReceivedRecord, Record, RecordKind
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.pending import Context
from streaming.core.state.reflection import mre, mre_same
from streaming.core.state.topology import JudgingOrder
from streaming.stages.checked import Bools, CheckedRecords, Ints, bools, ints, is_away, texts
from streaming.stages.csns import any_skewed, csn_numbers
from streaming.stages.runs import RecordRun, closing, runs

ReadPending = Callable[[Collection[Context]], pa.Table]
"""Evicted transactions -> the rows that table `pending` has of them, in CSN order by replica."""

_FIELDS = (
    *("rid", "offset", "time", "session", "csn", "prim_csn", "epoch", "table", "key", "op"),
    *("before", "after", "opno", "content", "app", "snapshot"),
)
"""What is known of a change without the changes before it (checkpoints/comments.py)."""

_RECEIVED = tuple({*_FIELDS, "reason", "detail", "kind", "value"} - {"time"})

_OPS = {op.value: op for op in Op}
_KINDS = {kind.value: kind for kind in RecordKind}

_AT_ONCE = 1_000
"""How many records are values at a time."""

ELIGIBLE = pa.schema(
    [
        *(CHANGELOG.field(name) for name in _FIELDS),
        CHANGELOG.field("mre"),  # the hub epoch up to which its replica had seen everything
        CHANGELOG.field("mre_same"),  # counting reflections of the change's own epoch too
        ("tx", pa.string()),  # the largest CSN of its transaction
        ("partial", pa.bool_()),  # the after-image lacks columns, or may lack some
        ("size", pa.int64()),  # bytes of its item if its images are on the executors, else null
    ]
)
"""The changes that a batch judges, in judging order; where `size` is set, they have no images."""


@dataclass(frozen=True, slots=True)
class TakenRecords:
    """What became of the records of a batch.

    `eligible`: ELIGIBLE in judging order. `commits`: those that were taken in runs, as CHECKED; of
    them `intake.events` holds nothing. `lacking`: the changes that were taken one by one although
    their images are away: if there are some, nothing of this holds, and with their images the
    batch must be taken anew.
    """

    eligible: pa.Table
    commits: pa.Table
    lacking: Bools


def take(intake: Intake, facts: CheckedRecords, read_pending: ReadPending) -> TakenRecords:
    """Take every record of the batch; what was evicted comes back from table `pending`."""
    one_by_one = np.zeros(len(facts), dtype=np.bool_)
    session = facts.table["session"].combine_chunks()
    snapshot = facts.table["snapshot"].combine_chunks()
    bulk, in_bulk = list[pa.Table](), np.zeros(len(facts), dtype=np.bool_)
    for run in runs(facts, intake.topology):
        rows = facts.table.slice(run.start, run.end - run.start)
        if run.is_plain and _goes_in_bulk(intake, facts, run, session, snapshot):
            bulk.append(_bulk(intake, facts, run, rows))
            _take_run(intake, facts, run, rows)
            in_bulk[run.rows] = True
        else:
            one_by_one[run.rows] = True
            for received in _received(rows):
                intake.take(received)
    lacking = one_by_one & is_away(facts.table)
    again = bool(lacking.any()) or bool(intake.wanted)
    evicted = [] if again else [_on_disk(intake, read_pending)]
    parts = [*bulk, _single(intake, intake.eligible), *evicted]
    eligible = _ordered(parts, intake.topology.order)
    commits = facts.table.filter(pa.array(in_bulk & facts.commit))
    return TakenRecords(eligible, commits, lacking)


def merged_and_named(facts: CheckedRecords, opened: OpenTransactions) -> set[Context]:
    """The merged transactions of which a change or commit of the batch names one, or may."""
    found = set[Context]()
    for context in (context for context, one in opened.evicted.items() if one.merged):
        members, here = opened.lists.members[context], facts.rid == context[1]
        first, last = min(members).encode(), max(members).encode()
        for named in (facts.csn, facts.prim_csn):
            if (here & (named >= first) & (named <= last)).any():
                found.add(context)
    return found


def repeated_or_old(facts: CheckedRecords, maxima: Mapping[int, str]) -> list[str]:
    """The CSNs that need a look into history: not above their replica's max in any RUV."""
    old = np.zeros(len(facts), dtype=np.bool_)
    for rid in np.unique(facts.rid):
        largest = maxima.get(int(rid), "").encode()
        old |= (facts.rid == rid) & (facts.csn <= largest) & (facts.csn != b"")
    invalid = facts.table.filter(pc.is_valid(facts.table["reason"])).select(["rid", "csn"])
    named = ((row["rid"], row["csn"]) for row in invalid.to_pylist() if row["csn"])
    no_good = {c for r, c in named if is_csn_of(c, r) and c <= maxima.get(r, "")}
    return sorted({csn.decode() for csn in facts.csn[old]} | no_good)


def _goes_in_bulk(
    intake: Intake, facts: CheckedRecords, run: RecordRun, session: pa.Array, snapshot: pa.Array
) -> bool:
    first = run.start
    rid = int(facts.rid[first])
    replica = intake.replicas[rid]
    in_force = None if replica.is_stopped else replica.session
    opno = int(facts.opno[first]) or None
    return (
        in_force is not None
        and session[first].as_py() == in_force.id
        and snapshot[first].as_py() in (None, replica.snapshot)
        and intake.is_plain_from(rid, facts.csn[first].decode(), opno)
        and not _is_skewed(intake, facts, run)
    )


def _is_skewed(intake: Intake, facts: CheckedRecords, run: RecordRun) -> bool:
    """Return whether core would find a skew in a run of which nothing else is wrong."""
    is_change = ~facts.commit[run.rows]
    time = facts.table["time"][run.rows].filter(pa.array(is_change))
    largest = intake.believed.of(int(facts.rid[run.start]))
    return any_skewed(facts.csn[run.rows][is_change], time, largest, intake.topology.skew_s)


def _bulk(intake: Intake, facts: CheckedRecords, run: RecordRun, rows: pa.Table) -> pa.Table:
    """The changes of a plain run as ELIGIBLE; `rows`: its facts."""
    if facts.commit[run.rows].any():
        rows = rows.filter(pa.array(~facts.commit[run.rows]))
    below, same = _reflected(intake, int(facts.rid[run.start]), rows)
    largest = rows["csn"].take(pa.array(closing(facts, run)))
    columns = [rows[name].cast(ELIGIBLE.field(name).type) for name in _FIELDS]
    reflected = (pa.array(below), pa.array(same))
    return pa.table([*columns, *reflected, largest, rows["partial"], rows["size"]], schema=ELIGIBLE)


def _reflected(intake: Intake, rid: int, changes: pa.Table) -> tuple[Ints, Ints]:
    """The MRE of each change of a replica, without and with its own epoch's reflections."""
    sessions = intake.replicas[rid].sessions
    epochs, where = np.unique(ints(changes["epoch"]), return_inverse=True)
    values = [int(epoch) for epoch in epochs]
    below = np.array([mre(sessions, e) for e in values], dtype=np.int64)[where]
    same = np.array([mre_same(sessions, e) for e in values], dtype=np.int64)[where]
    codes = changes["table"].combine_chunks().dictionary_encode()
    visible = np.array([intake.topology.sees(rid, t) for t in codes.dictionary.to_pylist()])
    seen = visible[np.asarray(codes.indices)]
    return below * seen, same * seen


def _take_run(intake: Intake, facts: CheckedRecords, run: RecordRun, rows: pa.Table) -> None:
    first, last = run.start, run.end - 1
    last -= int(facts.commit[last])
    table = facts.table["table"][first].as_py()
    intake.take_run(
        (intake.topology.dataset_of(table), int(facts.rid[first])),
        facts.csn[first].decode(),
        facts.csn[last].decode(),
        int(facts.opno[last]) or None,
        pc.max(rows["time"]).value // 1000,
        changes=int((~facts.commit[run.rows]).sum()),
    )


def _received(rows: pa.Table) -> Iterator[ReceivedRecord]:
    times_ms = pc.divide(rows["time"].cast(pa.int64()), 1000)
    rows = rows.select(_RECEIVED).append_column("time_ms", times_ms)
    few = rows.to_batches(max_chunksize=_AT_ONCE)
    for row in chain.from_iterable(batch.to_pylist() for batch in few):
        reason = Reason(row["reason"]) if row["reason"] else None
        record: Record | None = None
        if row["kind"] == RecordKind.CHANGE and row["csn"] and row["op"] in _OPS:
            record = _change(row)
        elif reason is None:
            record = decode_checked(row["value"])
        yield ReceivedRecord(
            row["rid"],
            row["offset"],
            row["time_ms"],
            row["session"],
            record,
            reason,
            row["detail"] or "",
            row["content"],
            _KINDS.get(row["kind"]) if reason else None,
        )


def _change(row: Mapping[str, Any]) -> Change:
    return Change(
        row["csn"],
        row["rid"],
        row["epoch"] or 0,
        row["table"] or "",
        row["key"] or "",
        _OPS[row["op"]],
        row["after"],
        row["before"],
        row["prim_csn"],
        row["opno"],
        row["app"],
        row["snapshot"],
    )


def _single(intake: Intake, transactions: Sequence[Transaction]) -> pa.Table:
    """What became eligible record by record, waiting changes of earlier batches included."""
    rows = [
        {
            **arrived.change._asdict(),
            "content": arrived.content,
            "session": arrived.session,
            "offset": arrived.offset,
            "time": arrived.time_ms * 1000,
            "mre": arrived.mre,
            "mre_same": arrived.mre_same,
            "tx": transaction[-1].change.csn,
        }
        for transaction in transactions
        for arrived in transaction
    ]
    return _with_partial(pa.Table.from_pylist(rows, schema=ELIGIBLE), intake)


def _on_disk(intake: Intake, read_pending: ReadPending) -> pa.Table:
    """The evicted transactions that became eligible, those of their changes included that are new.

    A merged one comes apart: each of its own is named by its prim_csn or its only CSN.
    """
    parts = [ELIGIBLE.empty_table()]
    for rid in sorted({one.context[1] for one in intake.eligible_on_disk}):
        mine = [one for one in intake.eligible_on_disk if one.context[1] == rid]
        rows = read_pending([one.context for one in mine])
        columns = {name: rows[name] for name in (*_FIELDS, "mre", "mre_same")}
        nothing = {
            name: pa.nulls(rows.num_rows, ELIGIBLE.field(name).type)
            for name in ("tx", "partial", "size")
        }
        old = pa.table({**columns, **nothing}).select(ELIGIBLE.names).cast(ELIGIBLE)
        fresh = _single(intake, [one.fresh for one in mine if one.fresh])
        parts.append(_named(pa.concat_tables([old, fresh])))
    return _with_partial(pa.concat_tables(parts), intake)


def _named(rows: pa.Table) -> pa.Table:
    """Rows of one replica, each with the largest CSN of its transaction."""
    rows = rows.sort_by("csn").combine_chunks()
    if not rows.num_rows:
        return rows
    names = pc.coalesce(rows["prim_csn"], rows["csn"]).combine_chunks().dictionary_encode()
    codes = np.asarray(names.indices)
    last = np.zeros(len(names.dictionary), dtype=np.int64)
    last[codes] = np.arange(len(codes))  # of several values for one place the last stays
    largest = rows["csn"].take(pa.array(last[codes]))
    return rows.set_column(rows.schema.get_field_index("tx"), ELIGIBLE.field("tx"), largest)


def _with_partial(rows: pa.Table, intake: Intake) -> pa.Table:
    """Rows that say which images may lack columns.

    Text is canonical, so a quoted name before a colon is no part of a value: there, quotes are
    escaped. What the hub wrote itself counts as if it lacked some.
    """
    lacking = ~np.isin(ints(rows["rid"]), list(intake.replicas))
    for name, table in intake.topology.tables.items():
        here = bools(pc.equal(rows["table"], name))
        if here.any():
            for column in table.columns:
                lacking |= here & ~bools(pc.match_substring(rows["after"], json_text(column) + ":"))
    column = pa.array(lacking, pa.bool_())
    return rows.set_column(
        rows.schema.get_field_index("partial"), ELIGIBLE.field("partial"), column
    )


def _ordered(parts: list[pa.Table], order: JudgingOrder) -> pa.Table:
    """Return the transactions in the order in which they are judged, inside in CSN order."""
    table = pa.concat_tables(parts).combine_chunks()
    if table.num_rows == 0:
        return table
    csn = csn_numbers(table["csn"])
    tx = csn if table["tx"].equals(table["csn"]) else csn_numbers(table["tx"])
    ranks: list[np.ndarray] = [csn.low, csn.high, tx.low, tx.high]
    match order:
        case JudgingOrder.LARGEST_CSN:
            pass
        case JudgingOrder.PRIMARY_CSN:
            ranks.append(_of_each(table, "csn", "min"))
        case JudgingOrder.ARRIVAL:
            ranks.append(_of_each(table, "time", "max"))
    return table.take(pa.array(np.lexsort(ranks)))


def _of_each(rows: pa.Table, column: str, which: str) -> np.ndarray:
    """Return, by row, the smallest or largest value of its transaction, as a rank."""
    _, code = np.unique(texts(rows["tx"]), return_inverse=True)
    values = rows.select([column]).append_column("tx", pa.array(code))
    by_tx = values.group_by("tx").aggregate([(column, which)]).sort_by("tx")
    found = by_tx[f"{column}_{which}"]
    whole = found if column == "csn" else pc.divide(found.cast(pa.int64()), 1000)
    ranks: np.ndarray = np.unique(np.asarray(whole), return_inverse=True)[1]
    return ranks[code]


def arrived_of(eligible: pa.Table) -> list[Arrived]:
    """Rows of ELIGIBLE as core judges them, in their order."""
    names = [name for name in eligible.column_names if name != "time"]  # as values 5 µs each
    columns = {name: eligible[name].to_pylist() for name in names}
    columns["time_ms"] = pc.divide(eligible["time"].cast(pa.int64()), 1000).to_pylist()
    columns["op"] = [_OPS[op] for op in columns["op"]]
    changes = map(Change, *(columns[name] for name in Change._fields))
    return list(map(Arrived, changes, *(columns[name] for name in Arrived._fields[1:])))
