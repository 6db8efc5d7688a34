"""PostgreSQL is one side of a comparison: the server writes the text of a row as core does."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC
from pathlib import Path

import orjson
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.agent.contract import StoreError
from connectors.postgres.compare.rows import compared, opened
from connectors.postgres.compare.text_sql import row_sql
from connectors.postgres.connection import agent_conninfo
from connectors.postgres.schema.catalog import ServerTable, read_table
from connectors.postgres.sql import Session, name, texts
from connectors.postgres.values.image import image
from connectors.postgres.values.types import kinds_of, refusal_of
from connectors.sqlite.compared import compared as in_file
from streaming.core.compare.digest import digest_of, row_hash
from streaming.core.compare.narrow import differing_keys, digested
from streaming.core.compare.row_text import Image, row_text
from streaming.core.compare.side import RowsInMemory, parts_of
from streaming.core.model.table import ColumnType, Table
from streaming.core.tracking.ranges import KeyRange
from tests.connectors.postgres.test_round_trip import ROWS, TYPES
from tests.connectors.postgres.test_text_of_values import STORED_TEXTS
from tests.harness.examples import examples

ChosenKind = Callable[[tuple[ColumnType, ...]], ColumnType]

ANY_ROW = st.tuples(
    st.floats(),
    st.sampled_from(["NaN", "Infinity", "-0.00"]) | st.decimals(-(10**9), 10**9),
    STORED_TEXTS,
    st.binary(max_size=200),
    st.datetimes(timezones=st.just(UTC)),
    st.booleans(),
)
KEYS: dict[str, tuple[ColumnType, Sequence[str]]] = {
    "int8": (ColumnType.INT64, [str(n) for n in range(-30, 30)]),
    "numeric(9,2)": (ColumnType.DECIMAL, [f"{n}.50" for n in range(-30, 30)]),
    "text": (ColumnType.TEXT, [chr(n) * 2 for n in (*range(65, 122), 0xE9, 0xFFFF, 0x1F600)]),
    "uuid": (ColumnType.TEXT, [f"{n:08x}-0000-0000-0000-000000000000" for n in range(60)]),
    "date": (ColumnType.TEXT, [f"{n:04}-01-01" for n in range(9970, 10030)]),
    "bytea": (ColumnType.BYTES, [f"\\x{n:02x}" for n in range(60)]),
    "timestamptz": (
        ColumnType.TIMESTAMP,
        ["-infinity", *(f"{n:04}-01-01 00:00Z BC" for n in range(1, 9)), "infinity"]
        + [f"{n:04}-01-01 00:00Z" for n in range(9960, 10010)],
    ),
    "int4": (ColumnType.TEXT, [str(n) for n in range(-30, 30)]),
}
"""Type of a key -> what carries it, and 60 keys."""


@pytest.fixture(scope="module")
def database(postgres: str) -> str:
    """The connection string of one database for all these tests: to make one takes a second."""
    with psycopg.connect(f"{postgres} dbname=postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE compared_rows")
    return f"{postgres} dbname=compared_rows"


@pytest.fixture
def session(database: str) -> Iterator[Session]:
    """A connection to the database, which is emptied behind the test."""
    with psycopg.connect(agent_conninfo(database), autocommit=True) as connection:
        yield connection
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


def in_memory(session: Session, table: Table) -> RowsInMemory:
    """The rows as the wire has them, hashed and ordered by core."""
    columns = ", ".join(map(name, table.columns))
    images = dict[str, Image]()
    for row in texts(session, f"SELECT {columns} FROM {table.name}"):
        values = dict(zip(table.columns, row, strict=True))
        key = image({one: table.columns[one] for one in table.key}, values).text
        images[key] = orjson.loads(image(table.columns, values).text)
    hashes = {key: row_hash(row_text(table)(one)) for key, one in images.items()}
    return RowsInMemory(table, hashes.items(), lambda keys: {key: images[key] for key in keys})


def default(kinds: tuple[ColumnType, ...]) -> ColumnType:
    """What carries a type unless another one is configured."""
    return kinds[0]


def last(kinds: tuple[ColumnType, ...]) -> ColumnType:
    """What carries a type at the most: text, or a time."""
    return kinds[-1]


def kinds_in(server: ServerTable, chosen: ChosenKind) -> dict[str, ColumnType]:
    """A type of the wire for each column that one can carry."""
    return {
        column.name: chosen(kinds_of(column.type))
        for column in server.columns.values()
        if not column.is_generated and refusal_of(column.type) is None
    }


@pytest.mark.parametrize("chosen", [default, last])
def test_the_server_writes_the_text_of_each_type(session: Session, chosen: ChosenKind) -> None:
    """Of infinities, far times, composites, arrays, escapes; as the agent carries them."""
    for statement in TYPES.split(";"):
        session.execute(statement.encode())
    for id_, row in enumerate(ROWS):
        columns, marks = ", ".join(map(name, ("id", *row))), ", ".join(["%s"] * (len(row) + 1))
        insert = f"INSERT INTO all_types ({columns}) VALUES ({marks})"
        session.execute(insert.encode(), (id_, *row.values()))
    server = read_table(session, "all_types")
    table = Table("all_types", ("id",), kinds_in(server, chosen))

    query = f"SELECT {row_sql(table, server, 't')} FROM all_types t ORDER BY id"
    found = [text for (text,) in session.execute(query.encode(), ())]

    keys = [f'{{"id":{n}}}' if chosen is default else f'{{"id":"{n}"}}' for n in range(len(ROWS))]
    rows = in_memory(session, table).images(keys)
    assert found == [row_text(table)(one) for one in rows.values()]


def test_digests_are_those_of_what_the_agent_carries(session: Session) -> None:
    """Whatever the values: another database computes the same of the wire's form."""
    session.execute(
        "CREATE TABLE t (id serial PRIMARY KEY, f float8, n numeric, x text, b bytea,"
        " z timestamptz, l boolean, r float4)"
    )
    kinds = ("int32", "float64", "decimal", "text", "bytes", "timestamp", "bool", "float64")
    columns = zip(("id", "f", "n", "x", "b", "z", "l", "r"), map(ColumnType, kinds), strict=True)
    table = Table("t", ("id",), dict(columns))

    @examples(20)
    @given(st.lists(ANY_ROW, max_size=20))
    def holds(rows: list[tuple[object, ...]]) -> None:
        session.execute("TRUNCATE t")
        with session.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO t (f, n, x, b, z, l) VALUES (%s, %s, %s, %s, %s, %s)", rows
            )
        session.execute("UPDATE t SET r = f::float4 WHERE abs(f) BETWEEN 1e-30 AND 1e30")
        expected = in_memory(session, table)

        side = opened(session, table)

        whole = KeyRange("t")
        assert side.hashes(whole) == expected.hashes(whole)
        assert side.digests(whole, ()) == [digest_of(expected.hashes(whole).values())]

    holds()


@pytest.mark.parametrize("declared", KEYS)
def test_keys_are_ordered_as_core_orders_them(session: Session, declared: str) -> None:
    """Ranges of two databases hold the same keys, whatever a collation or a type thinks."""
    kind, keys = KEYS[declared]
    session.execute(f"CREATE TABLE t (k {declared} PRIMARY KEY, v text)".encode())
    with session.cursor() as cursor:
        cursor.executemany(
            f"INSERT INTO t VALUES (%s::text::{declared}, 'x')".encode(), [(k,) for k in keys]
        )
    table = Table("t", ("k",), {"k": kind, "v": ColumnType.TEXT})
    expected, side, whole = in_memory(session, table), opened(session, table), KeyRange("t")

    bounds = side.bounds(whole, 7)

    assert bounds == expected.bounds(whole, 7)
    assert side.digests(whole, bounds) == expected.digests(whole, bounds)
    for part in parts_of(whole, bounds):
        assert side.hashes(part) == expected.hashes(part)
        assert side.digests(part, ()) == [digest_of(expected.hashes(part).values())]
    assert side.images(bounds) == expected.images(bounds)


def test_rows_that_differ_are_found(session: Session, database: str) -> None:
    """One is gone, one is new, one is another; a key of two columns, in the order of the key."""
    session.execute('CREATE TABLE t (a int, "b %" text, v numeric(9,2), PRIMARY KEY (a, "b %"))')
    session.execute("INSERT INTO t SELECT n % 7, 'é' || n, n FROM generate_series(1, 90) n")
    columns = {"a": ColumnType.INT32, "b %": ColumnType.TEXT, "v": ColumnType.DECIMAL}
    table = Table("t", ("b %", "a"), columns)
    before = in_memory(session, table)
    session.execute("DELETE FROM t WHERE v = 3")
    session.execute("UPDATE t SET v = v + 1 WHERE v = 40")
    session.execute("INSERT INTO t VALUES (8, '', 1)")

    with compared(database) as tables:
        side = tables(table)
        parts = digested(before, side, KeyRange("t"))
        keys = list(differing_keys(before, side, parts, parts=3, leaf_rows=4))
        now = side.images([*keys, '{"b %":5,"a":1}', '{"b %":"","a":99999999999}'])

    assert sorted(keys) == ['{"b %":"","a":8}', '{"b %":"é3","a":3}', '{"b %":"é40","a":5}']
    assert now == {
        '{"b %":"","a":8}': {"a": 8, "b %": "", "v": "1.00"},
        '{"b %":"é40","a":5}': {"a": 5, "b %": "é40", "v": "41.00"},
    }


def test_a_file_of_sqlite_and_a_server_have_one_digest(session: Session, tmp_path: Path) -> None:
    """Each spells some values in its own way, and both compute it of the same text."""
    columns = {"k": "int64", "d": "decimal", "f": "float64", "z": "timestamp", "l": "bool"}
    table = Table("t", ("k",), {name: ColumnType(kind) for name, kind in columns.items()})
    rows = [
        (1, "1.5", -0.0, "2024-02-29 23:59:59", 1),
        (2, None, 1e15, "-0043-03-15T12:00:00.000000Z", 0),
        (3, "NaN", 0.1, "infinity", None),
    ]
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as client:
        client.execute("CREATE TABLE t (k INTEGER PRIMARY KEY, d TEXT, f REAL, z TEXT, l INT)")
        client.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?)", rows)
    session.execute("CREATE TABLE t (k int8, d numeric(9,2), f float8, z timestamptz, l bool)")
    session.execute(
        "INSERT INTO t VALUES (1, 1.5, 0, '2024-02-29 23:59:59Z', true),"
        " (2, NULL, 1e15, '0044-03-15 12:00:00Z BC', false), (3, 'NaN', 0.1, 'infinity', NULL)"
    )

    with in_file(str(tmp_path / "a.db"), None) as tables:
        parts = digested(tables(table), opened(session, table), KeyRange("t"), first_rows=2)

    assert [part.one == part.other for part in parts] == [True, True]


def test_a_database_in_another_encoding_is_ordered_here(postgres: str) -> None:
    """Its texts have other bytes, and its server orders by these."""
    with psycopg.connect(f"{postgres} dbname=postgres", autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE compared_latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'"
        )
    dsn = f"{postgres} dbname=compared_latin client_encoding=UTF8"
    table = Table("t", ("k",), {"k": ColumnType.TEXT})
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute("CREATE TABLE t (k text PRIMARY KEY)")
        session.execute("INSERT INTO t VALUES ('é'), ('z')")

        side = opened(session, table)

        expected = [row_hash(f'{{"k":"{key}"}}') for key in ("é", "z")]
        assert side.digests(KeyRange("t"), ()) == [digest_of(expected)]


def test_a_database_that_is_not_there_is_said_in_one_line() -> None:
    """Nobody can say whether they are equal: it is no answer."""
    with pytest.raises(StoreError, match="the database cannot be reached"), compared("port=1"):
        pass
