"""A file is one side of a comparison: its digests are those of what its agent publishes."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import orjson
import pytest
from hypothesis import given

from connectors.sqlite.compared import compared, opened
from connectors.sqlite.values.columns import stored
from streaming.core.compare.difference import DifferingRow, differing_rows
from streaming.core.compare.digest import digest_of, row_hash
from streaming.core.compare.narrow import differing_keys, digested
from streaming.core.compare.row_text import row_text
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value
from streaming.core.tracking.ranges import KeyRange
from tests.connectors.sqlite.test_columns import DECLARED, ROWS, TABLE, replica
from tests.harness.examples import examples

KEYED = {
    ColumnType.INT64: ("INTEGER", range(1, 60)),
    ColumnType.TEXT: ("TEXT", [chr(n) * 2 for n in (*range(65, 90), 0xE9, 0xE000, 0x1F600)]),
    ColumnType.BYTES: ("BLOB", [bytes([n]) for n in range(60)]),
    ColumnType.DECIMAL: ("TEXT", [str(n) for n in range(-30, 30)]),
    ColumnType.TIMESTAMP: ("TEXT", [f"2024-02-29T23:59:{n:02}.000000Z" for n in range(60)]),
}
"""Type of a key -> what it is declared as, and keys of it."""


def differences(table: Table, one: Path, other: Path) -> list[DifferingRow]:
    """The rows that differ between two files, found in small ranges."""
    with compared(str(one), None) as first, compared(str(other), None) as second:
        ours, theirs = first(table), second(table)
        whole = digested(ours, theirs, KeyRange(table.name), first_rows=11)
        keys = list(differing_keys(ours, theirs, whole, parts=3, leaf_rows=4))
        return differing_rows(table, ours.images, theirs.images, keys)


def file_of(
    path: Path, create: str, rows: Sequence[Sequence[object]], encoding: str = "UTF-8"
) -> Path:
    """A new file with a table of these rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        client.execute(f"PRAGMA encoding = '{encoding}'")
        client.execute("BEGIN")
        client.execute(create)
        marks = ", ".join("?" * len(rows[0]))
        client.executemany(f"INSERT INTO t VALUES ({marks})", rows)
        client.execute("COMMIT")
    return path


@examples(40)
@given(ROWS)
def test_the_digest_of_a_row_is_that_of_its_published_image(row: Mapping[str, Value]) -> None:
    """Of all types and hostile values: what SQL computes, another database computes of the wire."""
    values = [stored(row[f"a {kind}"]) for kind in DECLARED]
    marks = ", ".join("?" * len(values))
    with replica() as origin:
        origin.client.execute(f'INSERT INTO "all" VALUES (1, {marks})', values)
        published = orjson.loads(origin.changes()[-1].after or "")

        side = opened(origin.client, TABLE)

        expected = row_hash(row_text(TABLE)(published))
        assert side.digests(KeyRange("all"), ()) == [digest_of([expected])]
        assert side.hashes(KeyRange("all")) == {'{"id":1}': expected}
        assert row_text(TABLE)(side.images(['{"id":1}'])['{"id":1}']) == row_text(TABLE)(published)


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
@pytest.mark.parametrize("kind", KEYED)
def test_rows_are_found_by_keys_of_each_type(
    tmp_path: Path, kind: ColumnType, encoding: str
) -> None:
    """SQLite orders some of them otherwise than by value, and texts in UTF-16 otherwise too."""
    declared, keys = KEYED[kind]
    table = Table("t", ("k",), {"k": kind, "v": ColumnType.TEXT})
    create = f"CREATE TABLE t (k {declared} PRIMARY KEY, v TEXT)"
    rows = [(key, "as it was") for key in keys]
    edited = [*rows[1:7], (rows[7][0], "edited"), *rows[8:-1]]
    one = file_of(tmp_path / "one.db", create, rows, encoding)
    other = file_of(tmp_path / "other.db", create, edited)

    found = differences(table, one, other)

    assert sorted((row.kind, row.columns) for row in found) == [
        ("columns", ("v",)),
        ("only_first", ()),
        ("only_first", ()),
    ]


def test_a_key_of_several_columns_is_compared_column_by_column(tmp_path: Path) -> None:
    """Its columns stand in the table and in its index in another order."""
    table = Table("t", ("b", "a"), {"a": ColumnType.INT32, "b": ColumnType.TEXT})
    create = "CREATE TABLE t (a INT, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID"
    rows = [(n % 7, chr(65 + n)) for n in range(40)]
    one = file_of(tmp_path / "one.db", create, rows)
    other = file_of(tmp_path / "other.db", create, rows[:20] + rows[21:])

    found = differences(table, one, other)

    assert [row.key for row in found] == ['{"b":"U","a":6}']


def test_rows_that_no_record_can_carry_are_named(tmp_path: Path) -> None:
    """They stand in this file only; a null in a key is no key, and no row of a replica."""
    table = Table("t", ("k",), {"k": ColumnType.INT64, "v": ColumnType.TEXT})
    create = "CREATE TABLE t (k INT UNIQUE, v TEXT)"
    rows: list[tuple[object, object]] = [(n, "same") for n in range(20)]
    strangers = [("abc", "no int64"), (None, "no key"), (b"\1", "a blob")]
    one = file_of(tmp_path / "one.db", create, [*rows, *strangers])
    other = file_of(tmp_path / "other.db", create, rows)
    with closing(sqlite3.connect(one, isolation_level=None)) as client:
        client.execute("UPDATE t SET v = CAST(x'80' AS TEXT) WHERE k = 7")

    found = differences(table, one, other)

    assert {row.key: (row.kind, row.columns) for row in found} == {
        '{"k":"7"}': ("columns", ("v",)),
        '{"k":{"text":"abc"}}': ("only_first", ()),
        '{"k":{"blob":"AQ=="}}': ("only_first", ()),
    }


def test_spellings_of_a_value_are_no_difference(tmp_path: Path) -> None:
    """An application writes 1.50 and a time without its fraction; the agent carries one form."""
    table = Table("t", ("k",), {"k": ColumnType.INT64, "d": ColumnType.DECIMAL})
    times = Table("t", ("k",), {"k": ColumnType.INT64, "d": ColumnType.TIMESTAMP})
    create = "CREATE TABLE t (k INTEGER PRIMARY KEY, d TEXT)"
    one = file_of(tmp_path / "one.db", create, [(1, "1.50"), (2, "2024-02-29 23:59:59")])
    other = file_of(tmp_path / "other.db", create, [(1, "15e-1"), (2, "2024-02-29T23:59:59Z")])

    assert [row.key for row in differences(table, one, other)] == ['{"k":"2"}']
    assert [row.key for row in differences(times, one, other)] == ['{"k":"1"}']
