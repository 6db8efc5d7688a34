"""How the constraints and triggers of one table differ between replicas."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from streaming.core.model.table import Table
from streaming.core.schema.columns import Found, Unsent
from streaming.core.schema.difference import (
    ABSENT,
    EVERYWHERE,
    SchemaDifference,
    comparable,
    differ,
    names_text,
    there_or_not,
)
from streaming.core.schema.document import SchemaReference, SchemaTable, SchemaTrigger, SchemaUnique
from streaming.core.schema.limits import without_limiting_checks

_WORDS = re.compile(r"\w+")
"""What may be names in a condition."""


def constraint_differences(
    table: Table,
    found: Found,
    alike: Sequence[Found],
    unsent: Unsent,
    limiting: Collection[str],
) -> Iterator[SchemaDifference]:
    """What is unique, checked, referred to or triggered at some replicas only.

    `alike`: the same tables, those of each product by themselves. A replica may lack what is
    declared on a column that is not sent to it. `limiting`: the replicas whose databases can
    declare a limit; a condition that says one at another is compared with the limits.
    """
    yield from _key(table, found)
    yield from _uniques(table, found, unsent)
    for one in alike:
        yield from _checks(table, one, unsent)
    if len(alike) > 1:
        yield from _checks_apart(table, without_limiting_checks(found, limiting))
    yield from _references(table, found, unsent)
    yield from _triggers(table, found, alike)
    for one in alike:
        yield from _options(table, one)


def _is_key(unique: SchemaUnique, table: Table) -> bool:
    """Return whether this is the table's key, by bytes."""
    return _is_on_key(unique, table) and not any(unique.collations)


def _is_on_key(unique: SchemaUnique, table: Table) -> bool:
    columns = {name.lower() for name in unique.columns}
    return columns == {name.lower() for name in table.key} and not unique.where


def _key(table: Table, found: Found) -> Iterator[SchemaDifference]:
    having = [r for r, one in found.items() if any(_is_key(u, table) for u in one.uniques)]
    lack = [replica for replica in found if replica not in having]
    if lack:
        yield SchemaDifference(
            table.name,
            f"key ({', '.join(table.key)})",
            {one: "unique" if one in having else "not unique by bytes" for one in found},
            f"rows are replicated by it, and the agent of {names_text(lack)} does not start",
            "make it the primary key or UNIQUE NOT NULL there, without COLLATE",
        )


Part = TypeVar("Part", SchemaUnique, SchemaReference, SchemaTrigger, str)


def _side_by_side(
    found: Found, parts: Callable[[SchemaTable], Iterable[Part]], name_of: Callable[[Part], str]
) -> Iterator[tuple[dict[str, Part], list[str]]]:
    """For each part of a table: replica -> the part, and the replicas that lack it."""
    listed = {replica: {name_of(one): one for one in parts(of)} for replica, of in found.items()}
    for name in dict.fromkeys(name for of in listed.values() for name in of):
        having = {replica: of[name] for replica, of in listed.items() if name in of}
        yield having, [replica for replica in found if replica not in having]


def _first(having: Mapping[str, Part]) -> Part:
    return next(iter(having.values()))


def _without(lack: Iterable[str], columns: Iterable[str], unsent: Unsent) -> list[str]:
    """Those of these replicas that are sent all of these columns."""
    names = {*columns}
    return [replica for replica in lack if not names & unsent.get(replica, frozenset())]


def _uniques(table: Table, found: Found, unsent: Unsent) -> Iterator[SchemaDifference]:
    for having, missing in _side_by_side(found, _strictest_last, _unique_name):
        lack = _without(missing, _first(having).columns, unsent)
        if lack and not _is_on_key(_first(having), table):
            yield _refused(table, _first(having).text, found, having, lack)
        collations = {replica: _collations(one) for replica, one in having.items()}
        if differ(collations.values()):
            yield SchemaDifference(
                table.name,
                f"{_first(having).text}, collation",
                collations,
                "values that one collation takes for equal are two rows under the other: such a"
                " row is accepted at one replica and refused at another, and `slackwater status`"
                " then lists it as differing",
                EVERYWHERE,
            )


def _strictest_last(of: SchemaTable) -> list[SchemaUnique]:
    """Those of a table: of two on the same columns the one with collations counts."""
    return sorted(of.uniques, key=lambda one: any(one.collations))


def _unique_name(one: SchemaUnique) -> str:
    return f"{sorted(map(comparable, one.columns))} {comparable(one.where or '')}"


def _collations(one: SchemaUnique) -> str:
    pairs = sorted(zip(one.columns, one.collations, strict=False))
    return ", ".join(collation or "by bytes" for _, collation in pairs) or "by bytes"


def _checks(table: Table, found: Found, unsent: Unsent) -> Iterator[SchemaDifference]:
    for having, missing in _side_by_side(found, lambda of: of.checks, comparable):
        lack = _without(missing, _WORDS.findall(_first(having)), unsent)
        if lack:
            yield _refused(table, f"CHECK {_first(having)}", found, having, lack)


def _checks_apart(table: Table, found: Found) -> Iterator[SchemaDifference]:
    """The conditions of databases of several products, which spell one condition differently."""
    shown = {r: ", ".join(f"CHECK {c}" for c in one.checks) or "none" for r, one in found.items()}
    if any(one.checks for one in found.values()):
        yield SchemaDifference(
            table.name,
            "conditions",
            shown,
            "databases of several products spell them differently, so they are not compared; a row"
            " that one accepts may be refused at another",
            "look whether they say the same",
            matters=len({bool(one.checks) for one in found.values()}) > 1,
        )


def _refused(
    table: Table, subject: str, found: Found, having: Collection[str], lack: Collection[str]
) -> SchemaDifference:
    return SchemaDifference(
        table.name,
        subject,
        there_or_not(found, having),
        f"a row that {names_text(lack)} accepts may be refused at {names_text(having)}, and"
        " `slackwater status` then lists it as differing",
        "declare it at every replica, or at none",
    )


def _references(table: Table, found: Found, unsent: Unsent) -> Iterator[SchemaDifference]:
    for having, missing in _side_by_side(
        found, lambda of: of.references, lambda one: comparable(one.text)
    ):
        lack, text = _without(missing, _first(having).columns, unsent), _first(having).text
        if lack:
            yield SchemaDifference(
                table.name,
                text,
                there_or_not(found, having),
                f"a write without its parent is refused at {names_text(having)} and accepted"
                f" elsewhere; agents apply rows without checking it, so such a row stands at"
                f" {names_text(having)} too",
                "declare it at every replica, or at none",
            )
        actions = {
            replica: f"ON DELETE {one.on_delete} ON UPDATE {one.on_update}"
            for replica, one in having.items()
        }
        if differ(actions.values()):
            yield SchemaDifference(
                table.name,
                f"{text}, actions",
                actions,
                "a parent that is deleted or changed takes its children along, or not, depending"
                " on where it is written",
                EVERYWHERE,
            )


def _triggers(table: Table, found: Found, alike: Sequence[Found]) -> Iterator[SchemaDifference]:
    for having, lack in _side_by_side(found, lambda of: of.triggers, lambda one: one.name.lower()):
        for_applied = [replica for replica, trigger in having.items() if trigger.applies]
        fires = f", at {names_text(for_applied)} for applied rows too" if for_applied else ""
        shown = {r: f"{one.event}, text {one.digest[:8]}" for r, one in having.items()}
        if lack or any(differ(shown[r] for r in one if r in shown) for one in alike):
            yield SchemaDifference(
                table.name,
                f"trigger {_first(having).name}",
                shown | dict.fromkeys(lack, ABSENT),
                f"what it does is not done everywhere{fires}: what it writes differs between"
                " replicas, and a row that it does not let in is missing at one",
                "create the same trigger at every replica, or at none",
            )


def _options(table: Table, found: Found) -> Iterator[SchemaDifference]:
    shown = {replica: ", ".join(one.options) or "none" for replica, one in found.items()}
    if differ(shown.values()):
        yield SchemaDifference(
            table.name,
            "options",
            shown,
            "a STRICT table refuses values of another type from its own applications; rows of the"
            " configured types are stored alike",
            "nothing needs to be done",
            matters=False,
        )
