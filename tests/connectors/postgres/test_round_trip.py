"""Values of all types go over the wire and come back bit for bit, on a real server."""

from collections.abc import Iterator

import orjson
import psycopg
import pytest

from connectors.postgres.schema.catalog import ServerTable, read_table
from connectors.postgres.sql import Session, name, texts
from connectors.postgres.values.image import image
from connectors.postgres.values.types import kinds_of, refusal_of
from streaming.core.model.table import ColumnType

TYPES = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN posint AS int CHECK (value > 0);
CREATE DOMAIN short AS varchar(5);
CREATE TYPE pair AS (x int, y text);
CREATE TABLE all_types (
  id int PRIMARY KEY, i2 int2, i8 int8, n numeric, n2 numeric(10, 2), f8 float8, f4 float4,
  tz timestamptz, ts timestamp, d date, t time, ttz timetz, by bytea, jb jsonb, js json, ai int[],
  at text[], u uuid, ip inet, iv interval, m mood, dm posint, sh short, p pair, b boolean, tx text,
  ch char(5), vc varchar(5), vb varbit, bi bit(4), r int4range, x xml,
  idn bigint GENERATED ALWAYS AS IDENTITY, ls pg_lsn, tsv tsvector, pt point, mr int4multirange,
  g int GENERATED ALWAYS AS (id * 2) STORED, mo money, rc regclass
);
CREATE TABLE copies (LIKE all_types INCLUDING ALL)"""

ROWS: list[dict[str, str | None]] = [
    {"f8": "NaN", "ts": "-infinity", "d": "0044-03-15 BC", "tx": "", "by": "\\x", "n": "NaN"},
    {
        "f8": "-Infinity",
        "ts": "0044-03-15 12:00:00 BC",
        "d": "infinity",
        "tx": None,
        "n": "Infinity",
    },
    {"tz": "infinity", "n": "-Infinity"},
    {"tz": "-infinity", "n2": "NaN"},
    {"tz": "4713-11-24 00:00:00+00 BC", "n": "-0.10"},
    {"tz": "0001-12-31 23:59:59.999999+00 BC"},
    {"tz": "294276-12-31 23:59:59.999999+00"},
    {
        "n": f"{'1' * 200}.{'5' * 300}",
        "n2": "100.50",
        "f8": "0.1",
        "f4": "0.1",
        "tz": "2024-02-29 23:59:59.999999+05:30",
        "ts": "294276-12-31 23:59:59.999999",
        "d": "5874897-12-31",
        "i2": "-32768",
        "i8": "-9223372036854775808",
    },
    {
        "n": "1.000",
        "f8": "5e-324",
        "f4": "3.4028235e38",
        "t": "24:00:00",
        "ttz": "12:00:00.000001+02",
        "i8": "9223372036854775807",
        "tz": "0001-01-01 00:00Z",
    },
    {
        "n": "0.000000",
        "f8": "-0",
        "jb": '{"b":1.10,"a":[1,null,"\\u00e9"],"b":2.00}',
        "js": '{"b":1.10, "a":[1], "b":2, "c":"\\u0000"}',
        "ai": "{1,NULL,3}",
        "at": '{"a,b","",NULL,"NULL","q\\"x"}',
        "u": "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
        "ip": "::ffff:1.2.3.4/120",
        "iv": "1 year 2 mons -3 days 04:05:06.000001",
        "m": "ok",
        "dm": "5",
        "p": '(1,"a,""b")',
        "b": "t",
        "ch": "ab",
        "vb": "1011",
        "r": "[1,5)",
        "x": "<a>é</a>",
        "ls": "16/B374D848",
        "tsv": "a:1 b:2",
        "pt": "(1.5,2)",
        "by": "\\x00ff5c27",
        "tx": "Zoë \\ ' \n\t",
        "sh": "abcde",
        "vc": "ab  ",
        "bi": "1010",
        "mr": "{[1,3),[5,7)}",
    },
    {"ai": "[0:1]={7,8}", "at": "{}", "iv": "-00:00:00.000001", "f8": "1e308", "f4": "1e-45"},
    {"b": "f", "n": "-0.0", "f8": "1e16", "f4": "16777216", "tz": "9999-12-31 23:59:59.999999Z"},
]


@pytest.fixture
def session(dsn: str) -> Iterator[Session]:
    """A connection to a database with rows of all types."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in TYPES.split(";"):
            connection.execute(statement.encode())
        for id_, row in enumerate(ROWS):
            columns = ", ".join(map(name, ("id", *row)))
            marks = ", ".join(["%s"] * (len(row) + 1))
            insert = f"INSERT INTO all_types ({columns}) VALUES ({marks})"
            connection.execute(insert.encode(), (id_, *row.values()))
        yield connection


def test_every_type_comes_back_bit_for_bit(session: Session) -> None:
    """What is applied at one replica is what was written at another."""
    table = read_table(session, "all_types")
    kinds = _kinds(table)

    for row in _rows(session, table, kinds):
        found = image(kinds, row)
        assert found.faults == ()
        _insert(session, table, kinds, found.text)

    differing = {
        column: texts(
            session,
            f"SELECT a.id, a.{name(column)}, b.{name(column)} FROM all_types a JOIN copies b"
            f" USING (id) WHERE NOT record_image_eq(row(a.{name(column)}), row(b.{name(column)}))",
        )
        for column in (*kinds, "g")
    }
    assert {column: rows for column, rows in differing.items() if rows} == {}
    assert texts(session, "SELECT count(*) FROM copies") == [(str(len(ROWS)),)]


def test_each_type_has_its_default(session: Session) -> None:
    """A column that nobody configured otherwise is carried so."""
    kinds = _kinds(read_table(session, "all_types"))

    assert kinds["i2"] is kinds["id"] is kinds["dm"] is ColumnType.INT32
    assert kinds["i8"] is kinds["idn"] is ColumnType.INT64
    assert kinds["f4"] is kinds["f8"] is ColumnType.FLOAT64
    assert kinds["n"] is kinds["n2"] is ColumnType.DECIMAL
    assert (kinds["b"], kinds["by"]) == (ColumnType.BOOL, ColumnType.BYTES)
    assert kinds["tz"] is ColumnType.TIMESTAMP
    texts_ = set(kinds) - {*("i2", "id", "dm", "i8", "idn", "f4", "f8", "n", "n2", "b", "by", "tz")}
    assert {kinds[one] for one in texts_} == {ColumnType.TEXT}
    assert kinds.keys() == read_table(session, "all_types").columns.keys() - {"g", "mo", "rc"}


def test_a_cast_cuts_nothing_off(session: Session) -> None:
    """The length of a column is checked when it is assigned."""
    table = read_table(session, "all_types")

    for column in ("sh", "vc", "ch", "bi"):
        with pytest.raises(psycopg.DataError):
            _insert(session, table, _kinds(table), f'{{"id":9,"{column}":"111111"}}')


def _kinds(table: ServerTable) -> dict[str, ColumnType]:
    return {
        column.name: kinds_of(column.type)[0]
        for column in table.columns.values()
        if not column.is_generated and refusal_of(column.type) is None
    }


def _rows(
    session: Session, table: ServerTable, kinds: dict[str, ColumnType]
) -> list[dict[str, str | None]]:
    columns = ", ".join(map(name, kinds))
    found = texts(session, f"SELECT {columns} FROM {table.sql} ORDER BY id")
    return [dict(zip(kinds, row, strict=True)) for row in found]


def _insert(
    session: Session, table: ServerTable, kinds: dict[str, ColumnType], on_wire: str
) -> None:
    values = {
        column: table.columns[column].from_wire(value, kinds[column], is_key=False)
        for column, value in orjson.loads(on_wire).items()
        if column in kinds
    }
    casts = ", ".join(f"CAST(%s::text AS {table.columns[column].cast})" for column in values)
    insert = (
        f"INSERT INTO copies ({', '.join(map(name, values))}) OVERRIDING SYSTEM VALUE"
        f" SELECT {casts}"
    )
    session.execute(insert.encode(), list(values.values()))
