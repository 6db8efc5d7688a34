"""Columns and core agree on every record, whichever way it takes and whoever checks it."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from unittest.mock import patch

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from connectors import wire
from streaming.carriers.parse import parse_on_driver, parse_on_executors
from streaming.core.model.change import Change, Op
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value
from streaming.core.records.check import Limits, check
from streaming.core.records.record import Commit, Reason
from streaming.stages import canonical
from streaming.stages import check as check_stage
from streaming.stages.check import check_records
from streaming.stages.checked import CHECKED
from tests.harness.differential import differences, fuzz, records_of
from tests.harness.memory_topics import Topics
from tests.harness.mutations import KNOWN, PLAIN
from tests.harness.raw_records import (
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
from tests.harness.record_cases import BAD, FIRST, GOOD, NO_OBJECT, TOKENS
from tests.reference.wire import image_text, key_text

CASES = [
    *GOOD.values(),
    *(value for _, _, value in BAD.values()),
    *FIRST.values(),
    *NO_OBJECT.values(),
    *(
        make(kind, token, blank=blank)
        for make in (typed, keyed)
        for kind in ColumnType
        for token in TOKENS
        for blank in ("", " ")
    ),
]


@pytest.mark.parametrize("few", [0, 10**9], ids=["many", "few"])
def test_columns_and_core_agree_on_every_case(few: int) -> None:
    """A rule that is written twice is two rules; the vectorized check may only speed up core's."""
    assert list(differences(CASES, few=few)) == []


@pytest.mark.parametrize("seed", range(3))
def test_columns_and_core_agree_on_mutated_records(seed: int) -> None:
    """One byte that only the columns accept would poison every consumer."""
    assert list(fuzz(seed, 2_000)) == []


@pytest.mark.parametrize("kept", [1, 2])
def test_columns_and_core_agree_on_columns_that_are_not_sent(kept: int) -> None:
    """What a replica has in them was written by nobody; the record's hash stays what it was."""
    rid = TOPICS[TOPIC]
    filters = {
        name: ColumnFilter(frozenset([*table.key, *[*table.columns][:kept]]))
        for name, table in KNOWN.items()
    }
    limits = Limits(record_bytes=1_000, columns={rid: filters, rid + 1: {}})

    assert list(fuzz(2, 1_000, limits=limits)) == []
    assert list(differences(CASES, limits)) == []
    (whole,), (short,) = (
        check_records(records_of([change()]), TOPICS, KNOWN, one).to_pylist()
        for one in (Limits(), limits)
    )
    assert short["partial"]
    assert json.loads(short["after"]).keys() < json.loads(whole["after"]).keys()
    assert short["content"] == whole["content"]


@pytest.mark.parametrize("allowed", [(), ("orders",), (PLAIN.name,), tuple(KNOWN)])
def test_columns_and_core_agree_on_what_may_be_written(allowed: tuple[str, ...]) -> None:
    """The columns may only let through what the replica of the topic may write."""
    rid = TOPICS[TOPIC]
    limits = Limits(record_bytes=1_000, writes={rid: frozenset(allowed), rid + 1: frozenset()})
    spaced = change().replace(b'"orders"', b' "orders"')

    assert list(fuzz(1, 1_000, limits=limits)) == []
    assert list(differences([change(), spaced, *CASES], limits)) == []
    is_refused = "orders" not in allowed
    found = check_records(records_of([change(), spaced]), TOPICS, KNOWN, limits)
    assert found["reason"].to_pylist() == [Reason.RIGHTS if is_refused else None] * 2


def test_a_byte_flipped_at_any_place_is_seen_by_both() -> None:
    """Every seam of a canonical record is a place where the columns cut it."""
    value = change(before='{"id":"1"}', opno="7", prim_csn=f'"{CSN}"')
    flipped = [
        value[:place] + bytes([byte]) + value[place + 1 :]
        for place in range(len(value))
        for byte in b'"]}X{,:0 \\'
    ]

    assert list(differences(flipped)) == []


def test_executors_and_driver_check_alike(spark: SparkSession) -> None:
    """Who carries the rows of a batch must not decide what is good."""
    topics = Topics()
    for value in CASES:
        topics.append(TOPIC, value, TIME_S * 1000)
    frame, limits = topics.frame(spark), Limits(record_bytes=1_000)
    expected = check_records(records_of(CASES), TOPICS, KNOWN, limits).sort_by("offset").to_pylist()

    there = parse_on_executors(frame, TOPICS, KNOWN, limits).toArrow()
    here = parse_on_driver(frame, TOPICS, KNOWN, limits)

    assert there.schema.remove_metadata().equals(CHECKED)
    assert there.cast(CHECKED).sort_by("offset").to_pylist() == expected
    assert here.sort_by("offset").to_pylist() == expected


def test_the_topic_names_the_replica_and_null_values_are_left_out() -> None:
    """The topic's replica is known by configuration; a null value holds no record."""
    found = check_records(records_of([None, b"{}", None]), TOPICS, TABLES)

    assert [(row["rid"], row["offset"]) for row in found.to_pylist()] == [(1, 1)]


# -- which way a record takes ----------------------------------------------------------------------

TABLE = Table("t", ("id",), {"id": ColumnType.INT64, **{kind.value: kind for kind in ColumnType}})
ROWS: list[dict[str, Value]] = [
    {},
    dict.fromkeys(ColumnType),
    {"bool": True, "int32": -(2**30), "int64": 2**62, "float64": 1.5, "decimal": Decimal("1.50")},
    {"float64": 1e16},
    {"float64": 1e-5},
    {"float64": 123_456_789.25},
    {"float64": float("nan")},
    {"text": 'é 😀 \x1f \n " \\ {}', "bytes": b"\x00\xff", "int32": 0},
    {"timestamp": datetime(2024, 2, 29, 23, 59, 59, 1, UTC)},
]


def _change(op: Op, values: dict[str, Value] | None) -> Change:
    after = None if values is None else image_text({"id": 7, **values}, TABLE)
    return Change(CSN, 1, 3, TABLE.name, key_text({"id": 7}, TABLE), op, after)


CANONICAL = [
    *(_change(Op.UPDATE, values) for values in ROWS),
    _change(Op.DELETE, None),
    _change(Op.UPDATE, ROWS[1])._replace(before=_change(Op.UPDATE, {}).after, opno=7),
    _change(Op.UPDATE, {})._replace(prim_csn=CSN, op=Op.INSERT),
    _change(Op.UPDATE, {})._replace(app="billing 2.1", op=Op.INSERT),
]


def _checked_without_core(values: list[bytes]) -> pa.Table:
    with patch.object(check_stage, "check", side_effect=AssertionError("core was asked")):
        return check_records(records_of(values), TOPICS, {"t": TABLE}).sort_by("offset")


@pytest.mark.parametrize("few", [0, 10**9], ids=["many", "few"])
def test_what_agents_write_takes_the_fast_way(few: int) -> None:
    """Every value that a column may hold, images with and without all columns."""
    with patch.object(canonical, "FEW", few):
        found = _checked_without_core([wire.encode(SESSION, one) for one in CANONICAL]).to_pylist()

    for row, one in zip(found, CANONICAL, strict=True):
        assert row["reason"] is None
        assert {name: row[name] for name in Change._fields} == one._asdict()
        assert row["content"] == one.content


def test_another_spelling_takes_the_fast_way_too() -> None:
    """What json.dumps writes by default is what everybody's tool writes."""
    same_in_all = [one for one in CANONICAL if '"float64":1e' not in (one.after or "")]
    values = [wire.encode(SESSION, one) for one in same_in_all]
    foreign = [json.dumps(dict(reversed(json.loads(value).items()))).encode() for value in values]

    found = _checked_without_core(foreign).to_pylist()

    for row, one in zip(found, same_in_all, strict=True):
        assert {name: row[name] for name in Change._fields} == one._asdict()
        assert row["content"] == one.content


def test_commits_take_the_fast_way() -> None:
    """A batch may hold one for every change."""
    found = _checked_without_core([wire.encode(SESSION, Commit(CSN))]).to_pylist()

    assert [(row["kind"], row["prim_csn"], row["reason"]) for row in found] == [
        ("commit", CSN, None)
    ]


HOSTILE = {
    "a member twice": change().replace(b'"v":1,', b'"v":2,"v":1, '),
    "a column twice": change(after='{"id":"1", "name":"a","name":"b","qty":5}'),
    "a float printed otherwise": typed(ColumnType.FLOAT64, "1.10", blank=" "),
    "a float with a capital E": typed(ColumnType.FLOAT64, "1E16", blank=" "),
    "minus zero": typed(ColumnType.INT32, "-0", blank=" "),
    "a number beyond 64 bits": change(epoch=f" {2**64}"),
    "half a surrogate pair": typed(ColumnType.TEXT, '"\\ud83d"', blank=" "),
    "NaN": typed(ColumnType.FLOAT64, "NaN", blank=" "),
    "an unknown member": change(more=' {"v":[1.10]}'),
    "a record that only blanks make too large": change() + b" " * 1_000,
    "a control record": control("heartbeat").replace(b":", b" :"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_a_library_would_change_goes_to_core(name: str) -> None:
    """A library that keeps the last of two members would accept what the rule refuses."""
    with patch.object(check_stage, "check", wraps=check) as core:
        check_records(records_of([HOSTILE[name]]), TOPICS, TABLES, Limits(record_bytes=1_000))

    assert core.call_count == 1
    assert list(differences([HOSTILE[name]])) == []
