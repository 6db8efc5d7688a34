"""How a case of two clusters is written: rows, writes and syncs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.core.model.change import Op, RowKey
from streaming.core.model.table import ColumnType, Table
from tests.vectors.functions import function_for, name_for
from tests.vectors.outcome import Case, VectorError

CLUSTERS = {"A": 1, "B": 2}
OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)


@dataclass(frozen=True, slots=True)
class Write:
    """One row operation; writes of one cluster and `transaction` between syncs are one."""

    cluster: str
    op: Op
    row: RowKey
    values: Mapping[str, object] | None
    transaction: object


@dataclass(frozen=True, slots=True)
class Sync:
    """All that stands at `source` goes to `target`; `expect` holds once it has."""

    source: str
    target: str
    expect: Mapping[str, Any]


def steps(case: Case) -> list[Write | Sync]:
    """The case's steps; VectorError for one that is not understood whole."""
    return [_sync(step) if "sync" in step else _write(step) for step in case["steps"]]


def _sync(step: Mapping[str, Any]) -> Sync:
    source, _, target = str(step["sync"]).partition("->")
    if {source, target} != CLUSTERS.keys():
        raise VectorError(f"{step['sync']!r} is not a sync of two clusters: expected A->B or B->A")
    expect = {k.removeprefix("expect_"): v for k, v in step.items() if k.startswith("expect_")}
    _only(step, {"sync", *(f"expect_{name}" for name in expect)})
    return Sync(source, target, {_FINAL.get(name, name): each for name, each in expect.items()})


_FINAL = {f"rows_{name}": f"final_rows_{name}" for name in CLUSTERS}


def _write(step: Mapping[str, Any]) -> Write:
    _only(step, {"cluster", "op", "table", "key", "values", "txn"})
    if step["cluster"] not in CLUSTERS or step["op"] not in OPS:
        raise VectorError(f"{step} is not a write: the cluster or the operation is unknown")
    return Write(step["cluster"], Op(step["op"]), row_of(step), step["values"], step.get("txn"))


def _only(step: Mapping[str, Any], known: set[str]) -> None:
    unknown = step.keys() - known - {"note", "notes"}
    if unknown:
        raise VectorError(f"{step} has unknown fields: {', '.join(sorted(unknown))}")


def segments(all_steps: Sequence[Write | Sync]) -> Iterator[list[Write | Sync]]:
    """The steps up to each sync, which ends its segment; none is empty."""
    segment = list[Write | Sync]()
    for step in all_steps:
        segment.append(step)
        if isinstance(step, Sync):
            yield segment
            segment = []
    if segment:
        yield segment


def transactions(segment: Sequence[Write | Sync]) -> list[list[Write]]:
    """Writes by cluster and transaction, in the order of the commits."""
    found: dict[object, list[Write]] = {}
    for number, step in enumerate(segment):
        if isinstance(step, Write):
            key = (step.cluster, number if step.transaction is None else str(step.transaction))
            found[key] = [*found.pop(key, []), step]
    return list(found.values())


def row_of(written: Mapping[str, Any]) -> RowKey:
    """The row that is meant; a key of several columns is a list."""
    key = written["key"]
    parts = key if isinstance(key, list) else [key]
    values = {f"#{number}": part for number, part in enumerate(parts, start=1)}
    return written["table"], json.dumps(values, separators=(",", ":"), ensure_ascii=False)


def image_of(written: Mapping[str, Any]) -> dict[str, object]:
    """The row with its key columns."""
    return {**json.loads(row_of(written)[1]), **(written["values"] or {})}


def tables(case: Case) -> dict[str, Table]:
    """Every table that is written, with the columns that are seen and its conflict function."""
    seen: dict[str, dict[str, list[object]]] = {}
    for written in [*case["setup_rows"], *(s for s in case["steps"] if "sync" not in s)]:
        columns = seen.setdefault(written["table"], {})
        for column, value in image_of(written).items():
            columns.setdefault(column, []).append(value)
    return {table: _table(case, table, columns) for table, columns in seen.items()}


def _table(case: Case, name: str, seen: Mapping[str, list[object]]) -> Table:
    columns = {column: _type(seen[column]) for column in sorted(seen)}
    function = function_for(name_for(case, name), columns)
    return Table(name, tuple(c for c in columns if c.startswith("#")), columns, function)


def _type(values: Sequence[object]) -> ColumnType:
    """The type that values as they are written in JSON can be compared by."""
    there = [v for v in values if v is not None]
    numbers = [v for v in there if isinstance(v, int) and not isinstance(v, bool)]
    if not there or len(numbers) < len(there):
        return ColumnType.TEXT
    is_small = all(-(2**31) <= v < 2**31 for v in numbers)
    return ColumnType.INT32 if is_small else ColumnType.FLOAT64
