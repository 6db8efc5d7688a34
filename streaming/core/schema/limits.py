"""How the limits of a column differ, where not every database can declare one.

A database that declares none can say the same by a condition, which then is compared instead.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from streaming.core.model.table import Table
from streaming.core.schema.difference import (
    EVERYWHERE,
    SchemaDifference,
    comparable,
    differ,
    names_text,
)
from streaming.core.schema.document import SchemaColumn, SchemaTable

_LENGTH = re.compile(r"(?:character varying|varchar|character|char)\((\d+)\)", re.IGNORECASE)
_DIGITS = re.compile(r"(?:numeric|decimal)\((\d+),(\d+)\)", re.IGNORECASE)
_EXACT_DIGITS = 15
"""So many digits a binary floating-point number keeps; more cannot be rounded by a condition."""


def condition_of(column: str, limit: str) -> str | None:
    """The condition that refuses what a limit refuses; None: nothing is known of such a limit."""
    if found := _LENGTH.fullmatch(limit):
        return f'length("{column}") <= {found[1]}'
    found = _DIGITS.fullmatch(limit)
    if found and int(found[1]) <= _EXACT_DIGITS:
        whole, scale = int(found[1]) - int(found[2]), int(found[2])
        return f'abs("{column}") < 1e{whole} AND "{column}" + 0 = round("{column}", {scale})'
    return None


def _normal(condition: str) -> str:
    return comparable(condition.replace('"', "")).strip("()")


def limiting_check(column: str, checks: Sequence[str]) -> str | None:
    """The first of these conditions that is all that a limit of the column says."""
    name = re.escape(_normal(column))
    forms = rf"length\({name}\)<=\d+|abs\({name}\)<1e-?\d+and{name}\+0=round\({name},\d+"
    return next((one for one in checks if re.fullmatch(forms, _normal(one))), None)


def limit_difference(
    table: Table,
    name: str,
    columns: Mapping[str, SchemaColumn],
    found: Mapping[str, SchemaTable],
    limiting: Collection[str],
) -> SchemaDifference | None:
    """What follows where a column is limited at some replicas only, or in another way.

    `limiting`: the replicas whose databases can declare a limit. That another one does not is no
    fault of anybody's, so it does not matter; what both say has to be the same.
    """
    limits = {r: one.limit for r, one in columns.items() if one.limit}
    if not limits:
        return None
    checks = {
        r: check
        for r in columns
        if r not in limiting and (check := limiting_check(name, found[r].checks))
    }
    declared = {r: limits.get(r, "") for r in columns if r in limiting}
    said = {r: condition_of(name, limit) or limit for r, limit in declared.items()} | checks
    silent = [r for r in columns if r not in said]
    matters = differ(map(_normal, said.values()))
    if not matters and not silent:
        return None
    shown = limits | {r: f"CHECK {check}" for r, check in checks.items()}
    return SchemaDifference(
        table.name,
        f"column {name}, limit",
        {r: shown.get(r, "no limit") for r in columns},
        "a value that does not fit there is accepted where the column has more room, refused where"
        " it has less, and `slackwater status` lists the row as differing",
        EVERYWHERE if matters else _remedy(name, next(iter(limits.values())), silent),
        matters=matters,
    )


def _remedy(name: str, limit: str, silent: Sequence[str]) -> str:
    """What to do where a database cannot declare the limit."""
    condition = condition_of(name, limit)
    where = names_text(silent)
    if condition is None:
        return f"{where} cannot declare it: see in the application that no other value is written"
    return f"{where} cannot declare it: say it there by CHECK ({condition})"


def without_limiting_checks(
    found: Mapping[str, SchemaTable], limiting: Collection[str]
) -> dict[str, SchemaTable]:
    """The tables without the conditions that are compared as limits."""
    limited = {column.name for one in found.values() for column in one.columns if column.limit}
    return {
        r: one if r in limiting else replace(one, checks=_without(one.checks, limited))
        for r, one in found.items()
    }


def _without(checks: Sequence[str], limited: Collection[str]) -> tuple[str, ...]:
    said = {limiting_check(name, checks) for name in limited}
    return tuple(one for one in checks if one not in said)
