"""Two configurations are compared value by value, entries of lists by their names."""

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.config.config import Config
from streaming.config.difference import ConfigDifference, ValueChange, differences
from streaming.config.holding import HoldsFrom

ADDED, REMOVED, CHANGED = ValueChange.ADDED, ValueChange.REMOVED, ValueChange.CHANGED

BEFORE: dict[str, Any] = {
    "hub": {"state": "/state"},
    "kafka": {
        "bootstrap_servers": "localhost:9092",
        "options": {"client.id": "hub", "sasl.password": "secret"},
    },
    "replicas": [{"name": "a", "rid": 1}, {"name": "b", "rid": 2}],
    "tables": [
        {"name": "t", "key": ["k"], "columns": {"k": "text", "v": "text"}},
        {"name": "u", "key": ["k"], "columns": {"k": "text"}},
    ],
    "agreements": [
        {"name": "to-a", "consumer": "a"},
        {"name": "to-b", "consumer": "b", "tables": ["t"]},
    ],
    "spark": {"spark.master": "local[2]"},
}


def config(data: dict[str, Any]) -> Config:
    """The configuration of these sections."""
    return Config.model_validate(data)


def changed(**sections: Any) -> Config:  # noqa: ANN401  # sections as TOML has them
    """BEFORE with these sections merged into it, or put in place of a list."""
    data = deepcopy(BEFORE)
    for name, value in sections.items():
        data[name] = {**data.get(name, {}), **value} if isinstance(value, dict) else value
    return config(data)


def test_the_same_file_differs_in_nothing() -> None:
    """Also where its entries stand in another order."""
    turned = {**BEFORE, **{name: BEFORE[name][::-1] for name in ("replicas", "tables")}}

    assert differences(config(BEFORE), config(BEFORE)) == []
    assert differences(config(BEFORE), config(turned)) == []


REFILTERED = (
    "a gets tables t, u anew, and loses the rows that it is not shown; what it writes there"
    " meanwhile is concurrent"
)

SHORTENED = (
    "a gets table t anew; what it writes there meanwhile is concurrent; start its agent with it"
)

ALL_SENT = ["insert", "update", "delete"]

TABLES, AGREEMENTS = BEFORE["tables"], BEFORE["agreements"]
CASES = [
    (
        changed(hub={"trigger_ms": 500}),
        ("hub.trigger_ms", CHANGED, 100, 500, HoldsFrom.HUB_EPOCH, ""),
    ),
    (
        changed(kafka={"options": {"client.id": "other", "sasl.password": "new"}}),
        ("kafka.options.client.id", CHANGED, "hub", "other", HoldsFrom.FILE, ""),
    ),
    (
        changed(kafka={"options": {"client.id": "hub"}}),
        ("kafka.options.sasl.password", REMOVED, "***", None, HoldsFrom.FILE, ""),
    ),
    (
        changed(spark={"spark.driver.memory": "2g"}),
        ("spark.spark.driver.memory", ADDED, None, "***", HoldsFrom.RESTART, ""),
    ),
    (
        changed(tables=[{**TABLES[0], "function": "MAX(v)"}, TABLES[1]]),
        (
            *("tables[t].function", CHANGED, "EPOCH", "MAX(v)", HoldsFrom.HUB_EPOCH),
            "decides what is judged from then on; what was judged stays as it is",
        ),
    ),
    (
        changed(tables=[{**TABLES[0], "columns": {"v": "text", "k": "text"}}, TABLES[1]]),
        (
            *("tables[t].columns", CHANGED, ["k", "v"], ["v", "k"], HoldsFrom.HUB_EPOCH),
            "start every agent with it",
        ),
    ),
    (
        changed(agreements=[AGREEMENTS[0], {**AGREEMENTS[1], "tables": ["u", "t"]}]),
        (
            *("agreements[to-b].tables", CHANGED, ["t"], ["u", "t"], HoldsFrom.HUB_EPOCH),
            "b gets every row of table u, and loses those that the hub does not have",
        ),
    ),
    (
        changed(agreements=[{**AGREEMENTS[0], "tables": ["u"]}, AGREEMENTS[1]]),
        (
            *("agreements[to-a].tables", CHANGED, ["*"], ["u"], HoldsFrom.HUB_EPOCH),
            "a keeps its rows of table t as they are",
        ),
    ),
    (
        changed(agreements=[{**AGREEMENTS[0], "rows": {"*": "k = 'x'"}}, AGREEMENTS[1]]),
        (
            *("agreements[to-a].rows", CHANGED, {}, {"*": "k = 'x'"}, HoldsFrom.HUB_EPOCH),
            REFILTERED,
        ),
    ),
    (
        changed(agreements=[AGREEMENTS[0], {**AGREEMENTS[1], "delay_s": 60}]),
        (
            *("agreements[to-b].delay_s", CHANGED, 0, 60, HoldsFrom.HUB_EPOCH),
            "b is sent nothing for 60 s; what it has stays",
        ),
    ),
    (
        changed(agreements=[{**AGREEMENTS[0], "columns": {"t": ["k"]}}, AGREEMENTS[1]]),
        (
            *("agreements[to-a].columns", CHANGED, {}, {"t": ["k"]}, HoldsFrom.HUB_EPOCH),
            SHORTENED,
        ),
    ),
    (
        changed(agreements=[{**AGREEMENTS[0], "masks": {"t": {"v": "null"}}}, AGREEMENTS[1]]),
        (
            *("agreements[to-a].masks", CHANGED, {}, {"t": {"v": "null"}}, HoldsFrom.HUB_EPOCH),
            "a gets table t anew, and may not write table t",
        ),
    ),
    (
        changed(agreements=[{**AGREEMENTS[0], "send": ["insert", "update"]}, AGREEMENTS[1]]),
        (
            *("agreements[to-a].send", CHANGED, ALL_SENT, ALL_SENT[:2], HoldsFrom.HUB_EPOCH),
            "what others delete stays at a from then on",
        ),
    ),
    (
        changed(agreements=AGREEMENTS[:1]),
        (
            *("agreements[to-b]", REMOVED),
            {
                "consumer": "b",
                "tables": ["t"],
                "send": ["insert", "update", "delete"],
                "packet_every_s": 10,
                "delay_s": 0,
                "bytes_per_s": 0,
                "priority": 0,
            },
            *(None, HoldsFrom.HUB_EPOCH, "retired: b is sent nothing more by it"),
        ),
    ),
    (
        changed(replicas=[*BEFORE["replicas"], {"name": "c", "rid": 3}]),
        (
            *("replicas[c]", ADDED, None, {"rid": 3}, HoldsFrom.HUB_EPOCH),
            "its topic is created if it is missing, and read",
        ),
    ),
    (
        changed(replicas=[{**BEFORE["replicas"][0], "oid": "x"}, BEFORE["replicas"][1]]),
        ("replicas[a].oid", ADDED, None, "x", HoldsFrom.COMMAND, ""),
    ),
]


@pytest.mark.parametrize(("after", "expected"), CASES, ids=[case[1][0] for case in CASES])
def test_a_change_is_one_difference(after: Config, expected: tuple[Any, ...]) -> None:
    """With its path, both values, from when on it holds, and what it causes."""
    assert differences(config(BEFORE), after) == [ConfigDifference(*expected)]


VERSIONS = [config(BEFORE), *(after for after, _ in CASES)]


@given(st.sampled_from(VERSIONS), st.sampled_from(VERSIONS))
def test_what_one_direction_adds_the_other_removes(one: Config, other: Config) -> None:
    """The same paths and values either way."""
    there, back = differences(one, other), differences(other, one)

    assert {(d.path, str(d.before), str(d.after)) for d in there} == {
        (d.path, str(d.after), str(d.before)) for d in back
    }


def test_an_archive_that_is_none_any_more_gets_everything_anew() -> None:
    """It has rows that others deleted long ago."""
    archive = changed(agreements=[{**AGREEMENTS[0], "send": ["update", "insert"]}, AGREEMENTS[1]])

    (found,) = differences(archive, config(BEFORE))

    assert found.causes == (
        "a gets every row of its tables anew, and loses those that the hub does not have; what it"
        " writes there meanwhile is concurrent"
    )


def test_what_is_written_on_masked_rows_is_rejected_when_a_mask_is_taken_away() -> None:
    """Until the replica has the values."""
    masked = [{**AGREEMENTS[0], "masks": {"t": {"v": "null"}}}, AGREEMENTS[1]]

    (found,) = differences(changed(agreements=masked), config(BEFORE))

    assert found.causes == "a gets table t anew; what it writes there meanwhile is rejected"


def test_without_a_filter_no_row_is_lost() -> None:
    """Rows come into it, and none leaves it."""
    filtered = [{**AGREEMENTS[0], "rows": {"t": "k > 'a'"}}, AGREEMENTS[1]]

    (found,) = differences(changed(agreements=filtered), config(BEFORE))

    assert found.causes == "a gets table t anew; what it writes there meanwhile is concurrent"


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"retention": {"keep_h": 0.5}}, True),
        ({"retention": {"keep_h": 1_000}}, False),
        ({"hub": {"replay_window_h": 24}}, True),
        ({"hub": {"replay_window_h": 1_000}}, False),
    ],
)
def test_a_shorter_history_is_said_to_be_gone(section: dict[str, Any], *, said: bool) -> None:
    """A typing error would cost the past, without a word."""
    (found,) = differences(config(BEFORE), changed(**section))

    assert ("what is older is purged for good" in found.causes) is said
