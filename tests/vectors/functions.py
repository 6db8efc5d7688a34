"""How the origin names its conflict functions, and which of the hub's each of them is."""

import re
from collections.abc import Mapping
from dataclasses import replace

from streaming.core.model.function import COLUMN_RULES, ConflictFunction, ConflictRule
from streaming.core.model.table import ColumnType
from tests.vectors.outcome import Case, VectorError

NO_FUNCTION = ""
"""Of a table whose changes are all applied as they come."""

_TEXT = re.compile(r"NDB\$(?P<rule>\w+)(?:\((?P<argument>\w*)\))?")
_RULES = {
    rule.value: rule
    for rule in (
        ConflictRule.EPOCH,
        ConflictRule.EPOCH_TRANS,
        ConflictRule.EPOCH2,
        *sorted(COLUMN_RULES),
    )
}


def functions(case: Case) -> set[str]:
    """The conflict functions of all of the case's tables; none at all is an empty text."""
    return {*_of_case(case), *(f or NO_FUNCTION for f in case.get("table_functions", {}).values())}


def is_known(name: str) -> bool:
    """Return whether the hub has the function of this name at the origin."""
    return name == NO_FUNCTION or _parse(name) is not None


def name_for(case: Case, table: str) -> str:
    """The function of a table: its own, or else the only one of the case."""
    own, of_case = case.get("table_functions", {}), _of_case(case)
    if table not in own and len(of_case) != 1:
        raise VectorError(f"table {table} has none of the functions {', '.join(of_case)}")
    return own.get(table, of_case[0]) or NO_FUNCTION


def function_for(name: str, columns: Mapping[str, ColumnType]) -> ConflictFunction:
    """The hub's function; the column that is not named is X, or else the only one of integers."""
    if name == NO_FUNCTION:
        return ConflictFunction(ConflictRule.PASS)
    function = _parse(name)
    if function is None:
        raise VectorError(f"unknown conflict function {name}")
    if function.rule not in COLUMN_RULES:
        return function if function.rule is ConflictRule.EPOCH else ConflictFunction(function.rule)
    return replace(function, argument=function.argument or _compared(name, columns))


def _compared(name: str, columns: Mapping[str, ColumnType]) -> str:
    numbers = [c for c, kind in columns.items() if kind is not ColumnType.TEXT and c[0] != "#"]
    if "X" not in numbers and len(numbers) != 1:
        raise VectorError(f"{name} names no column, and there is not one of integers: {numbers}")
    return "X" if "X" in numbers else numbers[0]


def _parse(name: str) -> ConflictFunction | None:
    found = _TEXT.fullmatch(name)
    rule = _RULES.get(found["rule"]) if found else None
    return ConflictFunction(rule, found["argument"] or None) if found and rule else None


def _of_case(case: Case) -> list[str]:
    return str(case["function"] or NO_FUNCTION).split("|")
