"""Parse reads what is one JSON object and says of everything else that it is not."""

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import SparkSession

from streaming.stages.parse import parse
from tests.harness.memory import Topics
from tests.streaming.stages.said import TOPIC, TOPICS

NO_OBJECT: dict[str, bytes] = {
    "nothing": b"",
    "blank": b" \n",
    "null": b"null",
    "number": b"5",
    "string": b'"{}"',
    "array": b"[]",
    "array of an object": b'[{"v":1}]',
    "cut off": b'{"v":1,"kind":"change"',
    "cut off in a string": b'{"v":1,"kind":"chan',
    "cut off in an object": b'{"v":1,"after":{"a":1}',
    "garbage behind": b'{"v":1} x',
    "brace behind": b'{"v":1}}',
    "object behind": b'{"v":1}{"v":2}',
    "object behind a comma": b'{"v":1},{"v":2}',
    "bracket behind": b'{"v":1}]',
    "NUL behind": b'{"v":1}\x00',
    "garbage before": b'x{"v":1}',
    "byte order mark": b'\xef\xbb\xbf{"v":1}',
    "not UTF-8": b'{"v":1,"kind":"\xff"}',
    "UTF-16": '{"v":1}'.encode("utf-16"),
    "half a surrogate pair in UTF-8": b'{"v":1,"kind":"\xed\xa0\xbd"}',
    "single quotes": b"{'v':1}",
    "no quotes": b"{v:1}",
    "comma behind the last": b'{"v":1,}',
    "no comma": b'{"v":1 "kind":"change"}',
    "comment": b'{"v":1/*one*/}',
    "NaN": b'{"v":1,"epoch":NaN}',
    "NaN in an object": b'{"v":1,"after":{"a":NaN}}',
    "NaN in an unknown field": b'{"v":1,"more":[{"a":NaN}]}',
    "leading zero": b'{"v":01}',
    "line break in a string": b'{"v":1,"kind":"a\nb"}',
    "a field that ends as the parser expects": b'{"v":1,"":1}x',
    "wrong type, then cut off": b'{"epoch":"x"',
    "wrong type, then garbage": b'{"epoch":"x"}}',
}

OBJECTS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "empty": (b"{}", {"v": None, "kind": None, "mistyped": False}),
    "blanks inside": (b'{ "v" : 1 }', {"v": 1}),
    "blanks around": (b' \r\n\t{"v":1} \r\n\t', {"v": 1}),
    "unknown fields": (b'{"v":1,"x":{"v":2,"y":[{"v":3}]},"z":null}', {"v": 1}),
    "escaped name": (b'{"\\u0076":1}', {"v": 1}),
    "other case": (b'{"V":1}', {"v": None, "mistyped": False}),
    "twice: the last counts": (b'{"kind":"a","kind":"b"}', {"kind": "b"}),
    "escapes": (b'{"kind":"\\u00e9\\n\\/\\ud83d\\ude00"}', {"kind": "é\n/😀"}),
    "null": (b'{"v":null,"epoch":null}', {"v": None, "epoch": None, "mistyped": False}),
    "string for a number": (b'{"v":1,"epoch":"5"}', {"v": 1, "epoch": None, "mistyped": True}),
    "fraction for a number": (b'{"epoch":5.0}', {"epoch": None, "mistyped": True}),
    "exponent for a number": (b'{"epoch":5e0}', {"epoch": None, "mistyped": True}),
    "boolean for a number": (b'{"epoch":true}', {"epoch": None, "mistyped": True}),
    "number for a boolean": (b'{"lost":1}', {"lost": None, "mistyped": True}),
    "largest number": (b'{"epoch":9223372036854775807}', {"epoch": 2**63 - 1}),
    "too large a number": (b'{"epoch":9223372036854775808}', {"epoch": None, "mistyped": True}),
    "endless number": (b'{"epoch":1e999999999}', {"epoch": None, "mistyped": True}),
    "wrong type first": (b'{"epoch":"x","kind":"k"}', {"kind": "k", "mistyped": True}),
}

AS_WRITTEN: dict[str, tuple[str, str]] = {
    "canonical": ('{"a":"x","b":1}', '{"a":"x","b":1}'),
    "empty": ("{}", "{}"),
    "blanks": ('{ "a" : "x y" }', '{ "a" : "x y" }'),
    "decimal places stay": ('{"a":1.10}', '{"a":1.10}'),
    "exponent stays": ('{"a":1E+2}', '{"a":1E+2}'),
    "minus zero stays": ('{"a":-0}', '{"a":-0}'),
    "too large for a double": ('{"a":1e400}', '{"a":1e400}'),
    "more digits than a double has": (
        '{"a":0.12345678901234567891}',
        '{"a":0.12345678901234567891}',
    ),
    "huge integer": (f'{{"a":{10**30}}}', f'{{"a":{10**30}}}'),
    "beyond the basic plane": ('{"a":"😀"}', '{"a":"😀"}'),
    "needless escapes stay": ('{"a":"\\u0041\\/"}', '{"a":"\\u0041\\/"}'),
    "half a surrogate pair stays": ('{"a":"\\ud83d"}', '{"a":"\\ud83d"}'),
    "braces in a string": ('{"a":"}{","b":1.0e0}', '{"a":"}{","b":1.0e0}'),
    "quotes in a string": ('{"a":"\\"after\\":{}","b":1.0e0}', '{"a":"\\"after\\":{}","b":1.0e0}'),
    "twice": ('{"a":1,"a":2}', '{"a":1,"a":2}'),
    "nested": ('{"a":{"b":[1, 2]}}', '{"a":{"b":[1,2]}}'),
    "string": ('"x"', '"x'),
    "string of an object": ('"{\\"a\\":1}"', '"{"a":1}'),
    "string of a number": ('"5"', '"5'),
    "number": ("5", "5"),
    "array": ('[{"a":1}]', '[{"a":1}]'),
}
"""What stands in the record -> the text of `after`; what is no object does not start like one."""


def _value(after: str) -> bytes:
    return f'{{"v":1,"more":{{"key":1}},"after":{after},"table":"after"}}'.encode()


@pytest.fixture(scope="module")
def parsed(spark: SparkSession) -> Mapping[bytes, dict[str, Any]]:
    """Everything above, parsed in one go."""
    topics = Topics()
    values = [*NO_OBJECT.values(), *(value for value, _ in OBJECTS.values())]
    values += [_value(after) for after, _ in AS_WRITTEN.values()]
    for value in values:
        topics.append(TOPIC, value, 0)
    rows = parse(topics.frame(spark), TOPICS).orderBy("offset").collect()
    return {bytes(row.value): row.asDict() for row in rows}


@pytest.mark.parametrize("name", NO_OBJECT)
def test_what_is_not_one_json_object_is_not_well_formed(
    parsed: Mapping[bytes, dict[str, Any]], name: str
) -> None:
    """Spark's parser by itself takes half of these for records."""
    assert not parsed[NO_OBJECT[name]]["well_formed"]


@pytest.mark.parametrize("name", OBJECTS)
def test_an_object_is_read_field_by_field(
    parsed: Mapping[bytes, dict[str, Any]], name: str
) -> None:
    """What cannot be read is null, and the record says so."""
    value, expected = OBJECTS[name]

    row = parsed[value]

    assert row["well_formed"]
    assert {field: row[field] for field in expected} == expected


@pytest.mark.parametrize("name", AS_WRITTEN)
def test_an_object_keeps_its_text(parsed: Mapping[bytes, dict[str, Any]], name: str) -> None:
    """A value that Spark wrote anew would be another one: 1e400 is no "Infinity"."""
    after, text = AS_WRITTEN[name]

    row = parsed[_value(after)]

    assert row["well_formed"]
    assert row["after"] == text


def test_the_topic_tells_the_replica_and_tombstones_are_left_out(spark: SparkSession) -> None:
    """Who speaks is known by configuration; a null value says nothing."""
    topics = Topics()
    for topic in TOPICS:
        topics.append(topic, None, 1_000)
        topics.append(topic, b"{}", 2_000)

    rows = parse(topics.frame(spark), TOPICS).collect()

    found = {(row.rid, row.offset, row.time.timestamp(), bytes(row.value)) for row in rows}
    assert found == {(1, 1, 2.0, b"{}"), (2, 1, 2.0, b"{}")}


def test_a_very_long_string_is_cut_out_whole(spark: SparkSession) -> None:
    """A regular expression that needs the stack for each character would end the query."""
    text = '{"a":"' + "\\n\\u00e9x" * 100_000 + '","b":1.0e0}'
    topics = Topics()
    topics.append(TOPIC, _value(text), 0)

    (row,) = parse(topics.frame(spark), TOPICS).collect()

    assert row.after == text
