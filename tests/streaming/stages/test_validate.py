"""Validate finds the first broken rule of every bad record, and lets every good one through."""

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from connectors import wire
from streaming.carriers.parse_on_executors import skim
from streaming.carriers.settle import collected, settle
from streaming.core.model.change import Change, Op
from streaming.core.model.errors import RuvError, WireError
from streaming.core.model.record import Reason
from streaming.core.model.ruv import parse_ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value, from_json, json_text, to_json
from streaming.stages import canonical as forms
from streaming.stages.checked import CHECKED
from streaming.stages.parse import parse
from streaming.stages.plain import Limits
from streaming.stages.validate import validate
from tests.harness.memory import Topics
from tests.streaming.stages.cases import BAD, FIRST, GOOD, RECORD_BYTES, SKEW_S, TIMES, TOKENS
from tests.streaming.stages.said import (
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

LIMITS = {"record_bytes": RECORD_BYTES, "skew_s": SKEW_S}
Row = dict[str, Any]


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
    """The facts of records (time_ms, value), in their order; the same from all ways to them."""
    topics = Topics()
    for time_ms, value in records:
        topics.append(TOPIC, value, time_ms)
    known = {**TABLES, **{table.name: table for table in tables}}
    frame, allowed = topics.frame(spark), Limits(**{**LIMITS, **(limits or {})})

    found = validate(parse(frame, TOPICS), known, allowed).toArrow().sort_by("offset")

    rows: list[Row] = found.to_pylist()
    skimmed = skim(frame, TOPICS, known, allowed).toArrow().cast(CHECKED)
    on_executors = settle(skimmed, spark, TOPICS, known, allowed)
    on_driver = collected(frame, TOPICS, known, allowed)
    with patch.object(forms, "FEW", 0):
        as_many = collected(frame, TOPICS, known, allowed)
    for quick in (on_driver, as_many, on_executors):
        told = quick.sort_by("offset").to_pylist()
        assert [pair for pair in zip(told, rows, strict=True) if pair[0] != pair[1]] == []
    return rows


@pytest.fixture(scope="module")
def judged(spark: SparkSession) -> Mapping[bytes, Row]:
    """The facts of all records in cases.py but those of TIMES."""
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
    assert row["session"] == json.loads(GOOD[name])["session"]


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

    assert found.schema.remove_metadata().equals(CHECKED)


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
    records = [(TIME_S * 1000, value) for received in drawn for value in spellings(received)]

    rows = run(spark, records, {"record_bytes": 10**6}, WILD)

    for row, received in zip(rows, [one for one in drawn for _ in range(3)], strict=True):
        lacks = received.after is not None and len(json.loads(received.after)) < len(WILD.columns)
        assert (row["reason"], row["detail"]) == (None, None)
        assert {name: row[name] for name in Change._fields} == received._asdict()
        assert row["content"] == received.content
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
