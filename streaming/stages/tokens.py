"""Tokens: a change that is not canonical as it came, taken apart: its faults, or its repair."""

import json
from collections.abc import Callable, Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.stages.parse import STRING
from streaming.stages.pattern import BYTES, DECIMAL, NOT_NUMBERS, TIMESTAMP

DETAIL_CHARS = 100
"""No more of a value is quoted in a complaint."""

_ATOM = rf'{STRING}|(?!\A)[\[{{]|[^\s",:\[{{\]}}]++'
"""A name or a value in an object: what is neither blank nor punctuation, or a nested bracket."""

_TEXT = (
    r'\A"(?:[^"\\]|\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r'|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+"\z'
)
"""A string in which no half of a surrogate pair stands alone."""

_ESCAPED = [(char, json.dumps(char)[1:-1]) for char in ["\\", '"', *map(chr, range(32))]]
"""What a string must escape, the backslash first."""


def look(
    tables: Iterable[Table], table: Column, key: Column, after: Column, before: Column
) -> Column:
    """What a closer look at the texts of a change finds, as a struct.

    `table_fault`, `key_fault`: what is wrong, or null. `key`, `after`, `before`: canonical text;
    a key column that `after` lacks is filled in. `partial`: `after` still lacks columns.
    """
    texts = F.transform(F.array(key, after, before), _members)
    parts = let(
        texts,
        lambda found: F.struct(
            _shapes(tables)[table].alias("shape"),
            found[0].alias("key"),
            found[1].alias("after"),
            found[2].alias("before"),
        ),
    )
    return let(parts, _found)


def quoted(value: Column) -> Column:
    """The start of a value, for a complaint."""
    return F.concat_ws("", F.lit("'"), F.substring(value, 1, DETAIL_CHARS), F.lit("'"))


def let(value: Column, body: Callable[[Column], Column]) -> Column:
    """`body` of a value that is calculated once."""
    return F.transform(F.array(value), body)[0]


def _found(seen: Column) -> Column:
    shape, key, after = seen["shape"], seen["key"], seen["after"]
    lacking = F.filter(key, lambda part: _value(after, part["name"]).isNull())
    other = F.filter(key, lambda part: _value(after, part["name"]) != part["value"])
    images = F.transform(F.array(after, seen["before"]), lambda image: _row_fault(shape, image))
    return F.struct(
        F.when(shape.isNull(), F.lit("it is not in the configuration"))
        .otherwise(_first(images))
        .alias("table_fault"),
        F.when(
            _names(key) != shape["key"],
            _said("its columns must be", F.array_join(shape["key"], ", ")),
        )
        .otherwise(F.coalesce(_misfit(shape, key), _first(F.transform(other, _differs))))
        .alias("key_fault"),
        _written(shape["key"], key).alias("key"),
        let(F.concat(after, lacking), lambda whole: _written(shape["columns"], whole)).alias(
            "after"
        ),
        _written(shape["columns"], seen["before"]).alias("before"),
        (F.size(after) + F.size(lacking) < F.size(shape["columns"])).alias("partial"),
    )


def _row_fault(shape: Column, image: Column) -> Column:
    """What is wrong with an image of a row, or null."""
    names = _names(image)
    unknown = F.array_except(names, shape["columns"])
    twice = F.size(F.array_distinct(names)) < F.size(names)
    return F.coalesce(
        _misfit(shape, image),
        F.when(twice, F.lit("a column stands twice")),
        F.when(F.size(unknown) > 0, _said("unknown:", F.array_join(unknown, ", "))),
    )


def _misfit(shape: Column, image: Column) -> Column:
    """What is wrong with the first member that does not fit its column, or null."""
    wrong = F.filter(image, lambda token: _misfits(shape, token))
    return _first(
        F.transform(
            wrong,
            lambda token: _said(
                token["name"], "is no", shape["types"][token["name"]], quoted(token["value"])
            ),
        )
    )


def _differs(part: Column) -> Column:
    return _said("after has another", part["name"], "than", quoted(part["value"]))


def _first(found: Column) -> Column:
    """The first that is not null."""
    return F.get(F.filter(found, lambda one: one.isNotNull()), F.lit(0))


def _misfits(shape: Column, token: Column) -> Column:
    null = (token["value"] == "null") & ~F.array_contains(shape["key"], token["name"])
    return ~(null | _fits(token["value"], shape["types"][token["name"]]))


def _fits(value: Column, kind: Column) -> Column:
    """Claim that a token is a canonical value of the type; the exact rule (core/model/table.py)."""
    inner = F.substring(value, F.lit(2), F.length(value) - 2)
    number = ~value.rlike(r'\A(?:["{\[]|true|false|null)')
    topology = {
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
    claim = F.when(F.lit(False), F.lit(False))  # noqa: FBT003
    for known, rule in topology.items():
        claim = claim.when(kind == known.value, rule)
    return claim


def _shapes(tables: Iterable[Table]) -> Column:
    """Table name -> its key columns, all columns, and their types; names as canonical JSON."""
    shapes = {
        table.name: {
            "key": [json_text(name) for name in table.key],
            "columns": [json_text(name) for name in table.columns],
            "types": {json_text(name): kind for name, kind in table.columns.items()},
        }
        for table in tables
    }
    shape = "struct<key:array<string>,columns:array<string>,types:map<string,string>>"
    return F.from_json(F.lit(json.dumps(shapes)), f"map<string,{shape}>")


def _members(text: Column) -> Column:
    """The members of an object as (name, value), both canonical JSON text; null of null."""
    atoms = F.transform(F.regexp_extract_all(text, F.lit(_ATOM), F.lit(0)), _canonical)
    return let(
        atoms,
        lambda found: F.transform(
            F.filter(found, lambda _, place: place % 2 == 0),
            lambda name, place: F.struct(
                name.alias("name"), F.get(found, 2 * place + 1).alias("value")
            ),
        ),
    )


def _canonical(token: Column) -> Column:
    """A string without needless escapes; anything else, and half a surrogate pair, as it is."""
    value = F.get_json_object(F.concat(F.lit("["), token, F.lit("]")), "$[0]")
    pairs = F.from_json(F.lit(json.dumps(_ESCAPED)), "array<array<string>>")
    escaped = F.aggregate(pairs, value, lambda text, pair: F.replace(text, pair[0], pair[1]))
    mended = F.concat(F.lit('"'), escaped, F.lit('"'))
    return F.when(token.contains("\\") & token.rlike(_TEXT), mended).otherwise(token)


def _written(columns: Column, tokens: Column) -> Column:
    """The object of the tokens in the columns' order; null if there is none."""
    members = F.transform(
        columns, lambda name: F.concat(name, F.lit(":"), _value(tokens, name))
    )  # null where there is no such token
    return F.concat(F.lit("{"), F.array_join(F.when(tokens.isNotNull(), members), ","), F.lit("}"))


def _value(tokens: Column, name: Column) -> Column:
    return F.get(F.filter(tokens, lambda token: token["name"] == name), F.lit(0))["value"]


def _names(tokens: Column) -> Column:
    return F.transform(tokens, lambda token: token["name"])


def _said(*parts: Column | str) -> Column:
    return F.concat_ws(" ", *[F.lit(part) if isinstance(part, str) else part for part in parts])
