"""The wire: what is written is read back, text is canonical, columns agree with single records."""

import json
import math
import struct
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors import wire
from streaming.core.model.change import Change, Op
from streaming.core.model.errors import WireError
from streaming.core.model.far_time import FarTime
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Json, Value, from_json, json_text, to_json
from streaming.core.records.form import LABEL_CHARS
from streaming.core.records.record import (
    Abort,
    Applied,
    Commit,
    Goodbye,
    Heartbeat,
    Hello,
    Item,
    ItemType,
    PublishedSchema,
    RangeItem,
    Record,
    Refused,
    Snapshot,
    Update,
)
from tests.harness.far_times import FAR_TIMES
from tests.reference.wire import decode_update, encode_update, image_text, key_text

TABLE = Table(
    "all types",
    ("id", "code"),
    {"code": ColumnType.TEXT, "id": ColumnType.INT64} | {f"a {kind}": kind for kind in ColumnType},
)
CSN = "65e0f1c0000000010000"
SESSION = "0b6f6c3e-54f5-4a5b-8a0e-1d2f6c3e54f5"
RUV = Ruv("12ab").with_csn("65e0f1c0000000020000")


def _ruv(csns: list[str]) -> Ruv:
    ruv = Ruv("5f00")
    for csn in csns:
        ruv = ruv.with_csn(csn)
    return ruv


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
TEXTS = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(0, 2**63 - 1)
CSNS = st.integers(0, 2**80 - 1).map("{:020x}".format)
IMAGES = st.dictionaries(TEXTS, st.none() | st.booleans() | st.integers() | TEXTS).map(json_text)
RUVS = st.lists(CSNS, max_size=4).map(_ruv)
CHANGES = st.builds(
    lambda csn, op, after, **fields: Change(
        csn=csn,
        rid=int(csn[12:16], 16),
        op=op,
        after=after if op in (Op.INSERT, Op.UPDATE) else None,
        **fields,
    ),
    csn=CSNS,
    op=st.sampled_from(Op),
    after=IMAGES,
    epoch=NUMBERS,
    table=TEXTS,
    key=IMAGES,
    before=st.none() | IMAGES,
    prim_csn=st.none() | CSNS,
    opno=st.none() | NUMBERS.filter(bool),
    app=st.none() | TEXTS.map(lambda text: text[:LABEL_CHARS]),
)
SNAPSHOT_ROWS = st.builds(
    lambda csn, **fields: Change(
        csn=csn, rid=int(csn[12:16], 16), op=Op.INSERT, before=None, **fields
    ),
    csn=CSNS,
    epoch=NUMBERS,
    table=TEXTS,
    key=IMAGES,
    after=IMAGES,
    opno=st.none() | NUMBERS.filter(bool),
    snapshot=TEXTS,
)
VERSIONS = st.none() | st.lists(st.integers(1, 9), max_size=3).map(tuple)
RECORDS: st.SearchStrategy[Record] = st.one_of(
    CHANGES,
    st.builds(Commit, CSNS),
    st.builds(Abort, CSNS),
    st.builds(Applied, NUMBERS, NUMBERS, NUMBERS, RUVS, st.none() | NUMBERS),
    st.builds(
        Hello,
        *(NUMBERS, NUMBERS, NUMBERS, RUVS, st.none() | CSNS, st.booleans(), VERSIONS),
        *(st.none() | st.booleans(), st.none() | st.lists(st.text(), max_size=2).map(tuple)),
        *(st.none() | NUMBERS, st.none() | TEXTS, st.none() | NUMBERS),
    ),
    st.builds(Heartbeat, NUMBERS, st.none() | NUMBERS),
    st.builds(Goodbye, NUMBERS, NUMBERS),
    st.builds(Refused, NUMBERS, CSNS, TEXTS, IMAGES, TEXTS, TEXTS),
    st.builds(PublishedSchema, TEXTS, st.none() | IMAGES),
    st.builds(Snapshot, st.just("begin"), TEXTS, TEXTS),
    st.builds(Snapshot, st.just("end"), TEXTS, st.none(), NUMBERS),
    SNAPSHOT_ROWS,
)
ITEMS = st.builds(
    Item,
    st.sampled_from([ItemType.CHANGE, ItemType.REFRESH]),
    TEXTS,
    IMAGES,
    st.sampled_from(["insert", "update", "delete"]),
    st.none() | IMAGES,
    st.none() | CSNS,
    st.integers(0, 65_535),
    st.none() | CSNS,
    st.none() | TEXTS,
    st.lists(TEXTS, max_size=3).map(tuple),
)
RANGES = st.builds(
    RangeItem, TEXTS, st.none() | IMAGES, st.none() | IMAGES, NUMBERS, NUMBERS, st.booleans()
)
UPDATES = st.builds(
    Update,
    TEXTS,
    NUMBERS,
    TEXTS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
    RUVS,
    NUMBERS,
    NUMBERS,
    st.lists(ITEMS | RANGES, max_size=4).map(tuple),
).flatmap(
    lambda update: st.sampled_from(
        [update, *(replace(update, epochs=((n, len(update.items)),)) for n in (1, 2**40))]
    )
)


def _same(one: Value, other: Value) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other) or math.isnan(one + other)
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return (one.is_nan() and other.is_nan()) or one.compare(other) == 0
    return one == other and type(one) is type(other)


@given(st.data(), st.sampled_from(ColumnType))
def test_a_value_of_every_type_comes_back(data: st.DataObject, kind: ColumnType) -> None:
    """What one replica wrote is what the others store, to the last bit."""
    value = data.draw(VALUES[kind] | st.none())

    text = json_text(to_json(value, kind))

    assert _same(from_json(json.loads(text), kind), value)


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (ColumnType.INT64, 2**63 - 1, '"9223372036854775807"'),
        (ColumnType.INT32, -7, "-7"),
        (ColumnType.BOOL, True, "true"),
        (ColumnType.FLOAT64, math.nan, '"NaN"'),
        (ColumnType.FLOAT64, -math.inf, '"-Infinity"'),
        (ColumnType.FLOAT64, 1.0, "1.0"),
        (ColumnType.DECIMAL, Decimal("1E+3"), '"1000"'),
        (ColumnType.DECIMAL, Decimal("-0.50"), '"-0.50"'),
        (ColumnType.DECIMAL, Decimal("-NaN"), '"NaN"'),
        (ColumnType.DECIMAL, Decimal("-Infinity"), '"-Infinity"'),
        (ColumnType.BYTES, b"\x00\xff", '"AP8="'),
        (ColumnType.TEXT, 'é"\\\n\x00', '"é\\"\\\\\\n\\u0000"'),
        (
            ColumnType.TIMESTAMP,
            datetime(2024, 3, 1, 0, 59, 59, 1, timezone(timedelta(hours=1))),
            '"2024-02-29T23:59:59.000001Z"',
        ),
        (
            ColumnType.TIMESTAMP,
            FarTime("-0043-03-15T00:00:00.000000Z"),
            '"-0043-03-15T00:00:00.000000Z"',
        ),
        (ColumnType.TEXT, None, "null"),
    ],
)
def test_values_look_as_the_wire_says(kind: ColumnType, value: Value, text: str) -> None:
    """Agents in other languages rely on these very forms."""
    assert json_text(to_json(value, kind)) == text


@pytest.mark.parametrize(
    ("kind", "json_"),
    [
        (ColumnType.BOOL, 1),
        (ColumnType.INT32, True),
        (ColumnType.INT32, 2**31),
        (ColumnType.INT32, 1.0),
        (ColumnType.INT64, 5),
        (ColumnType.INT64, "5.0"),
        (ColumnType.INT64, str(2**63)),
        (ColumnType.INT64, "٣"),
        (ColumnType.FLOAT64, "inf"),
        (ColumnType.FLOAT64, "1.5"),
        (ColumnType.DECIMAL, "1e3"),
        (ColumnType.DECIMAL, "+Infinity"),
        (ColumnType.DECIMAL, "-NaN"),
        (ColumnType.DECIMAL, 1.5),
        (ColumnType.TEXT, "\ud800"),
        (ColumnType.BYTES, "A"),
        (ColumnType.BYTES, "é"),
        (ColumnType.TIMESTAMP, "2024-02-29 23:59:59"),
        (ColumnType.TIMESTAMP, "2023-02-29T23:59:59.000000Z"),
        (ColumnType.TIMESTAMP, "Infinity"),
    ],
)
def test_a_value_of_another_form_is_refused(kind: ColumnType, json_: Json) -> None:
    """Guessing at a value would make replicas differ."""
    with pytest.raises(WireError):
        from_json(json_, kind)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (ColumnType.INT32, 2**31),
        (ColumnType.INT64, True),
        (ColumnType.INT64, "1"),
        (ColumnType.FLOAT64, True),
        (ColumnType.DECIMAL, 1.5),
        (ColumnType.TEXT, b"a"),
        (ColumnType.TEXT, "\udc00"),
        (ColumnType.TIMESTAMP, datetime(2024, 1, 1)),  # noqa: DTZ001
    ],
)
def test_a_value_of_another_type_is_not_written(kind: ColumnType, value: Value) -> None:
    """A local time without zone, or a number that does not fit, has no place on the wire."""
    with pytest.raises(WireError):
        to_json(value, kind)


@given(st.data())
def test_an_image_comes_back(data: st.DataObject) -> None:
    """Keys stand in key order, images in schema order, whatever order the caller used."""
    values = {
        name: data.draw(VALUES[kind], name) for name, kind in reversed(list(TABLE.columns.items()))
    }

    image, key = image_text(values, TABLE), key_text(values, TABLE)

    assert list(json.loads(image)) == list(TABLE.columns)
    assert list(json.loads(key)) == ["id", "code"]
    back = wire.image_values(image, TABLE)
    assert all(_same(back[name], values[name]) for name in TABLE.columns)


def test_an_absent_column_stays_absent() -> None:
    """Absent is unknown, not null; the hub merges it with what it has."""
    text = image_text({"id": 1, "code": None}, TABLE)

    assert text == '{"code":null,"id":"1"}'
    assert wire.image_values(text, TABLE) == {"code": None, "id": 1}


@pytest.mark.parametrize("values", [{"id": 1}, {"id": 1, "code": None}])
def test_a_key_must_be_whole(values: dict[str, Value]) -> None:
    """Half a key names no row."""
    with pytest.raises(WireError, match="column code of the key of table all types"):
        key_text(values, TABLE)


def test_a_bad_column_is_named() -> None:
    """An operator must see which column is meant."""
    with pytest.raises(WireError, match="column id: 'x' is not a value of type int64"):
        wire.image_values('{"id":"x"}', TABLE)
    with pytest.raises(WireError, match="column other is not in table all types"):
        wire.image_values('{"other":1}', TABLE)


@given(TEXTS.filter(lambda text: 0 < len(text) <= 200), RECORDS)
def test_a_record_comes_back(session: str, record: Record) -> None:
    """The agent reads its own topic at every start."""
    assert wire.decode(wire.encode(session, record)) == (session, record)


def test_a_change_looks_as_the_wire_says() -> None:
    """Absent fields are left out; key and images are objects, not strings."""
    key = '{"id":"1"}'
    change = Change(CSN, 1, 7, 'a"b', key, Op.DELETE, None, '{"id":"1","x":2}', CSN, 3)

    assert wire.encode("s", change).decode() == (
        '{"v":1,"kind":"change","session":"s","csn":"65e0f1c0000000010000",'
        '"prim_csn":"65e0f1c0000000010000","epoch":7,"table":"a\\"b","key":{"id":"1"},'
        '"op":"delete","before":{"id":"1","x":2},"after":null,"opno":3}'
    )


def test_a_hello_looks_as_the_wire_says() -> None:
    """The RUV stands in the text form of 389 Directory Server."""
    hello = Hello(3, 4, 1, RUV, None, lost=False)

    assert wire.encode("s", hello).decode() == (
        '{"v":1,"kind":"hello","session":"s","epoch":3,"covers":4,"generation":1,'
        '"ruv":["{replicageneration} 12ab",'
        '"{replica 2} 65e0f1c0000000020000 65e0f1c0000000020000"],"own":null,"lost":false}'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nothing", "not one JSON object in UTF-8"),
        ("[]", "not one JSON object: got the array"),
        ('{"kind":"commit"}', "field v"),
        ('{"v":2,"kind":"commit"}', "field v: 2 is newer"),
        ('{"v":true,"kind":"commit"}', "field v"),
        ('{"v":1,"kind":"dance","session":"s"}', "field kind"),
        (f'{{"v":1,"kind":"commit","session":7,"prim_csn":"{CSN}"}}', "field session"),
        ('{"v":1,"kind":"commit","session":"s","prim_csn":"0"}', "field prim_csn"),
        ('{"v":1,"kind":"heartbeat","session":"s","epoch":-1}', "field epoch"),
        ('{"v":1,"kind":"applied","session":"s","epoch":1,"covers":"2"}', "field covers"),
        (
            '{"v":1,"kind":"applied","session":"s","epoch":1,"covers":2,"generation":1,"ruv":[1]}',
            "field ruv",
        ),
        (
            '{"v":1,"kind":"applied","session":"s","epoch":1,"covers":2,"generation":1,"ruv":["x"]}',
            "field ruv",
        ),
        (
            f'{{"v":1,"kind":"change","session":"s","csn":"{CSN}","op":"insert","after":null}}',
            "missing: epoch, table",
        ),
        (
            f'{{"v":1,"kind":"change","session":"s","csn":"{CSN}","epoch":1,"table":"t","op":"upsert"}}',
            "field op",
        ),
        ('{"v":1,"kind":"snapshot","session":"s"}', "field begin or row or end"),
    ],
)
def test_an_error_names_the_field(text: str, said: str) -> None:
    """An operator must see what is wrong with a record."""
    with pytest.raises(WireError, match=said):
        wire.decode(text.encode())


def test_bytes_that_are_not_utf8_are_refused() -> None:
    """Every record is UTF-8."""
    with pytest.raises(WireError, match="not one JSON object in UTF-8"):
        wire.decode(b'{"v":1,"kind":"\xff"}')


@given(UPDATES)
def test_an_update_comes_back(update: Update) -> None:
    """What the hub sends is what the agent reads."""
    assert decode_update(encode_update(update)) == update


@given(UPDATES)
def test_an_update_composed_of_ready_items_is_the_same(update: Update) -> None:
    """The hub's hot path writes what the plain encoder writes."""
    texts = [wire.item_text(item) for item in update.items]

    assert wire.update_of(update, ",".join(texts).encode()) == encode_update(update)


def in_column(item: Item, name: str) -> object:
    """A member of an item as its column holds it."""
    value = getattr(item, name)
    return value if name != "unset" else json_text(value) if value else None


@given(st.lists(ITEMS, max_size=8), st.sampled_from([pa.string(), pa.large_string()]))
def test_items_in_columns_are_the_same(items: list[Item], text_type: pa.DataType) -> None:
    """One rule, two encoders: by record and by column."""
    names = ("type", "table", "key", "op", "after", "csn", "author", "prim_csn", "cause", "unset")
    kinds = [pa.int32() if name == "author" else text_type for name in names]
    columns = [
        pa.chunked_array([pa.array([in_column(item, name) for item in items], kind)])
        for name, kind in zip(names, kinds, strict=True)
    ]

    texts = wire.items_text(pa.table(columns, names=list(names)))

    assert texts.to_pylist() == [wire.item_text(item) for item in items]
