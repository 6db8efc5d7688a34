"""What earlier configurations said of a table, and what its rows in the state forbid to change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streaming.config.cluster import TableConfig
from streaming.core.model.function import parse_function
from streaming.core.model.table import ColumnType, keeps_values
from streaming.core.model.values import json_text


@dataclass(frozen=True, slots=True)
class KnownTable:
    """A table that was configured once; `columns`: each as the last that had it typed it.

    `left_out`: those that a later configuration of the table did not have.
    """

    key: tuple[str, ...]
    columns: Mapping[str, str]
    left_out: frozenset[str] = frozenset()


def known_tables(documents: Iterable[Mapping[str, Any]]) -> dict[str, KnownTable]:
    """Table -> what these stored configurations said of it, the oldest first.

    A column that was removed counts: the rows may still have its values.
    """
    found = dict[str, KnownTable]()
    for document in documents:
        for one in document["tables"]:
            key, columns = tuple(one["key"]), one["columns"]
            before = found.get(one["name"], KnownTable(key, {}))
            left_out = before.left_out | before.columns.keys() - columns.keys()
            found[one["name"]] = KnownTable(key, {**before.columns, **columns}, left_out)
    return found


def table_faults(tables: Iterable[TableConfig], known: Mapping[str, KnownTable]) -> Iterator[str]:
    """One sentence for each key and type under which the rows in the state would be lost."""
    for index, table in enumerate(tables):
        if table.name in known:
            yield from _key_faults(index, table, known[table.name])
            yield from _type_faults(index, table, known[table.name])


def table_warnings(tables: Iterable[TableConfig], known: Mapping[str, KnownTable]) -> Iterator[str]:
    """One sentence for each function that compares what the rows in the state do not have."""
    for table in tables:
        column = parse_function(table.function).column
        if table.name in known and column and column not in known[table.name].columns:
            yield (
                f"table {table.name}: {table.function} compares column {column}, which the rows in"
                " the state do not have: it counts as the smallest value there until they are"
                " written again, and a change that lacks it is quarantined as `before`: start every"
                " agent with this configuration"
            )


def _key_faults(index: int, table: TableConfig, known: KnownTable) -> Iterator[str]:
    if table.key != known.key:
        yield (
            f"tables[{index}].key = [{', '.join(table.key)}]: the state finds the rows of table"
            f" {table.name} by its key ({', '.join(known.key)}), and would find none of them: set"
            f" key = {json_text(list(known.key))}, or replicate the rows as a table of another name"
        )


def _type_faults(index: int, table: TableConfig, known: KnownTable) -> Iterator[str]:
    for name, kind in table.columns.items():
        old = known.columns.get(name, kind.value)
        if old == kind.value or (name not in table.key and _keeps(old, kind)):
            continue
        how = (
            "replicate the rows as a table of another name"
            if name in table.key
            else f"for {kind.value} add a column of another name, copy the values into it at one"
            f" replica, and remove {name} when `slackwater level` says yes"
        )
        yield (
            f"tables[{index}].columns.{name} = {kind.value!r}: the state has the rows of table"
            f" {table.name} with column {name} as {old}, and these values are not written as"
            f" {kind.value}: set {name} = {old!r}; {how}"
        )


def _keeps(old: str, new: ColumnType) -> bool:
    """Return whether the values are kept; a type of a later version is not known."""
    return old in list(ColumnType) and keeps_values(ColumnType(old), new)
