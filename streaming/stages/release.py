"""An operator's word on quarantined records: released ones become changes of the hub, others go."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from checkpoints.epochs import Command, time_of
from checkpoints.store import Store, among, rows_of
from checkpoints.tables import TableName
from streaming.core.change import Op
from streaming.core.csn import Generator, parse
from streaming.core.intake import Intake
from streaming.core.judge import Arrived
from streaming.core.record import Kind, Reason
from streaming.stages.intake import arrived_of

RELEASE = "release"
DROP = "drop"

NOT_YET = frozenset({Reason.LATE, Reason.REUSED, Reason.PURGED, Reason.ENDED})
"""What cannot be released: the origin's row was refreshed since."""

Revalidate = Callable[[pa.Table], pa.Table]
"""Records as topic, offset, timestamp, value -> their facts under the present configuration."""

RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("value", pa.binary()),
    ]
)


@dataclass(frozen=True, slots=True)
class Released:
    """Changes that the hub makes in the operator's name, and the rows for `quarantine`."""

    changes: tuple[Arrived, ...]
    rows: pa.Table


def act(
    store: Store,
    commands: Sequence[Command],
    intake: Intake,
    revalidate: Revalidate,
    *,
    hub_rid: int,
    batch: int,
    at_ms: int,
) -> Released:
    """Carry out `release` and `drop`.

    A released change gets a new CSN of the hub and is judged as made by one who has seen
    everything up to now; one that is still no good stays, with the new reason.
    """
    asked = {c.argument: c.command for c in commands if c.command in (RELEASE, DROP) and c.argument}
    if not asked:
        return Released((), rows_of(TableName.QUARANTINE, []))
    kept = {row["id"]: row for row in _kept(store, list(asked), batch)}
    dropped = [_action(row, "dropped", batch) for i, row in kept.items() if asked[i] == DROP]
    wanted = [row for i, row in kept.items() if asked[i] == RELEASE]
    facts = _facts(wanted, revalidate)
    good = {i for i, fact in facts.items() if _is_change(fact, kept[i]["reason"])}
    generator = _generator(intake, hub_rid)
    changes = tuple(
        _hub_changes([facts[i] for i in sorted(good)], generator, intake, hub_rid, at_ms)
    )
    answered = [
        _action(kept[i], "released", batch)
        if i in good
        else _refused(kept[i], facts[i]["reason"], facts[i]["detail"], batch)
        for i in facts
    ]
    return Released(changes, rows_of(TableName.QUARANTINE, [*dropped, *answered]))


def _kept(store: Store, ids: Sequence[str], batch: int) -> Iterator[dict[str, Any]]:
    """The records that are in quarantine still before this batch, as they were last kept."""
    where = among("id", ids) & (ds.field("batch") < batch)
    rows = store.read(TableName.QUARANTINE, where).sort_by("batch").to_pylist()
    gone = {row["id"] for row in rows if row["action"] != "kept"}
    latest = {row["id"]: row for row in rows if row["action"] == "kept"}
    yield from (row for i, row in latest.items() if i not in gone)


def _facts(rows: Sequence[Mapping[str, Any]], revalidate: Revalidate) -> dict[str, dict[str, Any]]:
    if not rows:
        return {}
    records = [
        {"topic": r["topic"], "offset": r["offset"], "timestamp": r["time"], "value": r["value"]}
        for r in rows
    ]
    facts = revalidate(pa.Table.from_pylist(records, schema=RECORDS))
    return {f"{fact['rid']}-{fact['offset']}": fact for fact in facts.to_pylist()}


def _is_change(fact: Mapping[str, Any], reason: str) -> bool:
    valid = fact["reason"] is None and fact["kind"] == Kind.CHANGE
    return valid and fact["op"] != Op.TRUNCATE and reason not in NOT_YET


def _generator(intake: Intake, hub_rid: int) -> Generator:
    last = intake.maxima.get(hub_rid)
    parts = parse(last) if last else None
    return Generator(hub_rid, parts.time_s, parts.sequence) if parts else Generator(hub_rid)


def _hub_changes(
    facts: Sequence[Mapping[str, Any]],
    generator: Generator,
    intake: Intake,
    hub_rid: int,
    at_ms: int,
) -> Iterator[Arrived]:
    seen = intake.state.hub_epoch
    for fact in facts:
        csn, generator = generator.next(at_ms // 1000)
        arrived = arrived_of({**fact, "mre": seen, "mre_same": seen, "time": time_of(at_ms)})
        change = replace(arrived.change, csn=csn, rid=hub_rid, epoch=0, prim_csn=None, opno=None)
        yield replace(arrived, change=change, content=change.content, session="")


def _action(row: Mapping[str, Any], action: str, batch: int) -> dict[str, Any]:
    return {**row, "action": action, "batch": batch, "value": None}


def _refused(
    row: Mapping[str, Any], reason: str | None, detail: str | None, batch: int
) -> dict[str, Any]:
    """Still in quarantine: the reason why its release was not possible."""
    why = detail or "only a change that can be judged anew can be released"
    return {**row, "batch": batch, "reason": reason or row["reason"], "detail": why}
