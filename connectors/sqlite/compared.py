"""The rows of a file as one side of a comparison: digests by a function that SQLite calls.

Texts in UTF-16, decimals, floats and times are ordered otherwise in SQLite than by their value, so
a table with such a key is read as a whole, and ordered here.
"""
# ruff: noqa: S608 every name is quoted, every expression is our own

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import orjson

from connectors.sqlite import sql
from connectors.sqlite.connections import reading
from connectors.sqlite.load import prepare_of
from connectors.sqlite.schema.catalog import BINARY, Catalog, read
from connectors.sqlite.values.columns import image_sql
from connectors.sqlite.values.image import plain_json, wire_image
from connectors.sqlite.values.spellings import Stored
from streaming.core.compare.digest import LANE, LANES, RangeDigest, RowHash, hash_of
from streaming.core.compare.row_text import Image, quick_text, row_text
from streaming.core.compare.side import (
    ComparedTable,
    Images,
    OpenTable,
    RowsInMemory,
    parts_of,
)
from streaming.core.model.errors import WireError
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.ranges import KeyRange

DIGEST, PLACE = "_slackwater_digest", "_slackwater_place"

ORDERED = frozenset(
    {ColumnType.BOOL, ColumnType.INT32, ColumnType.INT64, ColumnType.TEXT, ColumnType.BYTES}
)
"""The types of key columns that SQLite orders by value."""

HashCaptured = Callable[[bytes], RowHash]
"""The hash of a row, of its captured image."""


@contextmanager
def compared(place: str, load: str | None) -> Iterator[OpenTable]:
    """What opens the tables of a file for a comparison; StateError: there is no such file."""
    with reading(place, prepare_of(load)) as connection:
        yield lambda table: opened(connection, table)


def opened(connection: sqlite3.Connection, table: Table) -> ComparedTable:
    """The rows of a table for a comparison; ConfigError: there is no such table."""
    catalog = read(connection, table)
    side = SqliteRows(connection, table, catalog)
    if not catalog.is_utf16 and {table.columns[name] for name in table.key} <= ORDERED:
        return side
    return RowsInMemory(table, side.hashes(KeyRange(table.name)).items(), side.images)


class SqliteRows:
    """The rows of a table in a SQLite file.

    A row whose key no record can have is found by its digest, but not by its key: it is remembered
    as it was read. One with a null in its key is no row of a replica.
    """

    def __init__(self, connection: sqlite3.Connection, table: Table, catalog: Catalog) -> None:
        self._connection, self._table = connection, table
        self._columns = catalog.stored(table)
        self._hash = hash_captured(table)
        self._unfindable = dict[str, Image]()

    @property
    def images(self) -> Images:
        """Reads the rows of some keys."""
        return self._images

    def digests(self, keys: KeyRange, bounds: Sequence[str]) -> list[RangeDigest]:
        """The digest of each part of a range, which SQLite reads by the index of the key.

        The function gets bytes, because no function is given text that is not valid.
        """
        aggregate: Any = lambda: DigestAggregate(self._hash)  # noqa: E731  # typeshed knows only numbers
        self._connection.create_aggregate(DIGEST, 1, aggregate)
        return [self._digest(part) for part in parts_of(keys, bounds)]

    def _digest(self, keys: KeyRange) -> RangeDigest:
        where, values = self._where(keys)
        query = f"SELECT {DIGEST}(CAST({self._image} AS BLOB)) FROM {self._from} WHERE {where}"
        (found,) = self._connection.execute(query, values).fetchone()
        return RangeDigest(*map(int, found.split())) if found else RangeDigest()  # of no rows: null

    def bounds(self, keys: KeyRange, every: int) -> list[str]:
        """Each so many-th key of a range, without those that no record can have."""
        where, values = self._where(keys)
        names = ", ".join(f"x.{sql.name(name)}" for name in self._table.key)
        numbered = (
            f"SELECT {names}, row_number() OVER (ORDER BY {self._key}) AS {PLACE}"
            f" FROM {self._from} WHERE {where}"
        )
        query = (
            f"SELECT {self._key_image} FROM ({numbered}) x WHERE {PLACE} % ? = 0 ORDER BY {PLACE}"
        )
        found = self._connection.execute(query, [*values, every])
        images = (wire_image(captured) for (captured,) in found)
        return [image.text for image in images if not image.faults]

    def hashes(self, keys: KeyRange) -> dict[str, RowHash]:
        """The rows of a range, by key."""
        where, values = self._where(keys)
        query = f"SELECT {self._key_image}, {self._image} FROM {self._from} WHERE {where}"
        found = dict[str, RowHash]()
        for captured_key, captured in self._connection.execute(query, values):
            key, image = wire_image(captured_key), _as_bytes(captured)
            if key.faults:
                self._unfindable[key.text] = image_of(image)
            found[key.text] = self._hash(image)
        return found

    def _images(self, keys: Collection[str]) -> dict[str, Image]:
        names = [f"x.{sql.name(name)} = ? COLLATE {BINARY}" for name in self._table.key]
        query = f"SELECT {self._image} FROM {self._from} WHERE {' AND '.join(names)}"
        found = {key: self._unfindable[key] for key in keys if key in self._unfindable}
        for key in keys:
            if key not in found and (row := self._row(query, key)) is not None:
                found[key] = image_of(_as_bytes(row[0]))
        return found

    def _row(self, query: str, key: str) -> tuple[str] | None:
        """The row of a key; one that the columns cannot hold has none."""
        try:
            values = self._key_of(key)
        except WireError:
            return None
        found: tuple[str] | None = self._connection.execute(query, values).fetchone()
        return found

    @property
    def _from(self) -> str:
        return f"main.{sql.name(self._table.name)} x"

    @property
    def _key(self) -> str:
        return ", ".join(f"x.{sql.name(name)} COLLATE {BINARY}" for name in self._table.key)

    @property
    def _image(self) -> str:
        return image_sql(self._columns, "x")

    @property
    def _key_image(self) -> str:
        return image_sql({name: self._columns[name] for name in self._table.key}, "x")

    def _where(self, keys: KeyRange) -> tuple[str, list[Stored]]:
        """The condition that a row is in the range, with its values."""
        found = [f"x.{sql.name(name)} IS NOT NULL" for name in self._table.key]
        values, marks = list[Stored](), ", ".join("?" for _ in self._table.key)
        for sign, bound in ((">", keys.after), ("<=", keys.to)):
            if bound is not None:
                found.append(f"({self._key}) {sign} ({marks})")
                values += self._key_of(bound)
        return " AND ".join(found), values

    def _key_of(self, key: str) -> list[Stored]:
        values = orjson.loads(key)
        return [self._columns[name].from_wire(values[name]) for name in self._table.key]


class DigestAggregate:
    """An aggregate function of SQL: the digest of the captured images, as its three numbers."""

    def __init__(self, hash_: HashCaptured) -> None:
        self._hash = hash_
        self._count = self._high = self._low = 0

    def step(self, captured: bytes) -> None:
        """Add a row."""
        high, low = LANES.unpack(self._hash(captured))
        self._count, self._high, self._low = self._count + 1, self._high + high, self._low + low

    def finalize(self) -> str:
        """The digest."""
        return f"{self._count} {self._high % LANE} {self._low % LANE}"


def hash_captured(table: Table) -> HashCaptured:
    """What gives the hash of a row by its captured image, which nearly always is canonical."""
    text, quick = row_text(table), quick_text(table)

    def hash_(captured: bytes) -> RowHash:
        is_canonical = captured.rfind(b"{") == 0 and b"\\" not in captured and _is_text(captured)
        found = quick(captured) if is_canonical else None
        return hash_of(text(image_of(captured)).encode() if found is None else found)

    return hash_


def image_of(captured: bytes) -> Image:
    """The values of a captured image as the wire has them."""
    try:
        found: dict[str, object] = orjson.loads(captured)
    except orjson.JSONDecodeError:  # it has text that is no Unicode
        text = captured.decode(errors="surrogateescape")
        return cast("Image", orjson.loads(wire_image(text).text))
    for name, value in found.items():
        if isinstance(value, dict):
            found[name] = plain_json(value)
    return found


def _is_text(captured: bytes) -> bool:
    if captured.isascii():
        return True
    try:
        captured.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_bytes(captured: str) -> bytes:
    return captured.encode(errors="surrogateescape")
