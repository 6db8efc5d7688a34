"""A condition evaluated on many rows at once, and on one row through the same code.

A comparison with a null is unknown, as in SQL, and a row of which the condition is unknown is not
shown. Text is compared by its bytes in UTF-8; of numbers NaN is the largest, and equal to itself;
decimals of any length are compared exactly.
"""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from json.encoder import encode_basestring
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value, comparable, from_json, to_json
from streaming.filters.condition import (
    Comparison,
    Condition,
    IsNull,
    Junction,
    Likeness,
    Membership,
    Negation,
    columns_of,
    parsed,
)

_IN_ARROW: Mapping[str, Callable[..., Any]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_IN_PYTHON: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NATIVE = {
    ColumnType.BOOL: pa.bool_(),
    ColumnType.INT32: pa.int64(),
    ColumnType.INT64: pa.int64(),
    ColumnType.FLOAT64: pa.float64(),
    ColumnType.TEXT: pa.string(),
    ColumnType.BYTES: pa.string(),
}
"""The types whose values Arrow compares as the wire means them; others are compared by Python."""
_READ = {
    ColumnType.BOOL: pa.bool_(),
    ColumnType.INT32: pa.int64(),
    ColumnType.FLOAT64: pa.float64(),
}
"""The types whose values are no texts in JSON, as Arrow reads them; a NaN is a text."""


MANY = 256
"""So many images are read by Arrow, which is slower for few."""

_BLOCK_BYTES = 1 << 22
"""Arrow reads so much at a time; no image may be longer."""


@dataclass(frozen=True)
class RowPredicate:
    """A RowFilter of one table; two of the same text and table are equal."""

    text: str
    table: Table
    _condition: Condition = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the condition; ConfigError says what is wrong with it."""
        object.__setattr__(self, "_condition", parsed(self.text, self.table))

    def __str__(self) -> str:
        """Return the condition as it is configured."""
        return self.text

    def shown(self, images: Sequence[str | None]) -> list[bool]:
        """See RowFilter."""
        known = self._read(images) if len(images) >= MANY else {}
        found = self._holds(self._condition, _Columns(self.table, images, known)).to_pylist()
        return [
            bool(is_shown) and image is not None
            for is_shown, image in zip(found, images, strict=True)
        ]

    def _read(self, images: Sequence[str | None]) -> dict[str, pa.Array]:
        """The columns that decide, as Arrow reads them; none if it does not read these as JSON."""
        kinds = {name: self.table.columns[name] for name in sorted(columns_of(self._condition))}
        schema = pa.schema([(name, _READ.get(kind, pa.string())) for name, kind in kinds.items()])
        try:
            rows = arrow_json.read_json(
                pa.BufferReader("\n".join([image or "{}" for image in images]).encode()),
                arrow_json.ReadOptions(block_size=_BLOCK_BYTES),
                arrow_json.ParseOptions(schema, unexpected_field_behavior="ignore"),
            )
            found = {
                name: rows[name].cast(_NATIVE.get(kind, pa.string())).combine_chunks()
                for name, kind in kinds.items()
            }
        except pa.ArrowInvalid:
            return {}
        return found if rows.num_rows == len(images) else {}

    def surely_hidden(self, images: Sequence[str | None]) -> list[bool]:
        """See RowFilter."""
        # a quote inside of a value has an escape before it
        members = [f"{encode_basestring(one)}:" for one in sorted(columns_of(self._condition))]
        return [
            image is not None and not is_shown and all(member in image for member in members)
            for is_shown, image in zip(self.shown(images), images, strict=True)
        ]

    def _holds(self, condition: Condition, columns: "_Columns") -> pa.Array:
        """Mark the rows of which the condition holds; null: it is unknown."""
        match condition:
            case Junction(one, other, is_and):
                joined = pc.and_kleene if is_and else pc.or_kleene
                return joined(self._holds(one, columns), self._holds(other, columns))
            case Negation(of):
                return pc.invert(self._holds(of, columns))
            case IsNull(column):
                return pc.is_null(columns.texts(column))
            case Comparison(column, sign, value):
                return columns.compared(column, sign, value)
            case Membership(column, values):
                return columns.among(column, values)
            case Likeness(column, pattern):
                return pc.match_like(columns.texts(column), pattern)


@dataclass(frozen=True)
class _Columns:
    """Images of rows as columns; one that is absent is null. `known`: those that are read."""

    table: Table
    images: Sequence[str | None]
    known: dict[str, pa.Array]

    @cached_property
    def _rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = orjson.loads(
            f"[{','.join([image or '{}' for image in self.images])}]"
        )
        return rows

    def texts(self, column: str) -> pa.Array:
        """Return a column's values, of the types that Python compares as texts."""
        if column not in self.known:
            kind = self.table.columns[column]
            values: Iterable[Any] = (row.get(column) for row in self._rows)
            if kind is ColumnType.INT64:
                values = (None if value is None else int(value) for value in values)
            elif kind is ColumnType.FLOAT64:
                values = (None if value is None else float(value) for value in values)
            self.known[column] = pa.array(list(values), _NATIVE.get(kind, pa.string()))
        return self.known[column]

    def compared(self, column: str, sign: str, value: Value) -> pa.Array:
        """Compare a column with a value."""
        kind, found = self.table.columns[column], self.texts(column)
        if kind not in _NATIVE:
            wanted, compare = comparable(value), _IN_PYTHON[sign]
            return self._each(column, lambda one: compare(one, wanted))
        marks = _IN_ARROW[sign](found, _scalar(value, kind))
        if kind is ColumnType.FLOAT64:
            return pc.if_else(pc.is_nan(found), sign in ("<>", ">", ">="), marks)
        return marks

    def among(self, column: str, values: tuple[Value, ...]) -> pa.Array:
        """Mark where a column has one of these values."""
        kind, found = self.table.columns[column], self.texts(column)
        if kind not in _NATIVE:
            wanted = {comparable(value) for value in values}
            return self._each(column, lambda one: one in wanted)
        if kind is ColumnType.FLOAT64:
            each = (self.compared(column, "=", value) for value in values)
            return reduce(pc.or_kleene, each)
        options = pa.array([_scalar(value, kind).as_py() for value in values], _NATIVE[kind])
        return pc.if_else(pc.is_null(found), None, pc.is_in(found, options))

    def _each(self, column: str, holds: Callable[[tuple[Any, ...]], bool]) -> pa.Array:
        """Ask each different value once."""
        kind, encoded = self.table.columns[column], self.texts(column).dictionary_encode()
        different = [comparable(from_json(one, kind)) for one in encoded.dictionary.to_pylist()]
        return pa.array([holds(one) for one in different], pa.bool_()).take(encoded.indices)


def _scalar(value: Value, kind: ColumnType) -> pa.Scalar:
    written = to_json(value, kind) if kind is ColumnType.BYTES else value
    return pa.scalar(written, _NATIVE[kind])
