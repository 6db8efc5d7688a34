"""Validate finds the first broken rule of every bad record, and lets every good one through."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from connectors import wire
from connectors.memory import Topics
from streaming.core.change import Change, Op
from streaming.core.errors import RuvError, WireError
from streaming.core.record import Reason
from streaming.core.ruv import parse_ruv
from streaming.core.table import ColumnType, Table
from streaming.core.values import Value, from_json, json_text, to_json
from streaming.stages import facts as facts_stage
from streaming.stages.parse import parse
from streaming.stages.skim import settle, skim
from streaming.stages.validate import FACTS, validate
from tests.streaming.stages.said import (
    CONTROL,
    CSN,
    SESSION,
    TABLES,
    TIME_S,
    TOPIC,
    TOPICS,
    change,
    control,
    keyed,
    typed,
)

RECORD_BYTES = 1_000
SKEW_S = 86_400
LIMITS = {"record_bytes": RECORD_BYTES, "skew_s": SKEW_S}
OTHER_CSN = "65e0f1c0000a00020000"
Row = dict[str, Any]


def padded(size: int) -> bytes:
    """A good change of exactly so many bytes."""
    fill = size - len(change(after='{"id":"1","name":"","qty":5}'))
    return change(after=f'{{"id":"1","name":"{"x" * fill}","qty":5}}')


def lines(key: str, after: str | None = None, op: str = '"delete"') -> bytes:
    """A change of the table with a key of two columns that is not in the order of its columns."""
    return change(table='"lines"', key=key, op=op, after=after)


GOOD: dict[str, bytes] = {
    "insert": change(),
    "update": change(op='"update"'),
    "update with before": change(op='"update"', before='{"id":"1","name":null,"qty":0}'),
    "update with a part of before": change(op='"update"', before='{"id":"1"}'),
    "delete": change(op='"delete"', after=None),
    "delete with null": change(op='"delete"', after="null"),
    "delete with before": change(op='"delete"', after=None, before='{"id":"1","name":"a","qty":5}'),
    "truncate": change(op='"truncate"', key=None, after=None),
    "truncate with an empty key": change(op='"truncate"', key="{}", after=None),
    "in a transaction": change(prim_csn='"65e0f1c0000900010000"'),
    "its first": change(prim_csn=f'"{CSN}"'),
    "no transaction": change(prim_csn="null"),
    "numbered": change(opno="1"),
    "not numbered": change(opno="null"),
    "epoch 0": change(epoch="0"),
    "largest epoch": change(epoch=str(2**63 - 1)),
    "unknown field": change(seen="5", more='{"v":{"v":{"after":{"id":"2"}}}}'),
    "CSN of decimal digits": change(csn='"65000000000000010000"'),
    "null in a column": change(after='{"id":"1","name":null,"qty":null}'),
    "part of an image": change(after='{"id":"1","qty":5}'),
    "image without its key": change(after='{"name":"a","qty":5}'),
    "empty image": change(after="{}"),
    "blanks": change().replace(b":", b" : ").replace(b",", b" ,\n"),
    "another order of columns": change(after='{"qty":5,"name":"a","id":"1"}'),
    "largest size": padded(RECORD_BYTES),
    "two key columns": lines('{"item":"a","order":"1"}'),
    "two key columns in an image": lines(
        '{"item":"a","order":"1"}', '{"order":"1","item":"a","price":"1.50"}', '"insert"'
    ),
    **{kind: control(kind) for kind in CONTROL},
    "first hello": control("hello", own="null", ruv="[]", covers="0", epoch="0", generation="0"),
    "hello without own": control("hello", own=None),
    "hello that lost": control("hello", lost="true"),
    "heartbeat of session 5": control("heartbeat", session='"5"'),
    "end of a snapshot": control("snapshot", begin=None, end='{"id":"s1","count":0}'),
}

BAD: dict[str, tuple[Reason, str, bytes]] = {
    "no JSON": (Reason.JSON, "not one JSON object", b"{"),
    "an array": (Reason.JSON, "not one JSON object", b"[1]"),
    "not UTF-8": (Reason.JSON, "UTF-8", b'{"v":1,"kind":"\xff"}'),
    "garbage behind": (Reason.JSON, "", change() + b"}"),
    "empty object": (Reason.VERSION, "v is missing", b"{}"),
    "no v": (Reason.VERSION, "v is missing", change(v=None)),
    "v null": (Reason.VERSION, "v is missing", change(v="null")),
    "v a string": (Reason.VERSION, "v is missing", change(v='"1"')),
    "v a fraction": (Reason.VERSION, "v is missing", change(v="1.0")),
    "v true": (Reason.VERSION, "v is missing", change(v="true")),
    "v 0": (Reason.VERSION, "v is missing", change(v="0")),
    "v 2": (Reason.VERSION, "v is 2: upgrade", change(v="2")),
    "v huge": (Reason.VERSION, "", change(v=str(10**30))),
    "no kind": (Reason.KIND, "kind is missing", change(kind=None)),
    "unknown kind": (Reason.KIND, "unknown kind 'chance'", change(kind='"chance"')),
    "kind in capitals": (Reason.KIND, "'CHANGE'", change(kind='"CHANGE"')),
    "kind an object": (Reason.KIND, "unknown kind", change(kind="{}")),
    "no csn": (Reason.KIND, "missing: csn", change(csn=None)),
    "csn null": (Reason.KIND, "missing: csn", change(csn="null")),
    "no epoch, no op": (Reason.KIND, "missing: epoch, op", change(epoch=None, op=None)),
    "no table": (Reason.KIND, "missing: table", change(table=None)),
    "no key": (Reason.KIND, "missing: key", change(key=None)),
    "key null": (Reason.KIND, "missing: key", change(key="null", op='"delete"', after=None)),
    "no after": (Reason.KIND, "missing: after", change(after=None)),
    "after null": (Reason.KIND, "missing: after", change(after="null", op='"update"')),
    "after an array": (Reason.KIND, "after is not an object", change(after='[{"id":"1"}]')),
    "after a number": (Reason.KIND, "after is not an object", change(after="5")),
    "after a string": (
        Reason.KIND,
        "after is not an object",
        change(after='"{\\"id\\":\\"1\\",\\"name\\":\\"a\\",\\"qty\\":5}"'),
    ),
    "delete with after": (Reason.KIND, "op is delete", change(op='"delete"')),
    "delete with a number": (Reason.KIND, "op is delete", change(op='"delete"', after="5")),
    "truncate with after": (Reason.KIND, "op is truncate", change(op='"truncate"', key=None)),
    "before a string": (Reason.KIND, "before is not", change(before='"{\\"id\\":\\"1\\"}"')),
    "unknown op": (Reason.KIND, "unknown op 'upsert'", change(op='"upsert"')),
    "epoch a string": (Reason.KIND, "wrong type: epoch", change(epoch='"3"')),
    "epoch a fraction": (Reason.KIND, "wrong type: epoch", change(epoch="3.0")),
    "epoch too large": (Reason.KIND, "wrong type: epoch", change(epoch=str(2**63))),
    "epoch negative": (Reason.KIND, "below 0", change(epoch="-1")),
    "opno a string": (Reason.KIND, "wrong type: opno", change(opno='"1"')),
    "opno 0": (Reason.KIND, "opno is below 1", change(opno="0")),
    "opno negative": (Reason.KIND, "opno is below 1", change(opno="-5")),
    "refused key no object": (Reason.KIND, "key is not", control("refused", key='["1"]')),
    "snapshot of nothing": (Reason.KIND, "none of begin", control("snapshot", begin=None)),
    "snapshot no object": (Reason.KIND, "none of begin", control("snapshot", begin='"x"')),
    **{
        f"{kind} without {name}": (Reason.KIND, f"missing: {name}", control(kind, **{name: None}))
        for kind, fields in CONTROL.items()
        for name in fields
        if name not in {"own", "begin"}
    },
    **{
        f"{kind} with {name} of a wrong type": (Reason.KIND, name, control(kind, **{name: '"x"'}))
        for kind, fields in CONTROL.items()
        for name in ("epoch", "covers", "generation", "lost", "hub_epoch", "ruv")
        if name in fields
    },
    "covers negative": (Reason.KIND, "below 0", control("applied", covers="-1")),
    "ruv of numbers": (Reason.KIND, "ruv", control("applied", ruv="[1]")),
    "ruv with null": (Reason.KIND, "ruv", control("applied", ruv="[null]")),
    "ruv without brace": (Reason.KIND, "ruv", control("hello", ruv=f'["replica 1 {CSN}"]')),
    "ruv of a bad CSN": (Reason.KIND, "ruv", control("hello", ruv='["{replica 1} 5f"]')),
    "own no CSN": (Reason.KIND, "own", control("hello", own='"5f"')),
    "csn in capitals": (Reason.CSN, "20 lower-case", change(csn=f'"{CSN.upper()}"')),
    "csn too short": (Reason.CSN, "csn", change(csn=f'"{CSN[1:]}"')),
    "csn too long": (Reason.CSN, "csn", change(csn=f'"{CSN}0"')),
    "csn with a line break": (Reason.CSN, "csn", change(csn=f'"{CSN}\\n"')),
    "csn empty": (Reason.CSN, "csn", change(csn='""')),
    "csn of no hex digits": (Reason.CSN, "'-ffffffff", change(csn='"-ffffffff00000010000"')),
    "csn a number": (Reason.CSN, "csn", change(csn="65000000000000010000")),
    "prim_csn no CSN": (Reason.CSN, "prim_csn is not", change(prim_csn='"x"')),
    "prim_csn of a commit": (Reason.CSN, "prim_csn is not", control("commit", prim_csn='"X"')),
    "csn of a refused": (Reason.CSN, "csn is not", control("refused", csn='"65e0"')),
    "csn of another": (Reason.RID, "csn is of rid 2", change(csn=f'"{OTHER_CSN}"')),
    "prim_csn of another": (Reason.RID, "prim_csn is of", change(prim_csn=f'"{OTHER_CSN}"')),
    "abort of another": (Reason.RID, "prim_csn is of", control("abort", prim_csn=f'"{OTHER_CSN}"')),
    "own of another": (Reason.RID, "own is of", control("hello", own=f'"{OTHER_CSN}"')),
    "unknown table": (Reason.TABLE, "not in the config", change(table='"Orders"')),
    "table a number": (Reason.TABLE, "not in the config", change(table="5")),
    "unknown column": (Reason.TABLE, '"more"', change(after='{"id":"1","more":1}')),
    "unknown column before": (Reason.TABLE, '"more"', change(before='{"id":"1","more":1}')),
    "column in capitals": (Reason.TABLE, '"QTY"', change(after='{"id":"1","name":"a","QTY":5}')),
    "column twice": (Reason.TABLE, "twice", change(after='{"id":"1","name":"a","qty":5,"qty":5}')),
    "wrong type": (
        Reason.TABLE,
        '"qty" is no int32',
        change(after='{"id":"1","name":"a","qty":"5"}'),
    ),
    "wrong type before": (Reason.TABLE, "int32", change(before='{"id":"1","name":"a","qty":"5"}')),
    "nested": (Reason.TABLE, "is no text", change(after='{"id":"1","name":{"a":"b"},"qty":5}')),
    "array": (Reason.TABLE, "is no text", change(after='{"id":"1","name":["b"],"qty":5}')),
    "null in after's key": (Reason.TABLE, '"id" is no', change(after='{"id":null,"qty":5}')),
    "null in before's key": (Reason.TABLE, '"id" is no', change(before='{"id":null}')),
    "key empty": (Reason.KEY, 'must be "id"', change(key="{}")),
    "key a string": (Reason.KEY, "not an object", change(key='"{\\"id\\":\\"1\\"}"')),
    "key an array": (Reason.KEY, "not an object", change(key='["1"]')),
    "key of another column": (Reason.KEY, "must be", change(key='{"qty":5}')),
    "key with another column": (Reason.KEY, "must be", change(key='{"id":"1","qty":5}')),
    "key twice": (Reason.KEY, "must be", change(key='{"id":"1","id":"1"}')),
    "key of null": (
        Reason.KEY,
        "is no int64",
        change(key='{"id":null}', op='"delete"', after=None),
    ),
    "key not canonical": (
        Reason.KEY,
        "is no int64 '\"01\"'",
        change(key='{"id":"01"}', op='"delete"', after=None),
    ),
    "key of a wrong type": (
        Reason.KEY,
        "is no int64",
        change(key='{"id":1}', op='"delete"', after=None),
    ),
    "key in another order": (Reason.KEY, '"item", "order"', lines('{"order":"1","item":"a"}')),
    "half a key": (Reason.KEY, "must be", lines('{"item":"a"}')),
    "key other than the image's": (Reason.KEY, 'another "id"', change(key='{"id":"2"}')),
    "truncate with a key": (Reason.KEY, "no key", change(op='"truncate"', after=None)),
    "too large": (Reason.SIZE, "1001 bytes, 1000", padded(RECORD_BYTES + 1)),
    "too large a heartbeat": (Reason.SIZE, "", control("heartbeat", more=f'"{"x" * 1000}"')),
    "no session": (Reason.SESSION, "missing", change(session=None)),
    "session null": (Reason.SESSION, "missing", control("heartbeat", session="null")),
    "session empty": (Reason.SESSION, "missing", change(session='""')),
    "session a number": (Reason.SESSION, "no string", change(session="5")),
    "session an object": (Reason.SESSION, "no string", control("hello", session='{"id": 5}')),
}
"""Name -> its reason, what the detail says, and the record."""

FIRST: dict[Reason, bytes] = {
    Reason.VERSION: change(v="2", kind='"x"'),
    Reason.KIND: change(epoch=None, csn='"x"'),
    Reason.CSN: change(csn=f'"{OTHER_CSN.upper()}"'),
    Reason.RID: change(csn=f'"{OTHER_CSN}"', table='"x"'),
    Reason.TABLE: change(table='"x"', key='{"x":1}'),
    Reason.KEY: change(key='{"x":1}', more=f'"{"x" * RECORD_BYTES}"'),
    Reason.SIZE: change(csn='"ffffffff000000010000"', more=f'"{"x" * RECORD_BYTES}"'),
    Reason.SKEW: change(csn='"ffffffff000000010000"', session=None),
}
"""Records that break the rule and a later one."""

TIMES: dict[str, tuple[int, bool, bytes]] = {
    "as far ahead as may be": (0, True, change()),
    "a millisecond further": (-1, False, change()),
    "prim_csn as far": (0, True, change(prim_csn=f'"{CSN}"')),
    "prim_csn further": (0, False, change(prim_csn='"65e0f1c1000000010000"')),
    "commit as far": (0, True, control("commit")),
    "commit further": (-1, False, control("commit")),
    "own may be anywhere": (-1, True, control("hello")),
}
"""Name -> the record's time against the limit in milliseconds, whether it is good, the record."""

TOKENS = (
    *("null", "true", "false", "0", "-0", "1", "-1", "5.0", "1e2", "0.0", "-0.0", "1.10", "1E5"),
    *("2147483647", "2147483648", "-2147483648", "-2147483649", "2099999999", "2100000000"),
    *("999999999", "-999999999", "9999999999", "1e400", "-1e400", "1e308", "1.8e308", "1e-400"),
    *("123456789012345678901234567890123456789.5", "1" + "0" * 400, "0." + "1" * 100),
    *('"0"', '"-0"', '"1"', '"01"', '"+1"', '"1.0"', '""', '" 1"', '"1 "', '"1\\n"', '"-"'),
    *('"9223372036854775807"', '"9223372036854775808"', '"8999999999999999999"'),
    *('"-9223372036854775808"', '"-9223372036854775809"', '"-9000000000000000000"', '"1e5"'),
    *('"NaN"', '"Infinity"', '"-Infinity"', '"nan"', '"+Infinity"', '"1.50"', '"-1.5"', '".5"'),
    *('"1."', '"00.5"', '"-0.0"', '"1,5"', '"1234567890123456789012345678901234567890.5"'),
    *('"a"', '"é"', '"\\u00e9"', '"\\u001f"', '"\\u0000"', '"\\n"', '"\\/"', '"\\\\"', '"\\""'),
    *('"😀"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\ude00\\ud83d"', '"\\\\ud83d"'),
    *('"\\ud83dx\\ude00"', '"{}"', '"a,b:c"', '"ÿ\u2028"', '"true"', '"null"'),
    *('"AA=="', '"AB=="', '"AAA="', '"AAB="', '"AAAA"', '"A"', '"AAA"', '"AA==AAAA"', '"AA-_"'),
    *('"2024-02-29T23:59:59.000001Z"', '"2023-02-29T00:00:00.000000Z"'),
    *('"1900-02-29T00:00:00.000000Z"', '"2000-02-29T00:00:00.000000Z"'),
    *('"2024-04-31T00:00:00.000000Z"', '"2024-04-30T00:00:00.000000Z"'),
    *('"2024-12-31T24:00:00.000000Z"', '"2024-12-31T23:60:00.000000Z"'),
    *('"2024-12-31T23:59:60.000000Z"', '"2024-13-01T00:00:00.000000Z"'),
    *('"2024-00-10T00:00:00.000000Z"', '"2024-01-00T00:00:00.000000Z"'),
    *('"0000-01-01T00:00:00.000000Z"', '"0001-01-01T00:00:00.000000Z"'),
    *('"9999-12-31T23:59:59.999999Z"', '"10000-01-01T00:00:00.000000Z"'),
    *('"2024-02-29T23:59:59Z"', '"2024-02-29T23:59:59.000001+00:00"'),
    *('"2024-02-29 23:59:59.000001Z"', '"2024-02-29T23:59:59.000001z"', '"2024-02-29"'),
    *("{}", "[]", '{"a":1}', "[1]"),
)
"""JSON values around the edges of every type."""


def fits(kind: ColumnType, token: str) -> bool:
    """What the wire module says: the value is read, and written again the same."""
    given = json.loads(token)
    try:
        value = from_json(given, kind)
    except (WireError, OverflowError):
        return False
    if kind is ColumnType.FLOAT64 and not isinstance(given, str):
        return given is None or math.isfinite(float(given))
    written = json_text(to_json(value, kind))
    return kind in (ColumnType.TEXT, ColumnType.FLOAT64) or written == canonical(token)


def canonical(token: str) -> str:
    """A token with no more escapes than needed."""
    return json_text(json.loads(token)) if token.startswith('"') else token


def run(
    spark: SparkSession,
    records: Sequence[tuple[int, bytes]],
    limits: Mapping[str, int] | None = None,
    *tables: Table,
) -> list[Row]:
    """The facts of records (time_ms, value), in their order; the same from both ways to them."""
    topics = Topics()
    for time_ms, value in records:
        topics.append(TOPIC, value, time_ms)
    known = {**TABLES, **{table.name: table for table in tables}}
    frame, limited = topics.frame(spark), {**LIMITS, **(limits or {})}

    found = validate(parse(frame, TOPICS), known, **limited).toArrow().sort_by("offset")
    skimmed = skim(frame, TOPICS, known, **limited).toArrow()
    quick = settle(skimmed, spark, TOPICS, known, **limited).sort_by("offset")

    rows: list[Row] = found.to_pylist()
    other = [pair for pair in zip(quick.to_pylist(), rows, strict=True) if pair[0] != pair[1]]
    assert other == []
    return rows


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> Mapping[bytes, Row]:
    """The facts of all records above but those of TIMES."""
    values = [*GOOD.values(), *(value for _, _, value in BAD.values()), *FIRST.values()]
    for kind in ColumnType:
        for token in TOKENS:
            values += [typed(kind, token), typed(kind, token, blank=" ")]
            values += [keyed(kind, token), keyed(kind, token, blank=" ")]
    rows = run(spark, [(TIME_S * 1000, value) for value in values])
    return dict(zip(values, rows, strict=True))


@pytest.mark.parametrize("name", GOOD)
def test_a_good_record_passes(judged: Mapping[bytes, Row], name: str) -> None:
    """Quarantine of a good record would be an update lost."""
    row = judged[GOOD[name]]

    assert (row["reason"], row["detail"]) == (None, None)
    assert row["session"] in {SESSION, "5"}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_record_has_its_reason(judged: Mapping[bytes, Row], name: str) -> None:
    """An operator sees which rule it breaks, and where, with its bytes."""
    reason, detail, value = BAD[name]

    row = judged[value]

    assert row["reason"] == reason
    assert detail in row["detail"]
    assert len(row["detail"]) < 400
    assert row["value"] == value


@pytest.mark.parametrize("reason", FIRST)
def test_the_first_broken_rule_counts(judged: Mapping[bytes, Row], reason: Reason) -> None:
    """The order of the rules does not depend on who looks."""
    assert judged[FIRST[reason]]["reason"] == reason


def test_skew_is_measured_against_the_records_own_time(spark: SparkSession) -> None:
    """A wall clock would make the verdict depend on when the batch is run."""
    limit_ms = (TIME_S - SKEW_S) * 1000

    rows = run(spark, [(limit_ms + after_ms, value) for after_ms, _, value in TIMES.values()])

    expected = [None if good else Reason.SKEW for _, good, _ in TIMES.values()]
    assert [row["reason"] for row in rows] == expected


@pytest.mark.parametrize("kind", ColumnType)
def test_a_value_fits_its_column_or_not(judged: Mapping[bytes, Row], kind: ColumnType) -> None:
    """Both ways to look at an image must say what the consumer's reading of it says."""
    for token in TOKENS:
        expected = None if fits(kind, token) else Reason.TABLE
        for blank in ("", " "):
            row = judged[typed(kind, token, blank=blank)]
            assert row["reason"] == expected, (token, blank, row["detail"])
            if expected is None:
                image = json.dumps({"id": "1", **dict.fromkeys(ColumnType), kind: 0})
                text = image.replace(" ", "").replace(f'"{kind}":0', f'"{kind}":{canonical(token)}')
                assert row["after"] == text


@pytest.mark.parametrize("kind", ColumnType)
def test_a_key_fits_its_columns_or_not(judged: Mapping[bytes, Row], kind: ColumnType) -> None:
    """One row must have one key text, whoever wrote it."""
    for token in TOKENS:
        expected = None if fits(kind, token) and token != "null" else Reason.KEY
        for blank in ("", " "):
            row = judged[keyed(kind, token, blank=blank)]
            assert row["reason"] == expected, (token, blank, row["detail"])
            if expected is None:
                assert row["key"] == f'{{"k":{canonical(token)}}}'


def test_facts_have_the_columns_that_the_driver_reads(spark: SparkSession) -> None:
    """Names, order and types are the seam between executors and driver."""
    topics = Topics()
    topics.append(TOPIC, change(), TIME_S * 1000)

    found = skim(topics.frame(spark), TOPICS, TABLES).toArrow()

    assert tuple(found.column_names) == FACTS
    expected = {field.name: field.type for field in facts_stage.FACTS}
    assert {field.name: field.type for field in found.schema} == expected


def test_only_a_good_change_gives_up_its_bytes(judged: Mapping[bytes, Row]) -> None:
    """Its facts say all of it; control records are decoded from their bytes."""
    for value, row in judged.items():
        good_change = row["reason"] is None and row["kind"] == "change"
        assert row["value"] == (None if good_change else value)


def test_nothing_is_believed_of_what_is_no_json(judged: Mapping[bytes, Row]) -> None:
    """Half a record may look like another one."""
    row = judged[BAD["garbage behind"][2]]

    known = {name for name, value in row.items() if value is not None}
    assert known == {"rid", "offset", "time", "reason", "detail", "partial", "value"}


def test_an_image_that_lacks_columns_is_partial(judged: Mapping[bytes, Row]) -> None:
    """It must be merged over the row; a key column is known from the key and filled in."""
    expected = {
        "insert": (False, '{"id":"1","name":"a","qty":5}'),
        "part of an image": (True, '{"id":"1","qty":5}'),
        "image without its key": (False, '{"id":"1","name":"a","qty":5}'),
        "empty image": (True, '{"id":"1"}'),
        "another order of columns": (False, '{"id":"1","name":"a","qty":5}'),
        "update with a part of before": (False, '{"id":"1","name":"a","qty":5}'),
        "delete": (False, None),
        "truncate": (False, None),
    }

    found = {name: judged[GOOD[name]] for name in expected}

    assert {name: (row["partial"], row["after"]) for name, row in found.items()} == expected


def test_what_is_written_otherwise_is_the_same_change(judged: Mapping[bytes, Row]) -> None:
    """A repeat by an agent of another version must be known as a repeat."""
    spellings = ("insert", "blanks", "another order of columns", "image without its key")

    found = {judged[GOOD[name]]["content"] for name in spellings}

    assert len(found) == 1


def test_a_truncate_has_no_key(judged: Mapping[bytes, Row]) -> None:
    """An empty object is none either."""
    found = {judged[GOOD[name]]["key"] for name in ("truncate", "truncate with an empty key")}

    assert found == {None}


WILD = Table(
    'a "wild" täble|',
    ("id", 'k "1"'),
    {
        'k "1"': ColumnType.TEXT,
        "after": ColumnType.TEXT,
        "id": ColumnType.INT64,
        **{f"{kind}\\ ü.*": kind for kind in ColumnType},
    },
)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
VALUES: dict[ColumnType, st.SearchStrategy[Value]] = {
    ColumnType.BOOL: st.booleans(),
    ColumnType.INT32: st.integers(-(2**31), 2**31 - 1),
    ColumnType.INT64: st.integers(-(2**63), 2**63 - 1),
    ColumnType.FLOAT64: st.floats(),
    ColumnType.DECIMAL: st.decimals(-(10**20), 10**20, places=3) | st.integers().map(Decimal),
    ColumnType.TEXT: TEXTS,
    ColumnType.BYTES: st.binary(max_size=20),
    ColumnType.TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
}
KEYS = st.fixed_dictionaries({name: VALUES[WILD.columns[name]] for name in WILD.key})
OTHERS = st.fixed_dictionaries(
    {},
    optional={
        name: st.none() | VALUES[kind]
        for name, kind in WILD.columns.items()
        if name not in WILD.key
    },
)
NUMBERS = st.integers(0, 2**63 - 1)
CSNS = st.integers(TIME_S - 10**8, TIME_S).map("{:08x}000a00010000".format)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """Any good change of the table WILD."""
    key, op = draw(KEYS), draw(st.sampled_from([Op.INSERT, Op.UPDATE, Op.DELETE]))
    after, before = ({**draw(OTHERS), **key} for _ in range(2))
    return Change(
        csn=draw(CSNS),
        rid=1,
        epoch=draw(NUMBERS),
        table=WILD.name,
        key=wire.key_text(key, WILD),
        op=op,
        after=None if op is Op.DELETE else wire.image_text(after, WILD),
        before=draw(st.none() | st.just(wire.image_text(before, WILD))),
        prim_csn=draw(st.none() | CSNS),
        opno=draw(st.none() | NUMBERS.filter(bool)),
    )


def spellings(change: Change) -> list[bytes]:
    """A change as wire writes it, and as other writers might."""
    value = wire.encode(SESSION, change)
    fields = json.loads(value)
    for name in ("after", "before"):
        if fields.get(name):
            fields[name] = dict(reversed(fields[name].items()))
    blanks = json.dumps(fields, ensure_ascii=False, indent=1)
    return [value, blanks.encode(), json.dumps(json.loads(value)).encode()]


def test_facts_of_any_good_change_are_cores(spark: SparkSession) -> None:
    """A duplicate is told by its content, which core calculates too, however it was written."""
    drawn: list[Change] = []

    @given(changes())
    @settings(max_examples=300, deadline=None, database=None)
    def draw(change: Change) -> None:
        drawn.append(change)

    draw()
    records = [(TIME_S * 1000, value) for said in drawn for value in spellings(said)]

    rows = run(spark, records, {"record_bytes": 10**6}, WILD)

    for row, said in zip(rows, [one for one in drawn for _ in range(3)], strict=True):
        lacks = said.after is not None and len(json.loads(said.after)) < len(WILD.columns)
        assert (row["reason"], row["detail"]) == (None, None)
        assert {name: row[name] for name in Change.__slots__} == asdict(said)
        assert row["content"] == said.content
        assert row["partial"] == lacks


def test_a_table_of_many_columns_is_read_all_the_same(spark: SparkSession) -> None:
    """Its pattern would be too long; then every change is taken apart."""
    names = [f"column_{number:03}" for number in range(400)]
    wide = Table("wide", ("column_000",), dict.fromkeys(names, ColumnType.INT64))
    key, after = {"column_000": "0"}, dict.fromkeys(names, "0")
    good = change(table='"wide"', key=json_text(key), after=json_text(after))
    bad = change(table='"wide"', key=json_text(key), after=json_text({**after, "column_399": 0}))

    rows = run(spark, [(TIME_S * 1000, good), (TIME_S * 1000, bad)], {"record_bytes": 10**6}, wide)

    assert [row["reason"] for row in rows] == [None, Reason.TABLE]
    assert rows[0]["after"] == json_text(after)


def test_a_very_long_value_does_not_end_the_query(spark: SparkSession) -> None:
    """A poison record of a megabyte would stop the hub for good.

    A number of so many digits is beyond what Spark's parser takes for JSON.
    """
    values = ["x" * 10**6, "\\u00e9" * 10**5, "\\n" * 10**5, "A" * 4 * 10**5, "9" * 10**5]
    records = [typed(kind, f'"{value}"') for kind in ColumnType for value in values]
    records += [typed(ColumnType.FLOAT64, "9" * 10**5), change(csn=f'"{"0" * 10**6}"')]

    rows = run(spark, [(TIME_S * 1000, value) for value in records], {"record_bytes": 10**7})

    assert {row["reason"] for row in rows} == {None, Reason.TABLE, Reason.CSN, Reason.JSON}


def test_a_ruv_is_accepted_in_every_form_that_core_reads(spark: SparkSession) -> None:
    """Servers write 0 to 3 fields behind the brace, and the URL or not."""
    lines = [
        *("{replicageneration} 5f00", "{replicageneration}", "{replica 1}", "{Replica 1 }"),
        *(f"{{replica 1}} {CSN}", f"{{replica 1}} {CSN} {CSN}", f"{{replica 1}}{CSN}"),
        *(f"{{replica 1 ldap://h:389}} {CSN} {CSN} 65e0f1c0", f" {{replica 1}} {CSN} 65e0f1c0 "),
        *(f"{{REPLICA  1  ldap://h }}  {CSN.upper()}  {CSN}", "{replica 1 ldap://h}"),
        *("", "replica 1", "{replica}", "{replica x}", "{replica 1", f"{{replica 1}} {CSN[1:]}"),
        *("{replica 1} 65e0f1c0", f"{{replica 1}} {CSN} {CSN} {CSN}", "{replica 1 a b}"),
    ]
    records = [(TIME_S * 1000, control("applied", ruv=json.dumps([line]))) for line in lines]

    rows = run(spark, records)

    assert [row["reason"] is None for row in rows] == [_is_read(line) for line in lines]


def _is_read(line: str) -> bool:
    try:
        parse_ruv([line])
    except RuvError:
        return False
    return True
