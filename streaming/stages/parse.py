"""Parse: a Kafka record becomes the fields of the wire; nothing is judged yet."""

from collections.abc import Mapping
from itertools import chain

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
    "ruv": "array<string>",
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
"""Every field of every kind of record (design: section 2)."""

STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
"""A string in text that is known to be JSON; possessive, so that none is too long to match."""

_FLAT = rf'\{{(?:[^"{{}}\[\]]++|{STRING})*+\}}'

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
    schema = ", ".join(f"`{name}` {kind}" for name, kind in FIELDS.items())
    said = F.from_json(
        _with_end(),
        f"{schema}, `{_END}` bigint, {_MISTYPED} string",
        {**_STRICT, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MISTYPED},
    )
    position = ["rid", "offset", "time", "value"]
    return (
        records.where(F.col("value").isNotNull())
        .select(
            _rid(topics).alias("rid"),
            "offset",
            F.col("timestamp").alias("time"),
            "value",
            said.alias("said"),
        )
        .select(*position, "said.*")
        .select(
            *position,
            _well_formed().alias("well_formed"),
            F.col(_MISTYPED).isNotNull().alias("mistyped"),
            *[_as_written(name) if name in OBJECTS else F.col(name) for name in FIELDS],
        )
    )


def raw() -> Column:
    """The record's value as text; not necessarily UTF-8."""
    return F.col("value").cast("string")


def _rid(topics: Mapping[str, int]) -> Column:
    pairs = chain.from_iterable((F.lit(topic), F.lit(rid)) for topic, rid in topics.items())
    return F.create_map(*pairs)[F.col("topic")]


def _trimmed() -> Column:
    return F.when(raw().endswith("}"), raw()).otherwise(F.rtrim(raw(), F.lit(" \t\r\n")))


def _with_end() -> Column:
    """The record with one field more. Spark's parser reads one value and ignores what follows."""
    value = _trimmed().cast("binary")
    body = F.substring(value, F.lit(1), F.octet_length(value) - 1)
    return F.concat(body, F.lit(b',"\\u0001":1}')).cast("string")


def _well_formed() -> Column:
    """Claim that the value is one JSON object; asked twice only if the parser stumbled."""
    plain = F.col(_END).isNotNull() & F.col(_MISTYPED).isNull()
    is_object = F.from_json(raw(), "map<string,string>", _STRICT).isNotNull()
    is_one = F.json_array_length(F.concat(F.lit("["), raw(), F.lit(",0]"))) == 2
    claim = F.is_valid_utf8(raw()) & _trimmed().endswith("}") & (plain | (is_object & is_one))
    return F.coalesce(claim, F.lit(False))  # noqa: FBT003


def _as_written(name: str) -> Column:
    """An object's text as the record has it.

    Spark writes objects anew: blanks go, which is welcome, but numbers take a detour by double
    (1.10 becomes 1.1, 1e400 "Infinity") and escapes change. So where its text does not stand in
    the record, the original is cut out, if Spark would have made the same text of it. A string
    that holds an object is no object: it gets its first quote back.
    """
    said = F.col(name)
    stands = raw().contains(F.concat(F.lit(f'"{name}":'), said))
    cut = F.regexp_extract(raw(), rf'"{name}"\s*+:\s*+({_FLAT})', 1)
    again = F.from_json(F.concat(F.lit('{"it":'), cut, F.lit("}")), "it string", _STRICT)["it"]
    return (
        F.when(said.isNull() | stands, said)
        .when(again == said, cut)
        .when(raw().rlike(rf'"{name}"\s*+:\s*+\{{'), said)
        .otherwise(F.concat(F.lit('"'), said))
        .alias(name)
    )
