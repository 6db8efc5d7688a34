"""The rows of a table in PostgreSQL for a comparison; the server computes the digests.

A text in an encoding other than UTF-8 has other bytes and another order there: such a database is
read as a whole, and ordered here.
"""
# ruff: noqa: S608 every name is quoted, every expression is our own

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import orjson
import psycopg

from connectors.postgres.compare.text_sql import bound_sql, key_sql, order_sql, row_sql, same_sql
from connectors.postgres.connection import connected
from connectors.postgres.schema.catalog import ServerTable, read_table
from connectors.postgres.sql import Session, name, texts
from connectors.postgres.values.image import image
from connectors.postgres.values.text import server_text
from streaming.core.compare.digest import LANE, RangeDigest, RowHash, row_hash
from streaming.core.compare.row_text import Image
from streaming.core.compare.side import ComparedTable, Images, OpenTable, RowsInMemory
from streaming.core.model.errors import WireError
from streaming.core.model.table import Table
from streaming.core.tracking.ranges import KeyRange

UTF_8 = "UTF8"
"""The usual encoding of a database."""

_LANES = "('x' || substr(m, 1, 16))::bit(64)::bigint", "('x' || substr(m, 17))::bit(64)::bigint"
"""The halves of an MD5 in hexadecimal digits, as SQL has 64 bits: with a sign."""


@contextmanager
def compared(dsn: str) -> Iterator[OpenTable]:
    """What opens the tables of a database for a comparison; StoreError: it cannot be read."""
    with connected(dsn) as session:
        session.execute("SET default_transaction_read_only = on")
        session.execute("SET jit = off")  # it costs more than it saves: half of the rows/s
        yield lambda table: opened(session, table)


def opened(session: Session, table: Table) -> ComparedTable:
    """The rows of a table for a comparison; ConfigError: there is no such table."""
    side = PostgresRows(session, table, read_table(session, table.name))
    if side.is_utf8:
        return side
    return RowsInMemory(table, side.hashes(KeyRange(table.name)).items(), side.images)


class PostgresRows:
    """The rows of a table in a server."""

    def __init__(self, session: Session, table: Table, server: ServerTable) -> None:
        self._session, self._table, self._server = session, table, server
        self.is_utf8 = session.info.parameter_status("server_encoding") == UTF_8
        self._row, self._key = row_sql(table, server, "t"), key_sql(table, server, "t")
        self._order = ", ".join(order_sql(table, server, "t"))

    @property
    def images(self) -> Images:
        """Reads the rows of some keys."""
        return self._images

    def digests(self, keys: KeyRange, bounds: Sequence[str]) -> list[RangeDigest]:
        """The digest of each part of a range, by one query."""
        part, values = self._part(bounds, 0)
        where, more = self._where(keys)
        high, low = _LANES
        # OFFSET 0: the server would otherwise compute a hash once for each of its halves
        query = (
            f"SELECT part, count(*), sum({high}), sum({low}) FROM (SELECT {part} AS part,"
            f" md5({self._row}) AS m FROM {self._server.sql} t WHERE {where} OFFSET 0) x"
            " GROUP BY part"
        )
        found = [RangeDigest() for _ in range(len(bounds) + 1)]
        for place, count, *sums in self._session.execute(query.encode(), [*values, *more]):
            found[place] = RangeDigest(count, *(int(one) % LANE for one in sums))
        return found

    def _part(self, bounds: Sequence[str], first: int) -> tuple[str, list[str | None]]:
        """The number of a row's part, and its values: found by halves, as there may be many."""
        if not bounds:
            return str(first), []
        middle = len(bounds) // 2
        below, values = self._part(bounds[:middle], first)
        above, more = self._part(bounds[middle + 1 :], first + middle + 1)
        found = f"({self._order}) <= ({bound_sql(self._table, self._server)})"
        ours = self._texts_of(bounds[middle])
        return f"CASE WHEN {found} THEN {below} ELSE {above} END", [*ours, *values, *more]

    def bounds(self, keys: KeyRange, every: int) -> list[str]:
        """Each so many-th key of a range."""
        where, values = self._where(keys)
        names = ", ".join(f"t.{name(column)}" for column in self._table.key)
        numbered = (
            f"SELECT {names}, row_number() OVER (ORDER BY {self._order}) AS n"
            f" FROM {self._server.sql} t WHERE {where}"
        )
        query = f"SELECT {self._key} FROM ({numbered}) t WHERE n %% %s = 0 ORDER BY n"
        return [key for (key,) in self._session.execute(query.encode(), [*values, every])]

    def hashes(self, keys: KeyRange) -> dict[str, RowHash]:
        """The rows of a range, by key; the server hashes only the bytes of its own encoding."""
        where, values = self._where(keys)
        found = f"md5({self._row})" if self.is_utf8 else self._row
        query = f"SELECT {self._key}, {found} FROM {self._server.sql} t WHERE {where}"
        hash_of = bytes.fromhex if self.is_utf8 else row_hash
        return {key: hash_of(one) for key, one in self._session.execute(query.encode(), values)}

    def _images(self, keys: Collection[str]) -> dict[str, Image]:
        return {key: found for key in keys if (found := self._image(key)) is not None}

    def _image(self, key: str) -> Image | None:
        """The row of a key, by the key's own index; one that the columns cannot hold has none."""
        columns = self._table.columns
        names = ", ".join(f"t.{name(column)}" for column in columns)
        where = " AND ".join(
            f"t.{name(column)} = {same_sql(self._server, column)}" for column in self._table.key
        )
        query = f"SELECT {self._key}, {names} FROM {self._server.sql} t WHERE {where}"
        try:
            rows = texts(self._session, query, self._texts_of(key))
        except (WireError, psycopg.DataError):
            return None
        for found, *row in rows:
            if found == key:  # another text may be cast to the same value
                values = dict(zip(columns, row, strict=True))
                return cast("Image", orjson.loads(image(columns, values).text))
        return None

    def _where(self, keys: KeyRange) -> tuple[str, list[str | None]]:
        """The condition that a row is in the range, with its values."""
        found, values = ["true"], list[str | None]()
        for sign, bound in ((">", keys.after), ("<=", keys.to)):
            if bound is not None:
                found.append(f"({self._order}) {sign} ({bound_sql(self._table, self._server)})")
                values += self._texts_of(bound)
        return " AND ".join(found), values

    def _texts_of(self, key: str) -> list[str | None]:
        values = orjson.loads(key)
        return [server_text(values[one], self._table.columns[one]) for one in self._table.key]
