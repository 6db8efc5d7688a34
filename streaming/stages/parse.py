"""Parse: a Kafka record becomes the fields of the wire; nothing is judged yet."""

from collections.abc import Mapping
from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

OBJECTS = dict.fromkeys(("key", "before", "after"), "string")
"""Fields that are objects on the wire; here each is its text."""

FIELDS = {
    "v": "bigint",
    "kind": "string",
    "session": "string",
    "csn": "string",
    "prim_csn": "string",
    "epoch": "bigint",
    "table": "string",
    "op": "string",
    "opno": "bigint",
    "covers": "bigint",
    "generation": "bigint",
    "ruv": "string",
    "own": "string",
    "lost": "boolean",
    "hub_epoch": "bigint",
    "code": "string",
    "text": "string",
    "begin": "string",
    "row": "string",
    "end": "string",
    **OBJECTS,
}
"""Every field of every kind of record (docs/wire.md, Records); objects and arrays are text."""

STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
"""A string in text that is known to be JSON; possessive, so that none is too long to match."""

_FLAT = rf'\{{(?:[^"{{}}\[\]]++|{STRING})*+\}}'

_POSITION = ("rid", "offset", "time", "value")
_MISTYPED = "_mistyped"
_END = "\x01"
"""A field set behind the last one: it is seen if the last brace ends what the first one begins."""

_STRICT = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


def parse(records: DataFrame, topics: Mapping[str, int]) -> DataFrame:
    """Records (topic, offset, timestamp, value) as rid, offset, time, value, FIELDS and two claims.

    `well_formed`: the value is one JSON object in UTF-8. `mistyped`: some field is there and not
    of its type in FIELDS; it is null then. Of a field that stands twice the last counts. Objects
    keep their text but for blanks. Records without a value (tombstones) are left out.
    """
    return _read(records, topics).select(*_exact())


def raw() -> Column:
    """The record's value as text; not necessarily UTF-8."""
    return F.col("value").cast("string")


def _position(topics: tuple[tuple[str, int], ...]) -> list[Column]:
    """Where a record stands, when it came and its bytes: rid, offset, time, value."""
    rids = F.create_map(*[F.lit(part) for pair in topics for part in pair])
    columns = [rids[F.col("topic")], F.col("offset"), F.col("timestamp"), F.col("value")]
    return [column.alias(name) for name, column in zip(_POSITION, columns, strict=True)]


def _read(records: DataFrame, topics: Mapping[str, int]) -> DataFrame:
    there = records.where("value IS NOT NULL")
    return there.select(*_record(tuple(topics.items()))).select(*_POSITION, "said.*")


@lru_cache(maxsize=8)
def _record(topics: tuple[tuple[str, int], ...]) -> list[Column]:
    """Expressions are made once: it takes long, and every micro-batch needs them again."""
    schema = ", ".join(f"`{name}` {kind}" for name, kind in FIELDS.items())
    received = F.from_json(
        _with_end(),
        f"{schema}, `{_END}` bigint, {_MISTYPED} string",
        {**_STRICT, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MISTYPED},
    )
    return [*_position(topics), received.alias("said")]


@lru_cache(maxsize=1)
def _exact() -> list[Column]:
    mistyped = (F.col(_MISTYPED).isNotNull() & F.col(_END).isNotNull()).alias("mistyped")
    fields = [_as_written(name) if name in OBJECTS else F.col(name) for name in FIELDS]
    return [*map(F.col, _POSITION), _well_formed().alias("well_formed"), mistyped, *fields]


def _plainly_read() -> Column:
    return F.col(_END).isNotNull() & F.col(_MISTYPED).isNull()


def _trimmed() -> Column:
    return F.when(raw().endswith("}"), raw()).otherwise(F.rtrim(raw(), F.lit(" \t\r\n")))


def _with_end() -> Column:
    """The record with one field more. Spark's parser reads one value and ignores what follows."""
    value = _trimmed().cast("binary")
    body = F.substring(value, F.lit(1), F.octet_length(value) - 1)
    return F.concat(body, F.lit(b',"\\u0001":1}')).cast("string")


def _well_formed() -> Column:
    """Claim that the value is one JSON object; asked twice only if the parser stumbled."""
    is_object = F.from_json(raw(), "map<string,string>", _STRICT).isNotNull()
    is_one = F.json_array_length(F.concat(F.lit("["), raw(), F.lit(",0]"))) == 2
    claim = (
        F.is_valid_utf8(raw()) & _trimmed().endswith("}") & (_plainly_read() | (is_object & is_one))
    )
    return F.coalesce(claim, F.lit(False))  # noqa: FBT003


def _as_written(name: str) -> Column:
    """An object's text as the record has it.

    Spark writes objects anew: blanks go, which is welcome, but numbers take a detour by double
    (1.10 becomes 1.1, 1e400 "Infinity") and escapes change. So where its text does not stand in
    the record, the original is cut out, if Spark would have made the same text of it. A string
    is no object: it gets its first quote back.
    """
    received, cut = F.col(name), _cut(name)
    again = F.from_json(F.concat(F.lit('{"it":'), cut, F.lit("}")), "it string", _STRICT)["it"]
    return (
        F.when(received.isNull() | _stands(name), received)
        .when(again == received, cut)
        .when(raw().rlike(rf'"{name}"\s*+:\s*+\{{'), received)
        .otherwise(F.concat(F.lit('"'), received))
        .alias(name)
    )


def _cut(name: str) -> Column:
    """The first flat object that follows the name."""
    return F.regexp_extract(raw(), rf'"{name}"\s*+:\s*+({_FLAT})', 1)


def _stands(name: str) -> Column:
    return raw().contains(F.concat(F.lit(f'"{name}":'), F.col(name)))
