"""The columns of its tables that an agreement sends, where it does not send all."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from streaming.config.named_tables import by_table
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table


def column_filters(
    named: Mapping[str, Sequence[str]], tables: Mapping[str, Table], writes: Collection[str]
) -> dict[str, ColumnFilter]:
    """Table -> what is sent of it, of those that lose a column; ConfigError: it cannot be so.

    `named`: table, or a pattern -> its columns. `tables`: those of the agreement. `writes`: those
    that its consumer may write.
    """
    found = dict[str, ColumnFilter]()
    for name, columns in by_table(named, tables).items():
        _check(tables[name], columns, is_written=name in writes)
        if not tables[name].columns.keys() <= {*columns}:
            found[name] = ColumnFilter(frozenset(columns))
    return found


def _check(table: Table, columns: Sequence[str], *, is_written: bool) -> None:
    for column in columns:
        if column not in table.columns:
            near = get_close_matches(column, table.columns) or table.columns
            raise ConfigError(
                f"{column!r} is no column of table {table.name}: use some of {', '.join(near)}"
            )
    if missing := [column for column in table.key if column not in columns]:
        raise ConfigError(
            f"{missing[0]} is a key column of table {table.name}, so it is sent with every row: add"
            " it"
        )
    compared = table.function.column
    if is_written and compared is not None and compared not in columns:
        raise ConfigError(
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
