"""What an agreement sends of the columns of its tables, where it does not send all as they are."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Protocol

from streaming.config.masking import column_masks
from streaming.config.named_tables import by_table
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table


class ColumnSettings(Protocol):
    """What an agreement says of columns, each by the name of a table or a pattern."""

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Which columns are sent."""

    @property
    def masks(self) -> Mapping[str, Mapping[str, str]]:
        """Column -> what is sent in place of its value."""


def column_filters(
    agreement: ColumnSettings, tables: Mapping[str, Table], writes: Collection[str], key: str | None
) -> dict[str, ColumnFilter]:
    """Table -> what is sent of it, of those that lose a column; ConfigError: it cannot be so.

    `tables`: those of the agreement. `writes`: those that its consumer may write. `key`: of hashes.
    """
    named, masks = by_table(agreement.columns, tables), by_table(agreement.masks, tables)
    found = dict[str, ColumnFilter]()
    for name in [name for name in tables if name in named or name in masks]:
        columns = named.get(name, tuple(tables[name].columns))
        for fault in _faults(tables[name], columns, is_written=name in writes):
            raise ConfigError(f"columns: {fault}")
        masked = column_masks(tables[name], masks.get(name, {}), key)
        for fault in _mask_faults(tables[name], columns, masked, is_written=name in writes):
            raise ConfigError(f"masks: {fault}")
        if masked or not tables[name].columns.keys() <= {*columns}:
            found[name] = ColumnFilter(frozenset(columns), masked)
    return found


def _mask_faults(
    table: Table, columns: Sequence[str], masks: Collection[str], *, is_written: bool
) -> Iterator[str]:
    if unsent := [name for name in masks if name not in columns]:
        yield (
            f"{unsent[0]} of table {table.name} is masked and not sent: take it out of `masks`, or"
            " list it in `columns`"
        )
    if masks and is_written:
        yield (
            f"table {table.name} is sent masked, so its consumer may not write it: leave it out of"
            " what the replica `writes`"
        )


def _faults(table: Table, columns: Sequence[str], *, is_written: bool) -> Iterator[str]:
    for column in columns:
        if column not in table.columns:
            near = get_close_matches(column, table.columns) or table.columns
            yield (f"{column!r} is no column of table {table.name}: use some of {', '.join(near)}")
    if missing := [column for column in table.key if column not in columns]:
        yield (
            f"{missing[0]} is a key column of table {table.name}, so it is sent with every row: add"
            " it"
        )
    compared = table.function.column
    if is_written and compared is not None and compared not in columns:
        yield (
            f"{compared} of table {table.name} is compared by its function {table.function}, and a"
            " change that lacks it is quarantined: add it, or leave the table out of what its"
            " consumer `writes`"
        )


def as_sent(table: Table, known: ColumnFilter | None) -> Table:
    """The table as the consumer of an agreement has it."""
    if known is None:
        return table
    kept = {name: kind for name, kind in table.columns.items() if name in known.columns}
    return replace(table, columns=kept)
