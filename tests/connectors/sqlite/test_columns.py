"""Every column type comes through SQLite, the trigger, the wire and SQLite again as it was."""

import math
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import wire
from connectors.sqlite.apply import apply_batch
from connectors.sqlite.columns import Affinity, affinity, stored
from streaming.core.delivery.consumer import ApplyBatch, Position
from streaming.core.model.record import Item, ItemType
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value
from tests.connectors.sqlite.sqlite_replica import Replica, make

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
    ColumnType.DECIMAL: st.decimals(allow_nan=False, allow_infinity=False),
    ColumnType.TEXT: st.text(st.characters(codec="utf-8")),
    ColumnType.BYTES: st.binary(),
    ColumnType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
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
    return one == other


@given(ROWS)
def test_a_row_of_all_types_is_captured_and_applied_as_it_was(row: dict[str, Value]) -> None:
    """Text that one replica publishes makes the same row at another, to the last bit."""
    values = [stored(row[f"a {kind}"]) for kind in DECLARED]
    marks = ", ".join("?" * len(values))
    with replica() as origin, replica() as consumer:
        origin.client.execute(f'INSERT INTO "all" VALUES (1, {marks})', values)
        (change,) = origin.changes()
        batch = ApplyBatch(Position("s"), 1, (_item(change.key, change.after),))

        apply_batch(consumer.client, {"all": TABLE}, batch, 1, CLOCK_MS)

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
        (ColumnType.DECIMAL, ".5"),
        (ColumnType.TEXT, b"x"),
        (ColumnType.BYTES, "x"),
        (ColumnType.TIMESTAMP, "2024-02-29 23:59:59"),
        (ColumnType.TIMESTAMP, "2023-02-29T23:59:59.000000Z"),
        (ColumnType.TIMESTAMP, "0000-01-01T00:00:00.000000Z"),
        (ColumnType.TIMESTAMP, "2024-02-29T24:00:00.000000Z"),
        (ColumnType.TIMESTAMP, 1_709_000_000),
    ],
)
def test_a_value_of_another_type_is_refused(kind: ColumnType, value: object) -> None:
    """SQLite lets any value into any column."""
    with replica() as origin, pytest.raises(sqlite3.IntegrityError, match=f"a {kind} of table all"):
        origin.client.execute(f'INSERT INTO "all" (id, "a {kind}") VALUES (1, ?)', (value,))


@pytest.mark.parametrize(
    ("value", "held"),
    [
        (True, 1),
        (math.nan, "NaN"),
        (math.inf, math.inf),
        (Decimal("-0.50"), "-0.50"),
        (Decimal("1E+2"), "100"),
        (datetime(24, 2, 9, tzinfo=UTC), "0024-02-09T00:00:00.000000Z"),
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
