"""Columns that a table got: whether anybody else has to be told what is in them.

A column that is new has its default in every row, which the other databases give it too.
"""
# ruff: noqa: S608 every name is quoted

from collections.abc import Iterable

from connectors.postgres.apply.rows import RowWriter
from connectors.postgres.log.captured_tables import TableForm, is_rewritten
from connectors.postgres.schema.catalog import default_of
from connectors.postgres.sql import Session, name


def is_known(session: Session, writer: RowWriter, before: TableForm | None, now: TableForm) -> bool:
    """Return whether a table only got columns, and all of its rows have their defaults there."""
    columns = _added(before, now)
    return columns is not None and not _has_own_values(session, writer, columns)


def _added(before: TableForm | None, now: TableForm) -> list[str] | None:
    """The columns that were not replicated, if that is all that is new of a table; else None."""
    if before is None or before.entry != now.entry:
        return None
    both = now.columns.keys() & before.columns.keys()
    is_same = all(
        before.places[one] == now.places[one]
        and not is_rewritten(before.columns[one], now.columns[one])
        for one in both
    )
    return [name for name in now.columns if name not in both] if is_same else None


def _has_own_values(session: Session, writer: RowWriter, columns: Iterable[str]) -> bool:
    """Return whether a row has a value in these columns that is not their default.

    Nobody else has it. A default that is no constant may have given each row another one.
    """
    for column in columns:
        default = default_of(session, writer.server, column)
        if default is not None and "(" in default:
            return True
        other = f"{name(column)} IS DISTINCT FROM {default or 'NULL'}"
        one = f"SELECT EXISTS (SELECT 1 FROM {writer.server.sql} WHERE {other})"
        if (session.execute(one.encode()).fetchone() or (True,))[0]:
            return True
    return False
