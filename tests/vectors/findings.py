"""What the hub found at one moment of a case: rows, conflicts, exceptions and counters."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.core.batch.counters import CONFLICT_COMMIT, FUNCTION, TRANSACTION_REJECT, counted
from streaming.core.conflict.judge import ConflictKind, Judged, Verdict
from streaming.core.counts.counter_keys import of_replicas
from streaming.core.model.change import Op, RowKey
from streaming.core.model.function import ConflictRule
from tests.vectors.origin_world import Hub, World
from tests.vectors.outcome import VectorError
from tests.vectors.steps import CLUSTERS

Unit = frozenset[int]
"""The writes that are counted as one, by their steps in the case."""

OP_TYPES = {Op.INSERT: "WRITE_ROW", Op.UPDATE: "UPDATE_ROW", Op.DELETE: "DELETE_ROW"}
CAUSES = {
    "insert_exists": "ROW_ALREADY_EXISTS",
    "update_origin_change": "DATA_IN_CONFLICT",
    "delete_recently_updated": "DATA_IN_CONFLICT",
    "update_recently_deleted": "ROW_DOES_NOT_EXIST",
    "delete_recently_deleted": "ROW_DOES_NOT_EXIST",
    "transaction": "TRANS_IN_CONFLICT",
}
"""The origin's cause for each conflict kind."""
INSERT_AS_UPDATE = (ConflictRule.MAX_INS, ConflictRule.MAX_DEL_WIN_INS)
"""Under these an insert on a row is compared with it, and loses by that."""
OF_MANY = (TRANSACTION_REJECT, CONFLICT_COMMIT)
"""Counters of transactions and of batches; all others are of rows."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An exception: `fields` as an exceptions table shows them."""

    row: RowKey
    unit: Unit
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Findings:
    """Of the hub, or of its origin.

    `rows`: those of each cluster. `conflicts`: the writes in conflict themselves. `exceptions`:
    the rejected ones, in their order. `counters`: what each one counts, by the hub's names.
    """

    rows: Mapping[str, Mapping[RowKey, Mapping[str, Any]]]
    conflicts: frozenset[Unit]
    exceptions: tuple[Recorded, ...]
    counters: Mapping[str, frozenset[Unit]]


def of_hub(world: World, steps: Mapping[str, int]) -> Findings:
    """What the hub and its replicas have now; `steps`: CSN -> the write's step."""
    hub = world.hub
    conflicts = [judged for judged in hub.judged if _in_conflict(judged, _rule(hub, judged))]
    return Findings(
        {
            name: {row: json.loads(image) for row, image in world.replicas[rid].rows.items()}
            for name, rid in CLUSTERS.items()
        },
        frozenset(_unit(judged, steps) for judged in conflicts),
        tuple(
            Recorded(judged.arrived.change.row, _unit(judged, steps), _exception(judged, rule))
            for judged in hub.judged
            if _lost(judged, rule := _rule(hub, judged))
        ),
        _counters(hub, conflicts, steps),
    )


def _unit(judged: Judged, steps: Mapping[str, int]) -> Unit:
    return frozenset({steps[judged.arrived.change.csn]})


def _in_conflict(judged: Judged, rule: ConflictRule) -> bool:
    """Return whether the origin would find this row in conflict itself: not what won over a row."""
    deleted_twice = judged.arrived.change.op is Op.DELETE and not judged.before.exists
    lost = judged.verdict is Verdict.REJECTED or (rule is ConflictRule.EPOCH2 and deleted_twice)
    return judged.concurrent and lost and rule is not ConflictRule.PASS


def _lost(judged: Judged, rule: ConflictRule) -> bool:
    """Return whether the change was rejected, alone or with its transaction."""
    return judged.verdict is Verdict.REJECTED and rule is not ConflictRule.PASS


def _rule(hub: Hub, judged: Judged) -> ConflictRule:
    return hub.topology.tables[judged.arrived.change.table].function.rule


def _exception(judged: Judged, rule: ConflictRule) -> dict[str, Any]:
    """A rejected change as an exceptions table shows it: the loser's own images."""
    change, conflict = judged.arrived.change, judged.conflict
    compared = conflict is ConflictKind.INSERT_EXISTS and rule in INSERT_AS_UPDATE
    return {
        "op_type": OP_TYPES[change.op],
        "cause": "DATA_IN_CONFLICT" if compared else CAUSES[str(conflict)],
        "old": json.loads(change.before or "{}"),
        "new": json.loads(change.after or "{}"),
    }


def _counters(
    hub: Hub, conflicts: list[Judged], steps: Mapping[str, int]
) -> dict[str, frozenset[Unit]]:
    """The hub's counters, of all replicas and tables; those of functions count what has lost."""
    found: dict[str, set[Unit]] = {}
    total = Counter[str]()
    for batch in _batches(hub):
        of_batch = Counter(dict.fromkeys(_names(hub, batch), 0))
        for key, count in of_replicas(counted(batch, hub.topology)).items():
            of_batch[key.name] += count
        of_batch[CONFLICT_COMMIT] = min(1, of_batch[CONFLICT_COMMIT])
        total += of_batch
        for name, unit in _counted_once(hub, batch, steps):
            found.setdefault(name, set()).add(unit)
    if {name: len(units) for name, units in found.items()} != dict(total):
        raise VectorError(f"the hub counted {dict(total)}, but not change by change")
    kept = {name: units for name, units in found.items() if not name.startswith(FUNCTION)}
    for judged in conflicts:
        name = FUNCTION + _rule(hub, judged).lower()
        kept.setdefault(name, set()).add(_unit(judged, steps))
    return {name: frozenset(units) for name, units in kept.items()}


def _batches(hub: Hub) -> list[list[Judged]]:
    batches: dict[int, list[Judged]] = {}
    for hub_epoch, entry in hub.log:
        if isinstance(entry, Judged):
            batches.setdefault(hub_epoch, []).append(entry)
    return list(batches.values())


def _names(hub: Hub, entries: list[Judged]) -> set[str]:
    return {key.name for key in of_replicas(counted(entries, hub.topology))}


def _counted_once(
    hub: Hub, batch: list[Judged], steps: Mapping[str, int]
) -> Iterator[tuple[str, Unit]]:
    """What a batch adds to the counters: rows one by one, transactions, and the batch itself."""
    transactions: dict[tuple[str, int], Unit] = {}
    for judged in batch:
        change, unit = judged.arrived.change, _unit(judged, steps)
        names = _names(hub, [judged])
        yield from ((name, unit) for name in names.difference(OF_MANY))
        if TRANSACTION_REJECT in names:
            primary = change.prim_csn or change.csn, change.rid
            transactions[primary] = transactions.get(primary, frozenset()) | unit
    yield from ((TRANSACTION_REJECT, unit) for unit in transactions.values())
    if transactions:
        yield CONFLICT_COMMIT, frozenset[int]().union(*transactions.values())
