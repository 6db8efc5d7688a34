"""Tokens: a change that is not canonical as it came, taken apart: its faults, or its repair."""

import json
from collections.abc import Callable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.table import ColumnType, Table
from streaming.stages.parse import STRING
from streaming.stages.pattern import BYTES, DECIMAL, NOT_NUMBERS, TIMESTAMP, json_text

DETAIL_CHARS = 100
"""No more of a value is quoted in a complaint."""

_TEXT = (
    r'\A"(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r'|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"\z'
)
_TOKEN = rf'({STRING})\s*+:\s*+({STRING}|[\[{{]|[^\s",:{{}}\[\]]++)'
_ESCAPES = [json.dumps(chr(code))[1:-1] for code in range(32)]


def look(
    tables: Mapping[str, Table], table: Column, key: Column, after: Column, before: Column
) -> Column:
    """What the functions below work on: the table's shape, and the tokens of key and images."""
    return F.struct(
        _shapes(tables)[table].alias("shape"),
        _tokens(key).alias("key"),
        _tokens(after).alias("after"),
        _tokens(before).alias("before"),
    )


def table_fault(looked: Column) -> Column:
    """What is wrong with the table or with a column of an image; null if nothing is."""
    columns = looked["shape"]["columns"]
    return F.when(looked["shape"].isNull(), F.lit("it is not in the configuration")).otherwise(
        F.coalesce(
            *[
                fault
                for name in ("after", "before")
                for fault in (
                    _twice(name, looked[name]),
                    _unknown(name, looked[name], columns),
                    _misfit(name, looked[name], columns),
                )
            ]
        )
    )


def key_fault(looked: Column) -> Column:
    """What is wrong with the key, by itself or beside the after-image; null if nothing is."""
    wanted = looked["shape"]["key"]
    return F.coalesce(
        F.when(
            _names(looked["key"]) != _names(wanted),
            F.concat(
                F.lit("its columns are "),
                _listed(looked["key"]),
                F.lit(" and must be "),
                _listed(wanted),
            ),
        ),
        _misfit("key", looked["key"], wanted),
        _first(
            F.filter(
                looked["key"],
                lambda part: _value(looked["after"], part["name"]) != part["value"],
            ),
            lambda part: F.concat(
                part["name"],
                F.lit(" is "),
                _cut(part["value"]),
                F.lit(" in key and "),
                _cut(_value(looked["after"], part["name"])),
                F.lit(" in after"),
            ),
        ),
    )


def canonical(looked: Column) -> Column:
    """Canonical texts (key, after, before), and whether `after` lacks columns.

    Key columns that `after` lacks are taken from the key: a known value is not left out.
    """
    shape = looked["shape"]
    missing = F.filter(looked["key"], lambda part: _value(looked["after"], part["name"]).isNull())
    after = F.concat(looked["after"], missing)
    return F.struct(
        _written(shape["key"], looked["key"]).alias("key"),
        _written(shape["columns"], after).alias("after"),
        _written(shape["columns"], looked["before"]).alias("before"),
        (F.size(after) < F.size(shape["columns"])).alias("partial"),
    )


def quoted(value: Column) -> Column:
    """The start of a value, for a complaint."""
    return F.concat(F.lit("'"), _cut(value), F.lit("'"))


def _shapes(tables: Mapping[str, Table]) -> Column:
    """Table name -> its key columns and all columns, each with name as JSON, type, in_key."""

    def column(table: Table, name: str) -> dict[str, object]:
        return {"name": json_text(name), "type": table.columns[name], "in_key": name in table.key}

    shapes = {
        table.name: {
            "key": [column(table, name) for name in table.key],
            "columns": [column(table, name) for name in table.columns],
        }
        for table in tables.values()
    }
    columns = "array<struct<name:string,type:string,in_key:boolean>>"
    schema = f"map<string,struct<key:{columns},columns:{columns}>>"
    return F.from_json(F.lit(json.dumps(shapes)), schema)


def _tokens(text: Column) -> Column:
    """The members of an object as (name, value), both canonical JSON text."""
    return F.zip_with(
        F.regexp_extract_all(text, F.lit(_TOKEN), F.lit(1)),
        F.regexp_extract_all(text, F.lit(_TOKEN), F.lit(2)),
        lambda name, value: F.struct(
            _canonical_token(name).alias("name"), _canonical_token(value).alias("value")
        ),
    )


def _canonical_token(token: Column) -> Column:
    """A string without needless escapes; anything else, and half a surrogate pair, as it is."""
    value = F.get_json_object(F.concat(F.lit("["), token, F.lit("]")), "$[0]")
    escaped = F.replace(F.replace(value, F.lit("\\"), F.lit("\\\\")), F.lit('"'), F.lit('\\"'))
    for code, escape in enumerate(_ESCAPES):
        escaped = F.replace(escaped, F.lit(chr(code)), F.lit(escape))
    mended = F.concat(F.lit('"'), escaped, F.lit('"'))
    return F.when(token.contains("\\") & token.rlike(_TEXT), mended).otherwise(token)


def _fits(value: Column, kind: Column) -> Column:
    """Claim that a token is a canonical value of the type; the exact rule (core/table.py)."""
    inner = F.substring(value, F.lit(2), F.length(value) - 2)
    number = ~value.rlike(r'\A(?:["{\[]|true|false|null)')
    rules = {
        ColumnType.BOOL: value.isin("true", "false"),
        ColumnType.INT32: value.rlike(r"\A(?:0|-?[1-9]\d{0,9})\z")
        & value.try_cast("int").isNotNull(),
        ColumnType.INT64: value.rlike(r'\A"(?:0|-?[1-9]\d{0,18})"\z')
        & inner.try_cast("bigint").isNotNull(),
        ColumnType.FLOAT64: value.rlike(rf"\A(?:{NOT_NUMBERS})\z")
        | (number & (F.abs(value.try_cast("double")) < float("inf"))),
        ColumnType.DECIMAL: value.rlike(rf"\A{DECIMAL}\z"),
        ColumnType.TEXT: value.rlike(_TEXT),
        ColumnType.BYTES: value.rlike(rf"\A{BYTES}\z"),
        ColumnType.TIMESTAMP: value.rlike(rf"\A{TIMESTAMP}\z"),
    }
    claim = F.lit(False)  # noqa: FBT003
    for known, rule in rules.items():
        claim = F.when(kind == known.value, rule).otherwise(claim)
    return claim


def _misfit(label: str, tokens: Column, columns: Column) -> Column:
    """A complaint about the first known member that does not fit its column."""

    def column(name: Column) -> Column:
        return F.get(F.filter(columns, lambda known: known["name"] == name), 0)

    def is_wrong(token: Column) -> Column:
        known = column(token["name"])
        allowed_null = ~known["in_key"] & (token["value"] == "null")
        return ~(allowed_null | _fits(token["value"], known["type"]))

    return _first(
        F.filter(tokens, is_wrong),
        lambda token: F.concat(
            F.lit(f"{label}: "),
            token["name"],
            F.lit(" is "),
            _cut(token["value"]),
            F.lit(", which is no "),
            column(token["name"])["type"],
        ),
    )


def _unknown(label: str, tokens: Column, columns: Column) -> Column:
    strangers = F.array_except(_names(tokens), _names(columns))
    return _first(strangers, lambda name: F.concat(F.lit(f"{label}: unknown column "), _cut(name)))


def _twice(label: str, tokens: Column) -> Column:
    repeated = F.size(F.array_distinct(_names(tokens))) < F.size(tokens)
    return F.when(repeated, F.lit(f"{label}: a column stands twice"))


def _written(columns: Column, tokens: Column) -> Column:
    """The object of the tokens in the columns' order; null if there is none."""
    there = F.filter(columns, lambda column: _value(tokens, column["name"]).isNotNull())
    members = F.transform(
        there,
        lambda column: F.concat(column["name"], F.lit(":"), _value(tokens, column["name"])),
    )
    text = F.concat(F.lit("{"), F.array_join(members, ","), F.lit("}"))
    return F.when(tokens.isNotNull(), text)


def _value(tokens: Column, name: Column) -> Column:
    return F.get(F.filter(tokens, lambda token: token["name"] == name), 0)["value"]


def _names(members: Column) -> Column:
    return F.transform(members, lambda member: member["name"])


def _listed(members: Column) -> Column:
    return F.concat(F.lit("["), _cut(F.array_join(_names(members), ", ")), F.lit("]"))


def _cut(text: Column) -> Column:
    return F.substring(text, 1, DETAIL_CHARS)


def _first(found: Column, complain: Callable[[Column], Column]) -> Column:
    return F.get(F.transform(F.slice(found, 1, 1), complain), 0)
