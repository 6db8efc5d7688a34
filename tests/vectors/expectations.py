"""What a case of two clusters expects: rows, conflicts, exceptions, counters; null is anything."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from streaming.core.conflict.counters import (
    CONFLICT_COMMIT,
    FUNCTION,
    ROW_REJECT,
    TRANSACTION_REJECT,
    counted,
)
from streaming.core.conflict.function import ConflictRule
from streaming.core.conflict.judge import ConflictKind, Judged, Verdict
from streaming.core.delivery.sending import LogEntry
from streaming.core.model.change import Op, RowKey
from streaming.core.model.errors import VectorError
from tests.vectors.deviations import CounterRule
from tests.vectors.origin_world import Hub, World
from tests.vectors.outcome import About, Case, Difference
from tests.vectors.steps import CLUSTERS, row_of

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
REJECTS = (ROW_REJECT, TRANSACTION_REJECT, CONFLICT_COMMIT)
"""The counters of what goes whole."""
INSERT_AS_UPDATE = (ConflictRule.MAX_INS, ConflictRule.MAX_DEL_WIN_INS)
"""Under these an insert on a row is compared with it, and loses by that."""


def differences(
    case: Case,
    world: World,
    expect: Mapping[str, Any],
    counters: Sequence[CounterRule],
    *,
    listed_only: bool = False,
) -> list[Difference]:
    """What is otherwise; null is not compared, nor a counter that the hub does not have.

    `listed_only`: of rows only those are compared that are expected, if there are any.
    """
    hub = world.hub
    conflicts = [judged for judged in hub.judged if _in_conflict(judged, _rule(hub, judged))]
    found = list[Difference]()
    for name, expected in expect.items():
        match name.removeprefix("final_"), expected:
            case _, None:
                continue
            case ("rows_A" | "rows_B") as where, list():
                wanted = expected if listed_only and expected else case.get("final_rows_filter")
                found += _rows(world, where.removeprefix("rows_"), expected, wanted)
            case "conflict_count_delta", int():
                found += _count("conflicts", expected, len(conflicts))
            case "conflict_count_delta", dict():
                for table, count in expected.items():
                    of_table = [c for c in conflicts if c.arrived.change.table == table]
                    found += _count(f"conflicts of {table}", count, len(of_table))
            case "exceptions", list():
                found += _exceptions(hub, expected)
            case "counters", dict():
                found += _counters(hub, conflicts, expected, counters, case)
            case _:
                raise VectorError(f"{name}: {expected!r} is an unknown kind of expectation")
    return found


def _in_conflict(judged: Judged, rule: ConflictRule) -> bool:
    """Claim that the origin would find this row in conflict itself: not what won over a row."""
    deleted_twice = judged.arrived.change.op is Op.DELETE and not judged.before.exists
    lost = judged.verdict is Verdict.REJECTED or (rule is ConflictRule.EPOCH2 and deleted_twice)
    return judged.concurrent and lost and rule is not ConflictRule.PASS


def _lost(judged: Judged, rule: ConflictRule) -> bool:
    """Claim that the change was rejected, alone or with its transaction."""
    return judged.verdict is Verdict.REJECTED and rule is not ConflictRule.PASS


def _rule(hub: Hub, judged: Judged) -> ConflictRule:
    return hub.topology.tables[judged.arrived.change.table].function.rule


def _count(
    name: str, expected: int | None, got: int, about: About = About.COUNT
) -> list[Difference]:
    if expected is None or expected == got:
        return []
    return [Difference(f"{name}: expected {expected}, got {got}", about)]


def _rows(
    world: World,
    cluster: str,
    expected: Sequence[Mapping[str, Any]],
    wanted: Any,  # noqa: ANN401
) -> list[Difference]:
    """Rows are compared in the columns that are expected of them."""
    there = {
        row: image
        for row, image in world.replicas[CLUSTERS[cluster]].rows.items()
        if _is_shown(row, wanted)
    }
    should = {row_of(each): each["values"] for each in expected}
    found = list[Difference]()
    for row in sorted(there.keys() | should.keys()):
        got = json.loads(there[row]) if row in there else None
        want = should.get(row)
        if got is None or want is None or any(got.get(c) != v for c, v in want.items()):
            text = f"row {row[0]} {row[1]} of {cluster}: expected {want}, got {there.get(row)}"
            found.append(Difference(text, About.CONTENT, row))
    return found


def _is_shown(row: RowKey, wanted: Any) -> bool:  # noqa: ANN401
    """Claim that the origin printed this row: one filter or one of several lets it through."""
    filters = wanted if isinstance(wanted, list) else [wanted or {}]
    return any(
        row[0] == each.get("table", row[0]) and ("key" not in each or row == row_of(each))
        for each in filters
    )


def _exceptions(hub: Hub, expected: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """Exceptions row by row, in the order of the row's changes; null fields are not compared."""
    got: dict[RowKey, list[dict[str, Any]]] = {}
    for judged in hub.judged:
        if _lost(judged, rule := _rule(hub, judged)):
            got.setdefault(judged.arrived.change.row, []).append(_exception(judged, rule))
    want: dict[RowKey, list[Mapping[str, Any]]] = {}
    for each in expected:
        want.setdefault(row_of(each), []).append(each)
    found = list[Difference]()
    for row in sorted(got.keys() | want.keys()):
        have, should = got.get(row, []), want.get(row, [])
        if len(have) != len(should) or not all(map(_fits, have, should)):
            text = f"exceptions of row {row[0]} {row[1]}: expected {should}, got {have}"
            found.append(Difference(text, About.EXCEPTIONS, row))
    return found


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


def _fits(got: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    plain = all(expected.get(n) in (None, got[n]) for n in ("op_type", "cause"))
    images = (
        got[name].get(column) == value
        for name in ("old", "new")
        for column, value in (expected.get(name) or {}).items()
    )
    return plain and all(images)


def _counters(
    hub: Hub,
    conflicts: Sequence[Judged],
    expected: Mapping[str, int | None],
    counters: Sequence[CounterRule],
    case: Case,
) -> list[Difference]:
    have = _counted(hub, conflicts)
    found = list[Difference]()
    for name, value in expected.items():
        cluster, _, bare = name.rpartition(".")
        if cluster and cluster != case["detecting_cluster"]:
            bare = name
        rule = next((c for c in counters if fnmatchcase(bare.lower(), c.name)), None)
        if rule is None:
            raise VectorError(f"{name} is an unknown counter")
        if rule.counts:
            about = About.REJECTS if rule.counts in REJECTS else About.COUNT
            found += _count(name, value, have[rule.counts], about)
    return found


def _counted(hub: Hub, conflicts: Sequence[Judged]) -> Counter[str]:
    """The hub's counters, of all replicas and tables; those of functions count what has lost."""
    batches: dict[int, list[LogEntry]] = {}
    for hub_epoch, entry in hub.log:
        batches.setdefault(hub_epoch, []).append(entry)
    found = Counter[str]()
    for entries in batches.values():
        of_batch = Counter[str]()
        for key, count in counted(entries, hub.topology).items():
            of_batch[key.split("/")[0]] += count
        of_batch[CONFLICT_COMMIT] = min(1, of_batch[CONFLICT_COMMIT])
        found += Counter({n: c for n, c in of_batch.items() if not n.startswith(FUNCTION)})
    return found + Counter(FUNCTION + _rule(hub, judged).lower() for judged in conflicts)
