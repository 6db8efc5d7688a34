"""Every column type comes through SQLite, the trigger, the wire and SQLite again as it was."""

import math
import struct
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import wire
from connectors.sqlite.apply.batch import apply_batch
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.values.columns import Affinity, affinity, stored
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.far_time import FarTime
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value
from streaming.core.records.check import check
from streaming.core.records.record import Item, ItemType, Reason
from tests.connectors.sqlite.sqlite_replica import RID, Replica, make
from tests.harness.examples import examples
from tests.harness.far_times import FAR_TIMES

DECLARED = {
    ColumnType.BOOL: "BOOLEAN",
    ColumnType.INT32: "INT",
    ColumnType.INT64: "BIGINT",
    ColumnType.FLOAT64: "DOUBLE PRECISION",
    ColumnType.DECIMAL: "TEXT",
    ColumnType.TEXT: "VARCHAR(20)",
    ColumnType.BYTES: "BLOB",
    ColumnType.TIMESTAMP: "DATETIME",
}
TABLE = Table("all", ("id",), {"id": ColumnType.INT32} | {f"a {k}": k for k in ColumnType})
COLUMNS = ", ".join(f'"a {kind}" {declared}' for kind, declared in DECLARED.items())
CREATE = f'CREATE TABLE "all" (id INTEGER PRIMARY KEY, {COLUMNS})'

VALUES: dict[ColumnType, st.SearchStrategy[Value]] = {
    ColumnType.BOOL: st.booleans(),
    ColumnType.INT32: st.integers(-(2**31), 2**31 - 1),
    ColumnType.INT64: st.integers(-(2**63), 2**63 - 1),
    ColumnType.FLOAT64: st.floats(),
    ColumnType.DECIMAL: st.decimals(),
    ColumnType.TEXT: st.text(st.characters(codec="utf-8")),
    ColumnType.BYTES: st.binary(),
    ColumnType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)) | FAR_TIMES,
}
ROWS = st.fixed_dictionaries({f"a {kind}": st.none() | values for kind, values in VALUES.items()})
CSN = "65e0f1c0000000020000"
CLOCK_MS = 0x65E0F1C0 * 1000


@contextmanager
def replica() -> Iterator[Replica]:
    """A replica with the table of all types."""
    made = make(Path(":memory:"), {CREATE: TABLE})
    try:
        yield made
    finally:
        made.client.close()


def same(one: Value, other: Value) -> bool:
    """The same value to the last bit; SQLite knows one zero."""
    if isinstance(one, float) and isinstance(other, float) and one:
        return struct.pack("d", one) == struct.pack("d", other) or math.isnan(one + other)
    if isinstance(one, Decimal) and isinstance(other, Decimal) and one.is_nan():
        return other.is_nan()
    return one == other


@examples(40)
@given(ROWS)
def test_a_row_of_all_types_is_captured_and_applied_as_it_was(row: dict[str, Value]) -> None:
    """Text that one replica publishes makes the same row at another, to the last bit."""
    values = [stored(row[f"a {kind}"]) for kind in DECLARED]
    marks = ", ".join("?" * len(values))
    with replica() as origin, replica() as consumer:
        origin.client.execute(f'INSERT INTO "all" VALUES (1, {marks})', values)
        (change,) = origin.changes()
        batch = ApplyBatch(Position("s"), 1, (_item(change.key, change.after),))

        apply_batch(consumer.client, writers(consumer.client, [TABLE]), batch, 1, CLOCK_MS)

        found = wire.image_values(change.after or "", TABLE)
        assert all(same(found[name], value) for name, value in row.items())
        assert consumer.rows("all") == origin.rows("all")
        assert _kinds(consumer) == _kinds(origin)


def _item(key: str, after: str | None) -> Item:
    return Item(ItemType.CHANGE, "all", key, "insert", after, CSN, 2)


def _kinds(of: Replica) -> list[tuple[object, ...]]:
    names = ", ".join(f'typeof("a {kind}")' for kind in ColumnType)
    return of.client.execute(f'SELECT {names} FROM "all"').fetchall()


@pytest.mark.parametrize("fraction", ["000000", "999499", "999500", "999999"])
def test_every_microsecond_of_a_second_is_a_time(fraction: str) -> None:
    """SQLite rounds to milliseconds, which makes the last half of one the next second."""
    time = f"2024-02-29T23:59:59.{fraction}Z"
    with replica() as origin:
        origin.client.execute('INSERT INTO "all" (id, "a timestamp") VALUES (1, ?)', (time,))

        assert f'"a timestamp":"{time}"' in (origin.changes()[-1].after or "")


@pytest.mark.parametrize("number", [5e-324, -5e-324, 2.2250738585072014e-308, 2.0**-1074 * 3])
@pytest.mark.parametrize("scale", [1.0, 2.0**52, 2.0**1000])
def test_floats_that_sqlite_prints_wrongly_are_captured_exactly(
    number: float, scale: float
) -> None:
    """SQLite's own text of a float is off in the last digit for very small and large ones."""
    with replica() as origin:
        for id_, value in enumerate((number * scale, 1.7976931348623157e308, -1.1e300, 0.1)):
            origin.client.execute('INSERT INTO "all" (id, "a float64") VALUES (?, ?)', (id_, value))
            image = wire.image_values(origin.changes()[-1].after or "", TABLE)
            assert image["a float64"] == value


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ColumnType.BOOL, 2),
        (ColumnType.BOOL, "yes"),
        (ColumnType.INT32, 2**31),
        (ColumnType.INT32, 1.5),
        (ColumnType.INT64, "x"),
        (ColumnType.FLOAT64, "Infinity"),
        (ColumnType.FLOAT64, "x"),
        (ColumnType.DECIMAL, "1,5"),
        (ColumnType.DECIMAL, ""),
        (ColumnType.DECIMAL, "-"),
        (ColumnType.DECIMAL, "1e1001"),
        (ColumnType.TEXT, b"x"),
        (ColumnType.BYTES, "x"),
        (ColumnType.TIMESTAMP, "23:59:59"),
        (ColumnType.TIMESTAMP, "2024-02-29 23:59:59.0000001"),
        (ColumnType.TIMESTAMP, "2023-02-29T23:59:59.000000Z"),
        (ColumnType.TIMESTAMP, "0000-01-01 00:00"),
        (ColumnType.TIMESTAMP, "+10000-01-01 00:00"),
        (ColumnType.TIMESTAMP, "10000-01-01T00:00:00.000000Z"),
        (ColumnType.TIMESTAMP, "Infinity"),
        (ColumnType.DECIMAL, "nan"),
        (ColumnType.DECIMAL, "+Infinity"),
        (ColumnType.TIMESTAMP, "0001-01-01 00:00+01:00"),
        (ColumnType.TIMESTAMP, "2024-02-29T24:00:00.000000Z"),
        (ColumnType.TIMESTAMP, 1_709_000_000),
    ],
)
def test_a_value_of_another_type_is_named_with_what_to_do(kind: ColumnType, value: object) -> None:
    """SQLite lets any value into any column, and the application's statement succeeds."""
    with replica() as origin:
        origin.client.execute(f'INSERT INTO "all" (id, "a {kind}") VALUES (1, ?)', (value,))

        ((fault,),) = (entry.faults for entry in origin.entries())
        assert fault.startswith(f"a {kind}: the ")
        assert f"is no {kind}: write" in fault


STORED: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=5),
    st.text(st.characters(codec="utf-8"), max_size=5),
    st.decimals().map(str),
    st.datetimes().map(str),
)


@given(st.tuples(*(STORED for _ in DECLARED)))
def test_any_value_is_written_and_is_carried_or_named(row: tuple[object, ...]) -> None:
    """No statement fails, the agent names just what the hub quarantines, and says it again."""
    marks = ", ".join("?" * len(row))
    with replica() as origin:
        origin.client.execute(f'INSERT INTO "all" VALUES (1, {marks})', row)

        (entry,) = origin.entries()
        record = check(wire.encode("s", entry.record), RID, {"all": TABLE})
        assert (record.reason is Reason.TABLE) if entry.faults else (record.reason is None)
        assert wire.decode(wire.encode("s", entry.record)) == ("s", entry.record)


@pytest.mark.parametrize(
    ("declared", "kind", "written", "carried"),
    [
        ("NUMERIC(10,2)", ColumnType.DECIMAL, "10.50", '"10.5"'),
        ("NUMERIC(10,2)", ColumnType.DECIMAL, 0.1 + 0.2, '"0.30000000000000004"'),
        ("DECIMAL", ColumnType.DECIMAL, 7, '"7"'),
        ("REAL", ColumnType.DECIMAL, 7, '"7"'),
        ("REAL", ColumnType.DECIMAL, 1e22, '"10000000000000000000000"'),
        ("INTEGER", ColumnType.DECIMAL, -5, '"-5"'),
        ("TEXT", ColumnType.DECIMAL, "+01.50", '"1.50"'),
        ("TEXT", ColumnType.DECIMAL, " .5 ", '"0.5"'),
        ("TEXT", ColumnType.DECIMAL, "1.5e3", '"1500"'),
        ("TEXT", ColumnType.DECIMAL, "NaN ", '"NaN"'),
        ("NUMERIC", ColumnType.DECIMAL, "NaN", '"NaN"'),
        ("NUMERIC", ColumnType.DECIMAL, math.inf, '"Infinity"'),
        ("REAL", ColumnType.DECIMAL, -math.inf, '"-Infinity"'),
        ("DATETIME", ColumnType.TIMESTAMP, "infinity", '"infinity"'),
        ("TEXT", ColumnType.TIMESTAMP, " -infinity", '"-infinity"'),
        ("NUMERIC", ColumnType.FLOAT64, 5, "5.0"),
        ("DATETIME", ColumnType.TIMESTAMP, "2024-02-29", '"2024-02-29T00:00:00.000000Z"'),
        ("TEXT", ColumnType.TIMESTAMP, "2024-02-29 23:59", '"2024-02-29T23:59:00.000000Z"'),
        ("TEXT", ColumnType.TIMESTAMP, "2024-02-29 23:59:58", '"2024-02-29T23:59:58.000000Z"'),
        ("TEXT", ColumnType.TIMESTAMP, "2024-02-29T23:59:58.5Z", '"2024-02-29T23:59:58.500000Z"'),
        (
            "TEXT",
            ColumnType.TIMESTAMP,
            "2024-03-01 01:00:00+02:00",
            '"2024-02-29T23:00:00.000000Z"',
        ),
    ],
)
def test_common_spellings_are_carried_and_stay_as_they_are_written(
    declared: str, kind: ColumnType, written: object, carried: str
) -> None:
    """One form on the wire; and a row that comes back with the same value is not rewritten."""
    table = Table("t", ("id",), {"id": ColumnType.INT64, "v": kind, "n": ColumnType.TEXT})
    create = f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {declared}, n TEXT)"
    made = make(Path(":memory:"), {create: table})
    with closing(made.client):
        made.client.execute("INSERT INTO t VALUES (1, ?, 'here')", (written,))
        held = made.client.execute("SELECT v, typeof(v) FROM t").fetchall()

        (change,) = made.changes()
        assert change.after == f'{{"id":"1","v":{carried},"n":"here"}}'
        after = change.after.replace("here", "there")
        item = Item(ItemType.CHANGE, "t", change.key, "update", after, CSN, 2)
        apply_batch(
            made.client, writers(made.client, [table]), ApplyBatch(Position("s"), 1, (item,)), 1, 0
        )
        assert made.client.execute("SELECT v, typeof(v) FROM t").fetchall() == held
        assert made.client.execute("SELECT n FROM t").fetchall() == [("there",)]


@given(
    st.lists(
        st.floats(-1e300, 1e300, allow_subnormal=False)
        | st.decimals(-(10**12), 10**12, places=2).map(float)
        | st.sampled_from([745.3895791975619, 0.007847955785956571, 0.1 + 0.2, 1e15, 1e-7])
    )
)
def test_a_number_is_carried_to_the_last_bit(numbers: list[float]) -> None:
    """SQLite's own text of a float, and its reading of one, may miss by the last bit."""
    table = Table("t", ("id",), {"id": ColumnType.INT64, "v": ColumnType.DECIMAL})
    made = make(Path(":memory:"), {"CREATE TABLE t (id INTEGER PRIMARY KEY, v NUMERIC)": table})
    with closing(made.client):
        made.client.executemany("INSERT INTO t (v) VALUES (?)", [(n,) for n in numbers])

        images = [wire.image_values(change.after or "", table)["v"] for change in made.changes()]

        assert [float(str(image)) for image in images] == numbers


@pytest.mark.parametrize(
    ("default", "written"),
    [
        ("CURRENT_TIMESTAMP", "2024-02-29 23:59:58"),
        ("(datetime('now'))", "2024-02-29 23:59:58"),
        ("(strftime('%Y-%m-%d %H:%M:%f', 'now'))", "2024-02-29 23:59:58.123"),
        ("(strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))", "2024-02-29T23:59:58.120Z"),
        ("CURRENT_DATE", "2024-02-29"),
        ("CURRENT_TIMESTAMP", "2024-02-29 23:59:58.123456"),
    ],
)
def test_a_time_is_written_in_the_form_of_its_columns_default(default: str, written: str) -> None:
    """What the application compares as text has one form at every replica."""
    table = Table("t", ("id",), {"id": ColumnType.INT64, "at": ColumnType.TIMESTAMP})
    create = f"CREATE TABLE t (id INTEGER PRIMARY KEY, at DATETIME DEFAULT {default})"
    one, other = make(Path(":memory:"), {create: table}), make(Path(":memory:"), {create: table})
    with closing(one.client), closing(other.client):
        one.client.execute("INSERT INTO t (id) VALUES (1)")
        one.client.execute("INSERT INTO t VALUES (2, ?)", (written,))
        items = tuple(_item(c.key, c.after) for c in one.changes())
        items = tuple(replace(item, table="t") for item in items)

        batch = ApplyBatch(Position("s"), 1, items)
        apply_batch(other.client, writers(other.client, [table]), batch, 1, CLOCK_MS)

        assert other.rows("t") == one.rows("t")


def test_a_decimal_of_more_digits_than_a_number_holds_is_refused_when_applied() -> None:
    """A NUMERIC column would round it without a word."""
    table = Table("t", ("id",), {"id": ColumnType.INT64, "v": ColumnType.DECIMAL})
    made = make(Path(":memory:"), {"CREATE TABLE t (id INTEGER PRIMARY KEY, v NUMERIC)": table})
    with closing(made.client):
        after = '{"id":"1","v":"1234567890123456.789"}'
        items = (Item(ItemType.CHANGE, "t", '{"id":"1"}', "insert", after, CSN, 2),)

        done = apply_batch(
            made.client, writers(made.client, [table]), ApplyBatch(Position("s"), 1, items), 1, 0
        )

        (refused,) = done.refused
        assert refused.code == "type"
        assert "holds 1234567890123456.789 as 1234567890123456.8: declare it as" in refused.text


@pytest.mark.parametrize("declared", ["TEXT", "NUMERIC", "REAL", "INTEGER", "BLOB"])
@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
def test_a_column_of_every_affinity_takes_decimals_that_are_no_numbers(
    declared: str, value: str
) -> None:
    """In a key too; NaN is text there, because SQLite has no float that is none."""
    table = Table("t", ("k",), {"k": ColumnType.DECIMAL, "v": ColumnType.DECIMAL})
    create = f"CREATE TABLE t (k {declared} PRIMARY KEY, v {declared}) WITHOUT ROWID"
    one, other = make(Path(":memory:"), {create: table}), make(Path(":memory:"), {create: table})
    row = f'{{"k":"{value}","v":"{value}"}}'
    item = Item(ItemType.CHANGE, "t", f'{{"k":"{value}"}}', "insert", row, CSN, 2)
    batch = ApplyBatch(Position("s"), 1, (item,))
    with closing(one.client), closing(other.client):
        done = apply_batch(one.client, writers(one.client, [table]), batch, 1, CLOCK_MS)
        other.client.execute("INSERT INTO t VALUES (?, ?)", one.rows("t")[0])

        assert not done.refused
        assert [(change.key, change.after) for change in other.changes()] == [(item.key, row)]


@pytest.mark.parametrize("declared", ["REAL", "INTEGER"])
def test_a_strict_column_of_numbers_refuses_nan(declared: str) -> None:
    """The row is refused, and the rest of the batch is applied."""
    table = Table("t", ("id",), {"id": ColumnType.INT64, "v": ColumnType.DECIMAL})
    create = f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {declared}) STRICT"
    made = make(Path(":memory:"), {create: table})
    rows = [(1, "NaN"), (2, "7")]
    items = tuple(
        Item(ItemType.CHANGE, "t", f'{{"id":"{n}"}}', "insert", f'{{"id":"{n}","v":"{v}"}}', CSN, 2)
        for n, v in rows
    )
    with closing(made.client):
        done = apply_batch(
            made.client, writers(made.client, [table]), ApplyBatch(Position("s"), 1, items), 1, 0
        )

        assert [refused.code for refused in done.refused] == ["type"]
        assert made.client.execute("SELECT id FROM t").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (True, 1),
        (math.nan, "NaN"),
        (math.inf, math.inf),
        (Decimal("-0.50"), "-0.50"),
        (Decimal("1E+2"), "100"),
        (datetime(24, 2, 9, tzinfo=UTC), "0024-02-09T00:00:00.000000Z"),
        (Decimal("-NaN"), "NaN"),
        (Decimal("-Infinity"), "-Infinity"),
        (FarTime("-0043-03-15T12:00:00.000000Z"), "-0043-03-15T12:00:00.000000Z"),
        (b"\x00", b"\x00"),
        (None, None),
    ],
)
def test_values_are_held_in_the_form_that_the_triggers_expect(value: Value, held: object) -> None:
    """An applied row and a written one look the same."""
    assert stored(value) == held


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("BIGINT", Affinity.INTEGER),
        ("CHARINT", Affinity.INTEGER),
        ("varchar(9)", Affinity.TEXT),
        ("", Affinity.BLOB),
        ("DOUBLE", Affinity.REAL),
        ("DECIMAL(10, 2)", Affinity.NUMERIC),
    ],
)
def test_affinities_are_sqlites(declared: str, expected: Affinity) -> None:
    """The rules of SQLite's manual, in their order."""
    assert affinity(declared) is expected
