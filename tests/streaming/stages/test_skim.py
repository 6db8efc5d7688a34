"""Skim settles by itself what agents write, so that nearly no batch is planned twice."""

from datetime import UTC, datetime
from decimal import Decimal
from unittest.mock import patch

from pyspark.sql import SparkSession

from connectors import wire
from streaming.carriers.parse_on_executors import skim
from streaming.carriers.settle import settle
from streaming.core.model.change import Change, Op
from streaming.core.model.record import Abort, Applied, Commit, Heartbeat, Hello, Record
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value
from streaming.stages import canonical
from streaming.stages.changes import UNSETTLED, changes, unsettled
from streaming.stages.control import control
from streaming.stages.plain import LIMITS, Limits
from tests.harness.memory import Topics
from tests.streaming.stages.said import CSN, SESSION, TIME_S, TOPIC, TOPICS, change, joined

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
    after = None if values is None else wire.image_text({"id": 7, **values}, TABLE)
    return Change(CSN, 1, 3, TABLE.name, wire.key_text({"id": 7}, TABLE), op, after)


def test_what_agents_write_is_plain(spark: SparkSession) -> None:
    """Every value that a column may hold, images with and without all columns."""
    received = [_change(Op.UPDATE, values) for values in ROWS]
    received += [_change(Op.DELETE, None), received[0]._replace(before=received[1].after, opno=7)]
    received += [received[0]._replace(prim_csn=CSN), received[0]._replace(op=Op.INSERT)]
    topics = Topics()
    for record in received:
        topics.append(TOPIC, wire.encode(SESSION, record), TIME_S * 1000)

    frame = topics.frame(spark)

    skimmed = skim(frame, TOPICS, {"t": TABLE}).orderBy("offset").toArrow()
    read = unsettled(frame.toArrow().sort_by("offset"), TOPICS)
    few, left = changes(read, {"t": TABLE}, LIMITS)
    with patch.object(canonical, "FEW", 0):
        many, left_too = changes(read, {"t": TABLE}, LIMITS)

    assert left.num_rows == left_too.num_rows == 0
    for found in (skimmed.to_pylist(), few.to_pylist(), many.to_pylist()):
        assert [row["reason"] for row in found] == [None] * len(received)
        for row, change_ in zip(found, received, strict=True):
            assert {name: row[name] for name in Change._fields} == change_._asdict()
            assert row["content"] == change_.content


def test_what_agents_say_besides_is_told_without_spark(spark: SparkSession) -> None:
    """Nearly every batch holds some of it; planning all rules each time would cost more than it."""
    ruv = Ruv("5f00").with_csn(CSN)
    received: list[Record] = [Commit(CSN), Abort(CSN), Heartbeat(3), Applied(3, 2, 1, ruv)]
    received += [Hello(3, 2, 1, ruv, CSN, lost=False), Hello(0, 0, 0, Ruv(), None, lost=True)]
    topics = Topics()
    for record in received:
        topics.append(TOPIC, wire.encode(SESSION, record), TIME_S * 1000)
    skimmed = skim(topics.frame(spark), TOPICS, {"t": TABLE}).toArrow().sort_by("offset")

    told, left = control(skimmed, Limits(1, 1_000_000, 86_400))

    assert left.num_rows == 0
    assert told["reason"].null_count == len(received)
    assert told["kind"].to_pylist() == [wire.kind_of(record).value for record in received]


def test_what_is_not_plain_is_left_to_the_rules(spark: SparkSession) -> None:
    """Good or bad, a record that is not plain keeps its place, time and bytes until then."""
    values = [change(), change(table='"t"'), b"{", joined({"v": "2"})]
    topics = Topics()
    for time_ms, value in enumerate(values):
        topics.append(TOPIC, value, TIME_S * 1000 + time_ms)
    frame, table = topics.frame(spark), {"t": TABLE}

    skimmed = skim(frame, TOPICS, table).toArrow()
    settled = settle(skimmed, spark, TOPICS, table).sort_by("offset").to_pylist()

    assert set(skimmed["reason"].to_pylist()) == {UNSETTLED}
    assert [row["reason"] for row in settled] == ["table", "table", "json", "version"]
    assert [row["value"] for row in settled] == values
    assert [row["time"].microsecond for row in settled] == [0, 1000, 2000, 3000]
