"""Rows that are out of the way of others for a moment, so that these can take their unique values.

A row is kept whole in a temporary table, so that nothing of it is lost: columns that are not
configured, and its rowid (but of a table with as many columns as SQLite allows). Where nobody
notices it is deleted and inserted again. In a table with triggers of the user's it stays, and its
unique columns are lent values that no row has: a trigger that deletes what belongs to a deleted row
must not fire.
"""
# ruff: noqa: S608 every name is quoted, every expression is our own

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from connectors.sqlite import sql
from connectors.sqlite.install.system import PREFIX
from connectors.sqlite.schema.catalog import Catalog, Unique
from connectors.sqlite.schema.conflict_clauses import UNIQUE
from connectors.sqlite.values.columns import NUMBERS, Affinity
from connectors.sqlite.values.spellings import Stored
from streaming.core.model.table import Table

ROWID = f"{PREFIX}rowid"
"""The column that keeps a rowid which no column aliases."""


@dataclass(frozen=True, slots=True)
class DisplacedRows:
    """The taken rows of one table; `lent`: column -> the SQL of the value that it is lent.

    `where`: the condition on the key, whose values are the first parameters. `partial`: the
    condition on the rows for which a unique constraint holds, if not for all. `kept`: what is kept
    of a row, by name; `stays`: the row itself is not deleted.
    """

    table: str
    where: str
    uniques: tuple[Unique, ...]
    partial: Mapping[Unique, str]
    kept: Mapping[str, str]
    lent: Mapping[str, str]
    stays: bool

    @property
    def _taken(self) -> str:
        return f"temp.{sql.name(f'{PREFIX}taken_{self.table}')}"

    @property
    def _table(self) -> str:
        return f"main.{sql.name(self.table)}"

    def open(self, connection: sqlite3.Connection) -> None:
        """Make room for rows; in a transaction, and followed by close."""
        connection.execute(
            f"CREATE TEMP TABLE {self._taken.removeprefix('temp.')} AS {self._selected('0')}"
        )

    def close(self, connection: sqlite3.Connection) -> None:
        """Forget the rows."""
        connection.execute(f"DROP TABLE {self._taken}")

    def take_out(self, connection: sqlite3.Connection, key: Sequence[Stored]) -> bool:
        """Take out the row of this key; False: there is none."""
        connection.execute(f"DELETE FROM {self._taken} WHERE {self.where}", key)
        found = connection.execute(f"INSERT INTO {self._taken} {self._selected(self.where)}", key)
        if not found.rowcount:
            return False
        if not self.stays:
            connection.execute(f"DELETE FROM {self._table} WHERE {self.where}", key)
        elif self.lent:
            sets = ", ".join(f"{sql.name(name)} = {value}" for name, value in self.lent.items())
            connection.execute(f"UPDATE {self._table} SET {sets} WHERE {self.where}", key)
        return True

    def put_in(
        self, connection: sqlite3.Connection, values: Sequence[Stored], new: Mapping[str, str]
    ) -> bool:
        """Put the row of a key in again, with other values in some columns; False: it is not here.

        `values`: of the key, and those of the columns in `new`, by the SQL that names each.
        """
        names = [
            name for name in self.kept if not self.stays or name in self.lent.keys() | new.keys()
        ]
        found = ", ".join(new.get(name, sql.name(name)) for name in names)
        row = f"SELECT {found} FROM {self._taken} WHERE {self.where}"
        columns = ", ".join(sql.name(self.kept[name]) for name in names)
        if not self.stays:
            statement = f"INSERT INTO {self._table} ({columns}) {row}"
        elif names:
            is_here = f"EXISTS (SELECT 1 FROM {self._taken} WHERE {self.where})"
            statement = (
                f"UPDATE {self._table} SET ({columns}) = ({row}) WHERE {self.where} AND {is_here}"
            )
        else:
            return False
        return connection.execute(statement, values).rowcount > 0

    def in_way(self, text: str, new: Mapping[str, str], given: Mapping[str, str]) -> str | None:
        """The condition on a row x that it has the unique values for which this one was refused.

        `text`: how SQLite refused it; `new`, `given`: the SQL of the values that it gets, where it
        was taken out, and where it is new. None: it is not known.
        """
        for unique in self.uniques:
            named = ", ".join(f"{self.table}.{part.name}" for part in unique)
            if text.lower() == f"{UNIQUE}: {named}".lower() and all(
                p.name in self.kept for p in unique
            ):
                equal = " AND ".join(
                    f"x.{sql.name(part.name)} = {self._wanted(part.name, new, given)}"
                    f" COLLATE {sql.name(part.collation)}"
                    for part in unique
                )
                return f"{equal} AND ({self.partial.get(unique, '1')})"
        return None

    def _wanted(self, name: str, new: Mapping[str, str], given: Mapping[str, str]) -> str:
        row = f"SELECT {new.get(name, sql.name(name))} FROM {self._taken} WHERE {self.where}"
        return f"coalesce(({row}), {given.get(name, 'NULL')})"

    def _selected(self, where: str) -> str:
        columns = ", ".join(f"{sql.name(real)} AS {sql.name(n)}" for n, real in self.kept.items())
        return f"SELECT {columns} FROM {self._table} WHERE {where}"


def displaced_rows(
    table: Table, catalog: Catalog, where: str, *, has_triggers: bool, most_columns: int
) -> DisplacedRows:
    """The taken rows of a table of this catalogue; `most_columns`: of a table of this SQLite."""
    kept = {name: name for name, column in catalog.columns.items() if not column.generated}
    if catalog.rowid is not None and not has_triggers and len(kept) < most_columns:
        kept[ROWID] = catalog.rowid
    return DisplacedRows(
        table.name,
        where,
        catalog.uniques,
        catalog.partial,
        kept,
        dict(_lent(table, catalog)),
        has_triggers,
    )


def _lent(table: Table, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """A column of each unique constraint but the key's, with a value that is nobody else's."""
    for unique in catalog.uniques:
        columns = [catalog.columns[name] for name in _free(unique, table)]
        for column in sorted(columns, key=lambda one: one.not_null or one.key_place > 0)[:1]:
            is_null = not (column.not_null or column.key_place)
            yield column.name, "NULL" if is_null else _random(column.affinity)


def _free(unique: Unique, table: Table) -> list[str]:
    names = [part.name for part in unique]
    is_key = set(names) == set(table.key)
    return [] if is_key else [n for n in names if n in table.columns and n not in table.key]


def _random(affinity: Affinity) -> str:
    if affinity in NUMBERS:
        return "random()"
    return "lower(hex(randomblob(16)))" if affinity is Affinity.TEXT else "randomblob(16)"
