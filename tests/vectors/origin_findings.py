"""What the origin's own rules make of a case, at every moment at which it expects something."""

from collections.abc import Iterable, Mapping
from typing import Any

from streaming.core.batch.counters import (
    CONFLICT_COMMIT,
    DELETE_DELETE,
    FUNCTION,
    ROW_CONFLICT,
    ROW_REJECT,
    TRANSACTION_REJECT,
)
from streaming.core.model.change import RowKey
from streaming.core.model.function import COLUMN_RULES, ConflictRule
from tests.vectors.findings import Findings, Recorded, Unit
from tests.vectors.functions import NO_FUNCTION, name_for
from tests.vectors.origin import (
    Clusters,
    Event,
    Row,
    exception,
    is_delete_on_nothing,
    mirrored,
)
from tests.vectors.outcome import Case
from tests.vectors.steps import row_of, tables

BY_EPOCH = (ConflictRule.EPOCH, ConflictRule.EPOCH_TRANS, ConflictRule.EPOCH2)


def origin_findings(case: Case) -> dict[int, Findings]:
    """By step: behind each sync, and at the end."""
    detects_a, case_tables = case["detecting_cluster"] == "A", tables(case)
    functions = {name: table.function for name, table in case_tables.items()}
    rules = {name: function.rule for name, function in functions.items()}
    clusters = Clusters.start(
        {name: _name(case, name, rule) for name, rule in rules.items()},
        case["setup_rows"],
        {name: function.column for name, function in functions.items() if function.column},
    )
    found = dict[int, Findings]()
    for number, step in enumerate(case["steps"]):
        clusters.take(number, step if detects_a else mirrored(step))
        if "sync" in step:
            found[number] = _findings(clusters, rules, detects_a=detects_a)
    found[len(case["steps"])] = _findings(clusters, rules, detects_a=detects_a)
    return found


def _name(case: Case, table: str, rule: ConflictRule) -> str | None:
    """The function's name as the model knows it: without a column, and whole epochs for TRANS."""
    if rule in COLUMN_RULES or rule in (ConflictRule.EPOCH_TRANS, ConflictRule.EPOCH2):
        return f"NDB${rule.value}"
    name = name_for(case, table)
    return None if name == NO_FUNCTION else name


def _findings(
    clusters: Clusters, rules: Mapping[str, ConflictRule], *, detects_a: bool
) -> Findings:
    here = {row: stored.image for row, stored in clusters.a.items()}
    rows = {"A": here, "B": clusters.b} if detects_a else {"A": clusters.b, "B": here}
    return Findings(
        {name: {_key(row): image for row, image in of.items()} for name, of in rows.items()},
        frozenset(event.steps for event in clusters.conflicts),
        tuple(
            Recorded(_key(event.row), event.steps, exception(cause, event))
            for cause, event in clusters.exceptions
        ),
        _counters(clusters, rules),
    )


def _counters(clusters: Clusters, rules: Mapping[str, ConflictRule]) -> dict[str, frozenset[Unit]]:
    found: dict[str, set[Unit]] = {}
    for event in clusters.conflicts:
        rule = rules[event.row[0]]
        found.setdefault(FUNCTION + rule.lower(), set()).add(event.steps)
        if rule is ConflictRule.EPOCH_TRANS:
            found.setdefault(ROW_CONFLICT, set()).add(event.steps)
    for cause, event in clusters.exceptions:
        if is_delete_on_nothing(cause, event) and rules[event.row[0]] in BY_EPOCH:
            found.setdefault(DELETE_DELETE, set()).add(event.steps)
    for transaction in clusters.rejected:
        found.setdefault(ROW_REJECT, set()).update(event.steps for event in transaction)
    found[TRANSACTION_REJECT] = {_together(each) for each in clusters.rejected}
    found[CONFLICT_COMMIT] = {_together(each) for each in clusters.rejected_together}
    return {name: frozenset(units) for name, units in found.items()}


def _together(events: Iterable[Event]) -> Unit:
    return frozenset[int]().union(*(event.steps for event in events))


def _key(row: Row) -> RowKey:
    table, key = row
    named: dict[str, Any] = {"table": table, "key": list(key) if isinstance(key, tuple) else key}
    return row_of(named)
