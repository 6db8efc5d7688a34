"""What a case of two clusters expects: rows, conflicts, exceptions, counters; null is anything."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from streaming.core.change import Op, RowKey
from streaming.core.errors import VectorError
from streaming.core.judge import Judged
from tests.vectors.deviations import CounterRule
from tests.vectors.outcome import Case, Difference
from tests.vectors.steps import CLUSTERS, row_of
from tests.vectors.world import World

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


def differences(
    case: Case, world: World, expect: Mapping[str, Any], counters: Sequence[CounterRule]
) -> list[Difference]:
    """What is otherwise; null is not compared, nor a counter that the hub does not have."""
    conflicts = [judged for judged in world.hub.judged if judged.concurrent]
    found = list[Difference]()
    for name, expected in expect.items():
        match name.removeprefix("final_"), expected:
            case _, None:
                continue
            case ("rows_A" | "rows_B") as where, list():
                wanted = case.get("final_rows_filter")
                found += _rows(world, where.removeprefix("rows_"), expected, wanted)
            case "conflict_count_delta", int():
                found += _count("conflicts", expected, len(conflicts))
            case "conflict_count_delta", dict():
                for table, count in expected.items():
                    of_table = [c for c in conflicts if c.arrived.change.table == table]
                    found += _count(f"conflicts of {table}", count, len(of_table))
            case "exceptions", list():
                found += _exceptions(conflicts, expected)
            case "counters", dict():
                found += _counters(conflicts, expected, counters, case)
            case _:
                raise VectorError(f"{name}: {expected!r} is an unknown kind of expectation")
    return found


def _count(name: str, expected: int | None, got: int) -> list[Difference]:
    if expected is None or expected == got:
        return []
    return [Difference(f"{name}: expected {expected}, got {got}")]


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
            found.append(Difference(text, row))
    return found


def _is_shown(row: RowKey, wanted: Any) -> bool:  # noqa: ANN401
    """Claim that the origin printed this row: one filter or one of several lets it through."""
    filters = wanted if isinstance(wanted, list) else [wanted or {}]
    return any(
        row[0] == each.get("table", row[0]) and ("key" not in each or row == row_of(each))
        for each in filters
    )


def _exceptions(
    conflicts: Sequence[Judged], expected: Sequence[Mapping[str, Any]]
) -> list[Difference]:
    """Exceptions row by row, in the order of the row's changes; null fields are not compared."""
    got: dict[RowKey, list[Judged]] = {}
    for judged in conflicts:
        got.setdefault(judged.arrived.change.row, []).append(judged)
    want: dict[RowKey, list[Mapping[str, Any]]] = {}
    for each in expected:
        want.setdefault(row_of(each), []).append(each)
    found = list[Difference]()
    for row in sorted(got.keys() | want.keys()):
        have, should = got.get(row, []), want.get(row, [])
        if len(have) != len(should) or not all(map(_is_exception, have, should)):
            told = [_exception(judged) for judged in have]
            text = f"exceptions of row {row[0]} {row[1]}: expected {should}, got {told}"
            found.append(Difference(text, row))
    return found


def _exception(judged: Judged) -> dict[str, Any]:
    """A conflict as an exceptions table shows it: the loser's own images."""
    change = judged.arrived.change
    return {
        "op_type": OP_TYPES[change.op],
        "cause": CAUSES[str(judged.conflict)],
        "old": json.loads(change.before or "{}"),
        "new": json.loads(change.after or "{}"),
    }


def _is_exception(judged: Judged, expected: Mapping[str, Any]) -> bool:
    got = _exception(judged)
    plain = all(expected.get(n) in (None, got[n]) for n in ("op_type", "cause"))
    images = (
        got[name].get(column) == value
        for name in ("old", "new")
        for column, value in (expected.get(name) or {}).items()
    )
    return plain and all(images)


def _counters(
    conflicts: Sequence[Judged],
    expected: Mapping[str, int | None],
    counters: Sequence[CounterRule],
    case: Case,
) -> list[Difference]:
    kinds = Counter(str(judged.conflict) for judged in conflicts)
    have = {**kinds, "conflicts": len(conflicts)}
    found = list[Difference]()
    for name, value in expected.items():
        cluster, _, bare = name.rpartition(".")
        if cluster and cluster != case["detecting_cluster"]:
            bare = name
        rule = next((c for c in counters if fnmatchcase(bare.lower(), c.name)), None)
        if rule is None:
            raise VectorError(f"{name} is an unknown counter")
        if rule.counts:
            found += _count(name, value, have.get(rule.counts, 0))
    return found
