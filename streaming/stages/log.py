"""Build the rows that a batch writes to changelog, conflicts, quarantine and events."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.store import rows_of
from checkpoints.tables import CHANGELOG, CONFLICTS, EVENTS, TableName
from checkpoints.times import time_of
from streaming.core.batch.sending import PAGE, Refresh
from streaming.core.conflict.judge import Judged, Verdict
from streaming.core.intake.intake import Intake
from streaming.core.model.change import Change, Op
from streaming.core.records.arrival import ControlOutcome, Quarantined
from streaming.core.records.kept_bytes import SHORT_HEAD_BYTES, KeptBytes, kept_bytes
from streaming.core.records.kinds import KIND_OF
from streaming.core.records.quarantine_budget import QuarantineBudget
from streaming.core.records.record import RECORD_BYTES, Reason, ReceivedRecord
from streaming.core.state.topology import Topology
from streaming.core.tracking.ranges import KeyRange
from streaming.stages.checked import CHECKED, Ints, bools, ints, one_array
from streaming.stages.intake import ELIGIBLE
from streaming.stages.judge import Verdicts

CHANGE = "change"
REFRESH = "refresh"
RANGE = "range"

Originals = Callable[[Sequence[tuple[int, int]]], Mapping[tuple[int, int], KeptBytes]]
"""Reads records from Kafka, by (rid, offset), as quarantine keeps them."""

OF_REFUSED = ("offset", "code", "text", "attempts", "sent_epoch")
"""The columns of CONFLICTS that only a refused row has (checkpoints/refusals.py)."""

_COPIED = [name for name in (*CHANGELOG.names, "size") if name in ELIGIBLE.names]


LOG = CHANGELOG.append(
    ELIGIBLE.field("size")  # bytes of the row's item if its images are on the executors, else null
).append(
    pa.field("partial", pa.bool_())  # the image may lack columns that are configured
)
"""CHANGELOG during its batch; checkpoints/comments.py has a line on each of its columns.

Where `size` is set, before, after and image are null until the executors write the row.
"""


def changelog(
    verdicts: Verdicts, batch: int, hub_epoch: int, ranges: Sequence[tuple[int, KeyRange]] = ()
) -> pa.Table:
    """Return LOG: every judged change in hub order with its verdict, every refresh, every range.

    `place` is the position in hub order. Sorting the rows by it would copy all images. `ranges`:
    (receiver, range) of those that are sent as a whole.
    """
    eligible = verdicts.changes
    count = eligible.num_rows
    behind = np.array([place for place, _ in verdicts.refreshes], dtype=np.int64)
    own_place = np.arange(count) + np.searchsorted(behind, np.arange(count))
    columns = {name: eligible[name] for name in _COPIED}
    columns |= _verdict_columns(eligible, verdicts)
    columns |= {
        "batch": np.full(count, batch),
        "hub_epoch": np.full(count, hub_epoch),
        "place": own_place,
        "kind": pa.array([CHANGE], pa.string()).take(pa.array(np.zeros(count, dtype=np.int64))),
        "to": pa.nulls(count, pa.int32()),
        "key_after": pa.nulls(count, pa.string()),
    }
    changes = pa.table({name: columns[name] for name in LOG.names}).cast(LOG)
    parts = [changes]
    if verdicts.refreshes:
        places = np.minimum(behind + 1, count) + np.arange(len(behind))
        refreshes = [one for _, one in verdicts.refreshes]
        parts.append(_refresh_rows(refreshes, places, batch, hub_epoch))
    if ranges:
        parts.append(_range_rows(ranges, count + len(behind), batch, hub_epoch))
    return pa.concat_tables(parts)


def _verdict_columns(eligible: pa.Table, verdicts: Verdicts) -> dict[str, object]:
    """Return the columns that judging adds, by change: defaults, or what core judged."""
    count = eligible.num_rows
    places = np.array(list(verdicts.judged), dtype=np.int64)
    judged = list(verdicts.judged.values())
    author, epoch = verdicts.row_author.copy(), verdicts.row_epoch.copy()
    author[places] = [j.before.author for j in judged]
    epoch[places] = [j.before.hub_epoch for j in judged]
    realign = np.zeros(count, dtype=np.int64)
    realign[places] = [j.realign_epoch for j in judged]
    mre, mre_same = ints(eligible["mre"]).copy(), ints(eligible["mre_same"]).copy()
    mre[places] = [j.arrived.mre for j in judged]
    mre_same[places] = [j.arrived.mre_same for j in judged]
    concurrent = np.zeros(count, dtype=np.bool_)
    concurrent[places] = [j.concurrent for j in judged]
    partial = bools(eligible["partial"]).copy()
    partial[places] = True
    mask = np.zeros(count, dtype=np.bool_)
    mask[places] = True
    written = pc.not_equal(eligible["op"], Op.DELETE.value)
    image = pc.if_else(written, eligible["after"], pa.scalar(None, pa.string()))
    images = [j.after.image if j.verdict is Verdict.ACCEPTED else None for j in judged]
    accepted = pa.array([Verdict.ACCEPTED.value]).take(pa.array(np.zeros(count, dtype=np.int64)))
    causes = [j.cause.value if j.cause else None for j in judged]
    return {
        "verdict": _replaced(accepted, mask, [j.verdict.value for j in judged]),
        "mre": mre,
        "mre_same": mre_same,
        "concurrent": concurrent,
        "cause": _replaced(pa.nulls(count, pa.string()), mask, causes),
        "row_author": author,
        "row_epoch": epoch,
        "row_csn": _replaced(verdicts.row_csn, mask, [j.before.csn for j in judged]),
        "realign_epoch": realign,
        "image": _replaced(image, mask, images),
        "partial": partial,
    }


def _replaced(column: pa.Array, mask: np.ndarray, values: Sequence[str | None]) -> pa.Array:
    """Return the column with the values, in order, where the mask is set."""
    column = one_array(column)
    if not values:
        return column
    return pc.replace_with_mask(column, pa.array(mask), pa.array(values, pa.string()))


def _refresh_rows(
    refreshes: Sequence[Refresh], places: Ints, batch: int, hub_epoch: int
) -> pa.Table:
    """Return the refreshes at these places, as LOG."""
    count, rows = len(refreshes), [one.row for one in refreshes]
    authors, csns = [row.author for row in rows], [row.csn for row in rows]
    columns = {
        "batch": np.full(count, batch),
        "hub_epoch": np.full(count, hub_epoch),
        "place": places,
        "kind": pa.repeat(REFRESH, count),
        "rid": authors,
        "offset": [one.behind for one in refreshes],
        "csn": csns,
        "table": [one.table for one in refreshes],
        "key": [one.key for one in refreshes],
        "op": [(Op.DELETE if row.image is None else Op.UPDATE).value for row in rows],
        "row_author": authors,
        "row_epoch": [row.hub_epoch for row in rows],
        "row_csn": csns,
        "image": [row.image for row in rows],
        "to": [one.to for one in refreshes],
        "cause": [str(one.cause) for one in refreshes],
        "partial": np.ones(count, dtype=np.bool_),
    }
    empty = [None] * count
    return pa.table([pa.array(columns.get(f.name, empty), f.type) for f in LOG], schema=LOG)


def _range_rows(
    ranges: Sequence[tuple[int, KeyRange]], place: int, batch: int, hub_epoch: int
) -> pa.Table:
    """Return the ranges from this place on, as LOG; the rows in them are in no log."""
    rows = [
        {
            "batch": batch,
            "hub_epoch": hub_epoch,
            "place": place + number,
            "kind": RANGE,
            "table": keys.table,
            "key_after": keys.after,
            "key": keys.to,
            "to": to,
            "cause": PAGE,
        }
        for number, (to, keys) in enumerate(ranges)
    ]
    return pa.Table.from_pylist(rows, schema=LOG)


def conflicts(
    log: pa.Table,
    judged: Sequence[Judged],
    topology: Topology,
    names: Mapping[int, str],
    at_ms: int,
) -> pa.Table:
    """Return CONFLICTS: every loser with its winner.

    `log`: LOG with these changes, in their order. `names`: rid -> name. `at_ms`: the batch's time.
    """
    found = [one for one in judged if one.conflict is not None]
    if not found:
        return rows_of(TableName.CONFLICTS, [])
    csns = pa.array([one.arrived.change.csn for one in found], pa.string())
    is_one = pc.and_(pc.equal(log["kind"], CHANGE), pc.is_in(log["csn"], csns))
    changes = log.filter(is_one)
    functions = {name: str(table.function) for name, table in topology.tables.items()}
    row_lost = pa.array([one.row_lost for one in found], pa.bool_())
    met = pa.array([one.before.image for one in found], pa.string())
    made = pa.array([one.after.image for one in found], pa.string())
    numbers = (changes[name].cast(pa.string()) for name in ("hub_epoch", "place"))
    columns = {
        **{name: changes[name] for name in CONFLICTS.names if name in LOG.names},
        "id": pc.binary_join_element_wise(*numbers, "-"),
        "kind": pa.array([str(one.conflict) for one in found], pa.string()),
        "function": pa.array([functions[one.arrived.change.table] for one in found], pa.string()),
        "lost": pc.if_else(row_lost, "row", "change"),
        "loser_csn": pc.if_else(row_lost, changes["row_csn"], changes["csn"]),
        "loser_rid": pc.if_else(row_lost, changes["row_author"], changes["rid"]),
        "loser_epoch": pc.if_else(row_lost, pa.scalar(None, pa.int64()), changes["epoch"]),
        "loser_hub_epoch": pc.if_else(row_lost, changes["row_epoch"], pa.scalar(None, pa.int64())),
        "winner_csn": pc.if_else(row_lost, changes["csn"], changes["row_csn"]),
        "winner_rid": pc.if_else(row_lost, changes["rid"], changes["row_author"]),
        "winner_hub_epoch": pc.if_else(row_lost, changes["hub_epoch"], changes["row_epoch"]),
        "reflected_epoch": changes["mre_same"],
        "same_epoch_only": pa.array([one.same_epoch_only for one in found], pa.bool_()),
        "before": pc.if_else(row_lost, pa.scalar(None, pa.string()), changes["before"]),
        "after": pc.if_else(row_lost, met, changes["after"]),
        "winner_image": pc.if_else(row_lost, made, met),
        "resolution": pa.repeat("open", len(found)),
        "resolved_by": pa.nulls(len(found), pa.string()),
        "at": pa.repeat(time_of(at_ms), len(found)),
        **{name: pa.nulls(len(found), CONFLICTS.field(name).type) for name in OF_REFUSED},
    }
    columns["loser"] = _names(columns["loser_rid"], names)
    columns["winner"] = _names(columns["winner_rid"], names)
    return pa.table({name: columns[name] for name in CONFLICTS.names}).cast(CONFLICTS)


def _names(rids: pa.Array, names: Mapping[int, str]) -> pa.Array:
    return pa.array([names.get(rid) for rid in rids.to_pylist()], pa.string())


_NEVER: Mapping[str, int] = {}


def quarantine(
    quarantined: Sequence[Quarantined],
    values: Mapping[tuple[int, int], bytes],
    originals: Originals,
    topics: Mapping[int, str],
    batch: int,
    recreated: Mapping[str, int] = _NEVER,
    budget: QuarantineBudget | None = None,
) -> pa.Table:
    """Return QUARANTINE: the quarantined records with their original bytes.

    Of one that is too large, or beyond the budget, the head is kept (core/records/kept_bytes.py).
    `values`: (rid, offset) -> bytes that are at hand; `originals` reads the others. `recreated`:
    topic -> how often it was created again, and its offsets began anew.
    """
    budget = budget or QuarantineBudget()
    record_bytes = budget.limits.record_bytes
    missing = [q for q in quarantined if (q.rid, q.offset) not in values and q.rid in topics]
    fetched = originals([(q.rid, q.offset) for q in missing]) if missing else {}
    if recreated:
        fetched = {place: fetched[place] for place in _originals_of(missing, fetched)}
    places = [(q.rid, q.offset) for q in quarantined]
    at_hand = {one: kept_bytes(values[one], record_bytes) for one in places if one in values}
    known = {**fetched, **at_hand}
    kept = (budget.keep(rid, known.get((rid, offset), KeptBytes())) for rid, offset in places)
    rows = [
        {**_kept_record(q, topics, one), "batch": batch, "id": _id_of(q, topics, recreated)}
        for q, one in zip(quarantined, kept, strict=True)
    ]
    return rows_of(TableName.QUARANTINE, rows)


def _kept_record(q: Quarantined, topics: Mapping[int, str], kept: KeptBytes) -> dict[str, object]:
    """What is kept of a record: of its change no image, which its bytes have."""
    topic, change = topics.get(q.rid), q.change
    is_gone = kept.value is None and topic is not None and q.reason is not Reason.UNREADABLE
    return {
        "action": "kept",
        "reason": q.reason.value,
        "detail": f"{q.detail} ({_UNREADABLE})" if is_gone else q.detail,
        "topic": topic,  # null: a change of the hub itself
        "rid": q.rid,
        "offset": q.offset,
        "time": time_of(q.time_ms),
        **_named(q, is_cut=kept.is_short and q.is_invalid),
        "content": q.content,
        "value": kept.value,
        "epoch": change.epoch if change else None,
        "op": change.op.value if change else None,
        "opno": change.opno if change else None,
        "bytes": kept.size,
        "sha256": kept.sha256,
        "kind": q.kind.value if q.kind else None,
        "invalid": q.is_invalid,
        "mre": q.mre,
    }


def _named(q: Quarantined, *, is_cut: bool) -> dict[str, str | None]:
    """What names the record. `is_cut`: beyond the budget, where none of it is longer than a head.

    A key that is cut is left out, for it would name another row.
    """
    change = q.change
    found = {"session": q.session, "csn": None, "prim_csn": None, "table": None, "key": None}
    if change is not None:
        found |= {name: getattr(change, name) for name in ("csn", "prim_csn", "table", "key")}
    if not is_cut:
        return found
    key = found["key"]
    cut = {name: text[:SHORT_HEAD_BYTES] for name, text in found.items() if text is not None}
    return {**found, **cut, "key": "" if key and len(key) > SHORT_HEAD_BYTES else key}


_UNREADABLE = "its bytes are not kept: the topic has no readable record at its offset"


def _originals_of(
    missing: Sequence[Quarantined], fetched: Mapping[tuple[int, int], KeptBytes]
) -> Iterator[tuple[int, int]]:
    """Yield where the original is; a topic that was created again has another record there."""
    for q in missing:
        value = fetched.get((q.rid, q.offset), KeptBytes()).value or b""
        if q.change is not None and q.change.csn.encode() in value:
            yield q.rid, q.offset


def _id_of(q: Quarantined, topics: Mapping[int, str], recreated: Mapping[str, int]) -> str:
    """Return <rid>-<offset>; <rid>-<csn> for a change of the hub itself, which is in no topic.

    Of a topic that was created again n times it is <rid>.<n>-<offset>.
    """
    times = recreated.get(topics.get(q.rid, ""), 0)
    if q.rid in topics or q.change is None:
        return f"{q.rid}.{times}-{q.offset}" if times else f"{q.rid}-{q.offset}"
    return f"{q.rid}-{q.change.csn}"


def events(
    intake: Intake,
    commits: pa.Table,
    values: Mapping[tuple[int, int], bytes],
    topics: Mapping[int, str],
    batch: int,
    hub_epoch: int,
    record_bytes: int = RECORD_BYTES,
) -> pa.Table:
    """Return EVENTS: control records with their outcomes, and repeated changes, in topic order.

    `commits`: CHECKED of the commits that were processed in bulk. Of a record larger than
    `record_bytes`, which repeats one in quarantine, no byte is kept again.
    """
    rows = [
        {
            "batch": batch,
            "hub_epoch": hub_epoch,
            "topic": topics[received.rid],
            "rid": received.rid,
            "offset": received.offset,
            "time": time_of(received.time_ms),
            "session": received.session,
            "kind": KIND_OF[type(received.record)].value if received.record else None,
            "outcome": outcome.value,
            "value": _text_kept(received, values, record_bytes),
            **_repeated(received),
        }
        for received, outcome in intake.events
    ]
    single = rows_of(TableName.EVENTS, rows)
    if not commits.num_rows:
        return single
    both = pa.concat_tables([single, _taken(commits, topics, batch, hub_epoch)])
    return both.sort_by([("rid", "ascending"), ("offset", "ascending")])


def _text_kept(
    received: ReceivedRecord, values: Mapping[tuple[int, int], bytes], record_bytes: int
) -> str:
    value = values.get((received.rid, received.offset), b"")
    return value.decode(errors="replace") if len(value) <= record_bytes else ""


def _repeated(received: ReceivedRecord) -> dict[str, str | None]:
    """What names a repeated change, of which no other table has this record."""
    if not isinstance(received.record, Change):
        return {}
    return {"csn": received.record.csn, "content": received.content}


def _taken(commits: pa.Table, topics: Mapping[int, str], batch: int, hub_epoch: int) -> pa.Table:
    rid = commits["rid"].combine_chunks().dictionary_encode()
    names = pa.array([topics[one] for one in rid.dictionary.to_pylist()], pa.string())
    columns = {
        **{name: commits[name] for name in EVENTS.names if name in CHECKED.names},
        "batch": np.full(len(rid), batch),
        "hub_epoch": np.full(len(rid), hub_epoch),
        "topic": names.take(rid.indices),
        "outcome": pa.repeat(ControlOutcome.TAKEN.value, len(rid)),
    }
    return pa.table({name: columns[name] for name in EVENTS.names}).cast(EVENTS)
