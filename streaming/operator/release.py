"""Release and drop quarantined records; a released one becomes a change of the hub."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from checkpoints.reading.quarantined_rows import quarantined_rows
from checkpoints.reading.reader import open_state
from checkpoints.store import StateStore, among, rows_of
from checkpoints.tables import TableName
from streaming.core.conflict.masked import NONE_MASKED, MaskedTables
from streaming.core.model.change import Op, RowKey
from streaming.core.model.command import Command, CommandName
from streaming.core.model.table import Table
from streaming.core.model.truncation import ALL_KEYS
from streaming.core.records.images import row_named
from streaming.core.records.kept_bytes import KeptBytes, is_whole_of
from streaming.core.records.quarantine_budget import NOTHING_KEPT, KeptSum
from streaming.core.records.record import Reason, RecordKind
from streaming.core.state.topology import Topology
from streaming.operator.hub_changes import HubChangeWriter

Revalidate = Callable[[pa.Table], pa.Table]
"""Records as topic, offset, timestamp, value -> their facts under the present configuration."""

Originals = Callable[[Sequence[tuple[int, int]]], Mapping[tuple[int, int], KeptBytes]]
"""Reads records from their topics, by (rid, offset), as quarantine keeps them."""


@dataclass(frozen=True, slots=True)
class ReleasedRecords:
    """What `release` and `drop` did: rows for `quarantine`; `gone`: rid -> what it has no more."""

    rows: pa.Table
    gone: Mapping[int, KeptSum]


RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("value", pa.binary()),
    ]
)


def act(
    store: StateStore,
    commands: Sequence[Command],
    author: HubChangeWriter,
    revalidate: Revalidate,
    originals: Originals,
    batch: int,
    *,
    masked: MaskedTables = NONE_MASKED,
) -> ReleasedRecords:
    """Carry out commands that are `release` or `drop`.

    A released change gets a new CSN of the hub and is judged by the hub epoch that the operator
    looked at; those of a replica in its order, so that of a row the newest stands. One that is
    still invalid stays, with the new reason; so does one whose whole bytes nobody has any more, and
    one that may hold masks.
    """
    by_id = {c.argument: c for c in commands if c.argument}
    if not by_id:
        return ReleasedRecords(rows_of(TableName.QUARANTINE, []), {})
    kept = {row["id"]: row for row in _kept(store, list(by_id), batch)}
    dropped = [_action(row, "dropped", batch) for i, row in kept.items() if _is_drop(by_id[i])]
    chosen = [row for i, row in kept.items() if not _is_drop(by_id[i])]
    whole = _whole(chosen, originals)
    found = _facts([row for row in whole if row["value"] is not None], revalidate)
    facts = {i: _fact_of_masked(fact, kept[i], masked) for i, fact in found.items()}
    gone = [_refused(row, None, _gone(row), batch) for row in chosen if row["id"] not in facts]
    revalidated = [
        _action(kept[i], "released", batch)
        if _release(facts[i], author, by_id[i].seen)
        else _refused(kept[i], facts[i]["reason"], facts[i]["detail"], batch)
        for i in sorted(facts, key=lambda i: (kept[i]["rid"], kept[i]["offset"], i))
    ]
    rows = [*dropped, *revalidated, *gone]
    ended = [kept[row["id"]] for row in rows if row["action"] != "kept"]
    return ReleasedRecords(rows_of(TableName.QUARANTINE, rows), _sums(ended))


def _sums(rows: Iterable[Mapping[str, Any]]) -> dict[int, KeptSum]:
    """Rid -> how many of these records there are, and of how many bytes that are kept."""
    found = dict[int, KeptSum]()
    for row in rows:
        one = KeptSum(1, len(row["value"] or b""))
        found[row["rid"]] = found.get(row["rid"], NOTHING_KEPT).plus(one)
    return found


def left_different(
    store: StateStore, commands: Sequence[Command], topology: Topology, batch: int
) -> dict[tuple[int, RowKey], str]:
    """(rid, row) -> the reason, of dropped changes whose row nothing had set right up to a batch.

    While a newer record of a row is kept, the row stays as it is. Of a truncate, or a change
    without a key, it is the table as a whole. A row that cannot be named stays as it is.
    """
    ids = {command.argument for command in commands if _is_drop(command)}
    if not ids:
        return {}
    found = dict[tuple[int, RowKey], str]()
    reader = open_state(store.root).upto(batch)
    for kept in quarantined_rows(reader, topology.visible, topology.tables):
        if kept["id"] in ids and kept["table"] is not None and kept["key"] is not None:
            row = _row_of(kept["table"], kept["key"], topology.tables)
            if row is not None:
                found[kept["rid"], row] = kept["reason"]
    return found


def _row_of(table: str, key: str, tables: Mapping[str, Table]) -> RowKey | None:
    if key == ALL_KEYS:
        return (table, ALL_KEYS) if table in tables else None
    return row_named(table, key, tables)


def _is_drop(command: Command) -> bool:
    return command.name is CommandName.DROP


def releasable(
    rows: Sequence[Mapping[str, Any]], revalidate: Revalidate, originals: Originals
) -> set[str]:
    """The ids of those records in quarantine that a release would make changes of the hub now."""
    whole = [row for row in _whole(rows, originals) if row["value"] is not None]
    return {id_ for id_, fact in _facts(whole, revalidate).items() if _is_releasable(fact)}


def _is_releasable(fact: Mapping[str, Any]) -> bool:
    is_change = fact["kind"] == RecordKind.CHANGE and fact["op"] != Op.TRUNCATE
    return is_change and fact["reason"] is None


def _release(fact: Mapping[str, Any], author: HubChangeWriter, seen: int) -> bool:
    """Make the record's change a change of the hub; False if it is still invalid."""
    if not _is_releasable(fact):
        return False
    images = fact["after"], fact["before"]
    author.make(fact["table"], fact["key"], Op(fact["op"]), *images, seen, fact["csn"])
    return True


def _kept(store: StateStore, ids: Sequence[str], batch: int) -> Iterator[dict[str, Any]]:
    """Yield the records that are in quarantine before this batch, as they were last written."""
    where = among("id", ids) & (ds.field("batch") < batch)
    rows = store.read(TableName.QUARANTINE, where).sort_by("batch").to_pylist()
    gone = {row["id"] for row in rows if row["action"] != "kept"}
    latest = {row["id"]: row for row in rows if row["action"] == "kept"}
    yield from (row for i, row in latest.items() if i not in gone)


def _fact_of_masked(
    fact: dict[str, Any], row: Mapping[str, Any], masked: MaskedTables
) -> dict[str, Any]:
    """The fact of a record, with a fault if its replica may have written it on masked rows.

    It had no right to the table then, and may have it now: the masks that it read in place of
    values would become everybody's.
    """
    is_masked = row["reason"] == Reason.RIGHTS and row["table"] in masked.get(row["rid"], ())
    if not is_masked or fact["reason"] == Reason.RIGHTS:
        return fact
    detail = (
        f"replica {row['rid']} was sent table {row['table']} masked, and what it wrote then has the"
        " masks in place of values: drop the record, and have the replica write the row again"
    )
    return {**fact, "reason": Reason.RIGHTS.value, "detail": detail}


def _whole(rows: Sequence[Mapping[str, Any]], originals: Originals) -> Iterator[Mapping[str, Any]]:
    """Yield the rows with all bytes of their records; None: they are not there any more."""
    places = [(row["rid"], row["offset"]) for row in rows if row["sha256"]]
    found = originals(places) if places else {}
    for row in rows:
        original = found.get((row["rid"], row["offset"]), KeptBytes()).whole
        if row["sha256"] is None:
            yield row
        else:
            yield {**row, "value": original if is_whole_of(original, row["sha256"]) else None}


def _gone(row: Mapping[str, Any]) -> str:
    return (
        f"cannot be released: its bytes are not kept whole, and {row['topic']} has at offset"
        f" {row['offset']} another record, none, or one that is still larger than"
        " limits.record_bytes; write the row again, then drop it"
    )


def _facts(rows: Sequence[Mapping[str, Any]], revalidate: Revalidate) -> dict[str, dict[str, Any]]:
    if not rows:
        return {}
    records = [
        {"topic": r["topic"], "offset": number, "timestamp": r["time"], "value": r["value"]}
        for number, r in enumerate(rows)  # topics that were created again have an offset twice
    ]
    facts = revalidate(pa.Table.from_pylist(records, schema=RECORDS))
    return {rows[fact["offset"]]["id"]: fact for fact in facts.to_pylist()}


def _action(row: Mapping[str, Any], action: str, batch: int) -> dict[str, Any]:
    return {**row, "action": action, "batch": batch, "value": None}


def _refused(
    row: Mapping[str, Any], reason: str | None, detail: str | None, batch: int
) -> dict[str, Any]:
    """Make the row of a record that stays in quarantine, with the reason."""
    why = detail or "only a change that can be judged anew can be released"
    return {**row, "batch": batch, "reason": reason or row["reason"], "detail": why}
