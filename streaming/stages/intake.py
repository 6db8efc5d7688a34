"""From facts to eligible changes: runs of plain changes in bulk, everything else record by record.

The exact rule is core's `Intake.take`; a run is what it would have let pass one by one.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.tables import CHANGELOG
from streaming.core.change import Change, Op
from streaming.core.csn import is_csn_of
from streaming.core.errors import WireError
from streaming.core.intake import Intake
from streaming.core.record import Kind, Reason, Record, Said
from streaming.core.reflection import mre, mre_same
from streaming.core.row import Arrived
from streaming.core.rules import Rules
from streaming.core.state import is_stopped
from streaming.stages.facts import Bools, Facts, Ints

Decode = Callable[[bytes], tuple[str, Record]]
"""The bytes of a control record -> (session, the record); connectors/wire.py."""

_FIELDS = (
    *("rid", "offset", "time", "session", "csn", "prim_csn", "epoch", "table", "key", "op"),
    *("before", "after", "opno", "content"),
)

ELIGIBLE = pa.schema(
    [
        *(CHANGELOG.field(name) for name in (*_FIELDS, "mre", "mre_same")),
        ("tx", pa.string()),  # the largest CSN of its transaction
        ("partial", pa.bool_()),  # the image lacks columns
    ]
)
"""The changes that a batch judges, in judging order."""


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows [start, end) of the facts: plain changes of one replica and data set, CSNs rising."""

    start: int
    end: int


def take(intake: Intake, facts: Facts, decode: Decode) -> pa.Table:
    """Take every record of the batch; what became eligible, as ELIGIBLE in judging order."""
    session = facts.table["session"].combine_chunks()
    runs: list[tuple[_Run, Ints, Ints]] = []
    for run in _runs(facts, intake.rules):
        rid = int(facts.rid[run.start])
        if is_stopped(intake.replicas[rid].state):
            continue
        if _goes_in_bulk(intake, facts, run, session):
            runs.append((run, *_reflected(intake, facts, run)))
            _take_run(intake, facts, run)
        else:
            for said in _said(facts.table.slice(run.start, run.end - run.start), decode):
                intake.take(said)
    return _ordered([_bulk(facts, *run) for run in runs], _single(intake))


def repeated_or_old(facts: Facts, maxima: Mapping[int, str]) -> list[str]:
    """The CSNs that need a look into history: not above their replica's max in any RUV."""
    old = np.zeros(len(facts), dtype=np.bool_)
    for rid in np.unique(facts.rid):
        largest = maxima.get(int(rid), "").encode()
        old |= (facts.rid == rid) & (facts.csn <= largest) & (facts.csn != b"")
    invalid = facts.table.filter(pc.is_valid(facts.table["reason"])).select(["rid", "csn"])
    named = ((row["rid"], row["csn"]) for row in invalid.to_pylist() if row["csn"])
    no_good = {c for r, c in named if is_csn_of(c, r) and c <= maxima.get(r, "")}
    return sorted({csn.decode() for csn in facts.csn[old]} | no_good)


def _runs(facts: Facts, rules: Rules) -> Iterator[_Run]:
    """Cut the records into runs of plain changes and single other records, in topic order."""
    if not len(facts):
        return
    goes_on = np.zeros(len(facts), dtype=np.bool_)
    goes_on[1:] = (
        facts.plain[1:]
        & facts.plain[:-1]
        & (facts.rid[1:] == facts.rid[:-1])
        & (facts.csn[1:] > facts.csn[:-1])
        & _same_session(facts)
        & _next_opno(facts)
    )
    if len(rules.datasets) > 1:
        goes_on[1:] &= _same_dataset(facts, rules)
    starts = np.flatnonzero(~goes_on)
    for start, end in zip(starts, [*starts[1:], len(facts)], strict=True):
        yield _Run(int(start), int(end))


def _same_session(facts: Facts) -> Bools:
    codes = facts.table["session"].combine_chunks().dictionary_encode().indices
    numbers = np.asarray(codes.fill_null(-1).to_numpy(zero_copy_only=False))
    return np.asarray(numbers[1:] == numbers[:-1], dtype=np.bool_)


def _same_dataset(facts: Facts, rules: Rules) -> Bools:
    codes = facts.table["table"].combine_chunks().dictionary_encode()
    names: list[str] = codes.dictionary.to_pylist()
    places = [rules.datasets.index(rules.dataset_of(n)) if n in rules.tables else -1 for n in names]
    known = np.array([*places, -1], dtype=np.int64)
    numbers = known[np.asarray(codes.indices.fill_null(len(names)).to_numpy(zero_copy_only=False))]
    return np.asarray(numbers[1:] == numbers[:-1], dtype=np.bool_)


def _next_opno(facts: Facts) -> Bools:
    both_absent = (facts.opno[1:] == 0) & (facts.opno[:-1] == 0)
    return np.asarray(both_absent | (facts.opno[1:] == facts.opno[:-1] + 1), dtype=np.bool_)


def _goes_in_bulk(intake: Intake, facts: Facts, run: _Run, session: pa.Array) -> bool:
    first = run.start
    if not facts.plain[first]:
        return False
    rid = int(facts.rid[first])
    in_force = intake.replicas[rid].session
    opno = int(facts.opno[first]) or None
    return (
        in_force is not None
        and session[first].as_py() == in_force.id
        and intake.is_plain_from(rid, facts.csn[first].decode(), opno)
    )


def _reflected(intake: Intake, facts: Facts, run: _Run) -> tuple[Ints, Ints]:
    """The MRE of each change of a run, without and with its own epoch's reflections."""
    rid = int(facts.rid[run.start])
    sessions = intake.replicas[rid].sessions
    epochs, where = np.unique(facts.epoch[run.start : run.end], return_inverse=True)
    values = [int(epoch) for epoch in epochs]
    below = np.array([mre(sessions, e) for e in values], dtype=np.int64)[where]
    same = np.array([mre_same(sessions, e) for e in values], dtype=np.int64)[where]
    names = facts.table["table"].slice(run.start, run.end - run.start).combine_chunks()
    codes = names.dictionary_encode()
    visible = np.array([intake.rules.sees(rid, t) for t in codes.dictionary.to_pylist()])
    seen = visible[np.asarray(codes.indices)]
    return below * seen, same * seen


def _take_run(intake: Intake, facts: Facts, run: _Run) -> None:
    first, last = run.start, run.end - 1
    times = facts.table["time"]
    latest = max(times[first].value, times[last].value) // 1000
    table = facts.table["table"][first].as_py()
    intake.take_run(
        (intake.rules.dataset_of(table), int(facts.rid[first])),
        facts.csn[first].decode(),
        facts.csn[last].decode(),
        int(facts.opno[last]) or None,
        latest,
    )


def _said(rows: pa.Table, decode: Decode) -> Iterator[Said]:
    """The records as values."""
    for row in rows.to_pylist():
        reason, detail = Reason(row["reason"]) if row["reason"] else None, row["detail"] or ""
        record: Record | None = None
        if row["kind"] == Kind.CHANGE and row["csn"] and row["op"] in set(Op):
            record = _change(row)
        elif reason is None:
            try:
                record = decode(row["value"])[1]
            except WireError as error:
                reason, detail = Reason.KIND, str(error)
        time_ms = round(row["time"].timestamp() * 1000)
        yield Said(
            row["rid"],
            row["offset"],
            time_ms,
            row["session"],
            record,
            reason,
            detail,
            row["content"],
        )


def _change(row: Mapping[str, Any]) -> Change:
    return Change(
        row["csn"],
        row["rid"],
        row["epoch"] or 0,
        row["table"] or "",
        row["key"] or "",
        Op(row["op"]),
        row["after"],
        row["before"],
        row["prim_csn"],
        row["opno"],
    )


def _bulk(facts: Facts, run: _Run, below: Ints, same: Ints) -> pa.Table:
    rows = facts.table.slice(run.start, run.end - run.start)
    columns = [rows[name].cast(ELIGIBLE.field(name).type) for name in _FIELDS]
    return pa.table(
        [*columns, pa.array(below), pa.array(same), rows["csn"], rows["partial"]], schema=ELIGIBLE
    )


def _single(intake: Intake) -> pa.Table:
    """What became eligible record by record, waiting changes of earlier batches included."""
    rows = [
        {
            **{name: getattr(arrived.change, name) for name in Change.__slots__},
            "content": arrived.content,
            "session": arrived.session,
            "offset": arrived.offset,
            "time": arrived.time_ms * 1000,
            "mre": arrived.mre,
            "mre_same": arrived.mre_same,
            "tx": transaction[-1].change.csn,
            "partial": True,
        }
        for transaction in intake.eligible
        for arrived in transaction
    ]
    return pa.Table.from_pylist(rows, schema=ELIGIBLE)


def _ordered(bulk: list[pa.Table], single: pa.Table) -> pa.Table:
    """Transactions in order of their largest CSN, inside in CSN order."""
    table = pa.concat_tables([*bulk, single]).combine_chunks()
    if table.num_rows == 0:
        return table
    csn = table["csn"].to_numpy(zero_copy_only=False).astype("S20")
    tx = table["tx"].to_numpy(zero_copy_only=False).astype("S20")
    return table.take(pa.array(np.lexsort((csn, tx))))


def arrived_of(row: Mapping[str, Any]) -> Arrived:
    """A row of ELIGIBLE as core judges it."""
    return Arrived(
        _change(row),
        row["content"],
        row["session"],
        row["offset"],
        round(row["time"].timestamp() * 1000),
        row["mre"],
        row["mre_same"],
    )
