"""A condition on rows as a value: what its SQL says of the columns of one table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from difflib import get_close_matches
from math import isfinite

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from streaming.core.model.errors import ConfigError, WireError
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import Value, from_json, to_json

LONGEST = 10_000
"""So many characters a condition has at most."""

DEEPEST = 100
"""So many conditions are in each other, or joined in a row, at most."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value; `sign`: one of =, <>, <, <=, >, >=."""

    column: str
    sign: str
    value: Value


@dataclass(frozen=True, slots=True)
class Membership:
    """A column is one of these values."""

    column: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Likeness:
    r"""A text is like a pattern: % any characters, _ one, and a backslash before one means it."""

    column: str
    pattern: str


@dataclass(frozen=True, slots=True)
class IsNull:
    """A column is null, or absent."""

    column: str


@dataclass(frozen=True, slots=True)
class Negation:
    """A condition does not hold."""

    of: "Condition"


@dataclass(frozen=True, slots=True)
class Junction:
    """Both conditions hold, or one of them."""

    one: "Condition"
    other: "Condition"
    is_and: bool


Condition = Comparison | Membership | Likeness | IsNull | Negation | Junction

_SIGNS: dict[type[exp.Expression], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERED = frozenset(_SIGNS.values()) - {"=", "<>"}
_WITHOUT_ORDER = (ColumnType.BOOL, ColumnType.BYTES)
_GRAMMAR = (
    "a condition compares columns with values (= <> < <= > >=, IN, BETWEEN, LIKE, IS NULL) and"
    " joins that with AND, OR, NOT"
)

_NAMES = "a column whose name has blanks or signs stands in double quotes"


def parsed(text: str, table: Table) -> Condition:
    """The condition that a text states of a table; ConfigError says what of it is none."""
    if len(text) > LONGEST:
        raise ConfigError(f"the condition has {len(text)} characters: {LONGEST} are allowed")
    try:
        found = parse(text, read="postgres")
    except SqlglotError as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise ConfigError(
            f"{text!r} is no condition in SQL: {said}: {_GRAMMAR}; {_NAMES}"
        ) from None
    except RecursionError:
        raise _too_deep(text) from None
    one = found[0] if len(found) == 1 else None
    if not isinstance(one, exp.Expression):
        raise ConfigError(f"{text!r} is not one condition: {_GRAMMAR}")
    try:
        condition = _Reader(table).condition(one)
        depth = _depth(condition)
    except RecursionError:
        raise _too_deep(text) from None
    if depth > DEEPEST:
        raise _too_deep(text)
    return condition


def _too_deep(text: str) -> ConfigError:
    return ConfigError(f"{text[:80]!r}... is nested too deeply: use IN")


def _depth(condition: Condition) -> int:
    match condition:
        case Negation(of):
            return 1 + _depth(of)
        case Junction(one, other):
            return 1 + max(_depth(one), _depth(other))
        case _:
            return 1


def columns_of(condition: Condition) -> frozenset[str]:
    """The columns that a condition speaks of."""
    match condition:
        case Negation(of):
            return columns_of(of)
        case Junction(one, other):
            return columns_of(one) | columns_of(other)
        case _:
            return frozenset({condition.column})


@dataclass(frozen=True, slots=True)
class _Reader:
    table: Table

    def condition(self, node: exp.Expression) -> Condition:
        """The condition that an expression states."""
        match node:
            case exp.Paren():
                return self.condition(_only(node, "this")["this"])
            case exp.And() | exp.Or():
                parts = _only(node, "this", "expression")
                one, other = map(self.condition, (parts["this"], parts["expression"]))
                return Junction(one, other, isinstance(node, exp.And))
            case exp.Not():
                return Negation(self.condition(_only(node, "this")["this"]))
            case exp.Is():
                return self._is_null(node)
            case exp.Between():
                parts = _only(node, "this", "low", "high")
                low, high = parts["low"], parts["high"]
                above = self._comparison(parts["this"], ">=", low)
                return Junction(above, self._comparison(parts["this"], "<=", high), is_and=True)
            case exp.In():
                return self._membership(node)
            case exp.Like():
                return self._likeness(node)
            case exp.Column():
                return self._truth(node)
            case _ if type(node) in _SIGNS:
                return self._compared(node, _SIGNS[type(node)])
            case _:
                raise _refused(node)

    def _compared(self, node: exp.Expression, sign: str) -> Condition:
        parts = _only(node, "this", "expression")
        left, right = _bare(parts["this"]), _bare(parts["expression"])
        if isinstance(left, exp.Column):
            return self._comparison(left, sign, right)
        return self._comparison(right, _TURNED.get(sign, sign), left)

    def _comparison(self, column: exp.Expression, sign: str, value: exp.Expression) -> Condition:
        name, kind = self._column(column)
        if sign in _ORDERED and kind in _WITHOUT_ORDER:
            raise ConfigError(f"{name} is of type {kind}, which has no order: use =, <> or IN")
        return Comparison(name, sign, _value(value, name, kind))

    def _membership(self, node: exp.Expression) -> Condition:
        parts = _only(node, "this", "expressions")
        name, kind = self._column(parts["this"])
        values = parts.get("expressions")
        if not values:
            raise ConfigError(f"{node.sql()!r} names no value: give at least one")
        return Membership(name, tuple(_value(one, name, kind) for one in values))

    def _likeness(self, node: exp.Expression) -> Condition:
        parts = _only(node, "this", "expression", "negate")
        name, kind = self._column(parts["this"])
        if kind is not ColumnType.TEXT:
            raise ConfigError(f"{name} is of type {kind}: LIKE looks at texts")
        pattern = str(_value(parts["expression"], name, kind))
        if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
            raise ConfigError(
                f"{pattern!r} ends with a backslash, which means a character behind it"
            )
        found = Likeness(name, pattern)
        return Negation(found) if parts.get("negate") else found

    def _is_null(self, node: exp.Expression) -> Condition:
        parts = _only(node, "this", "expression", "negate")
        if not isinstance(parts["expression"], exp.Null):
            raise ConfigError(f"{node.sql()!r}: only NULL may follow IS and IS NOT")
        found = IsNull(self._column(parts["this"])[0])
        return Negation(found) if parts.get("negate") else found

    def _truth(self, node: exp.Expression) -> Condition:
        name, kind = self._column(node)
        if kind is not ColumnType.BOOL:
            raise ConfigError(f"{name} is of type {kind}: compare it with a value")
        return Comparison(name, "=", True)  # noqa: FBT003 - the value

    def _column(self, node: exp.Expression) -> tuple[str, ColumnType]:
        node = _bare(node)
        if not isinstance(node, exp.Column):
            raise ConfigError(f"{node.sql()!r} is no column of table {self.table.name}: {_GRAMMAR}")
        _only(node, "this")
        name = node.name
        if name not in self.table.columns:
            near = get_close_matches(name, self.table.columns) or self.table.columns
            raise ConfigError(
                f"{name!r} is no column of table {self.table.name}: use one of {', '.join(near)}"
            )
        return name, self.table.columns[name]


def _only(node: exp.Expression, *names: str) -> dict[str, exp.Expression]:
    """The parts of a node; ConfigError: it has others than these."""
    found = {name: part for name, part in node.args.items() if part not in (None, False, [])}
    if found.keys() - set(names):
        raise _refused(node)
    return found


def _refused(node: exp.Expression) -> ConfigError:
    return ConfigError(f"{node.sql()!r} cannot be in a condition: {_GRAMMAR}")


def _bare(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = _only(node, "this")["this"]
    return node


def _value(node: exp.Expression, column: str, kind: ColumnType) -> Value:
    """The value that a literal states for a column of this type."""
    bare, sign = _bare(node), ""
    if isinstance(bare, exp.Null):
        raise ConfigError(f"{column} is compared with NULL, which is never true: use IS NULL")
    if isinstance(bare, exp.Neg):
        bare, sign = _bare(bare.this), "-"
    read, wanted = _LITERALS[kind]
    try:
        value = read(bare, sign)
    except (ValueError, ArithmeticError, WireError):
        value = None
    if value is None:
        raise ConfigError(f"{column} is of type {kind}: write {wanted} in place of {node.sql()}")
    return value


def _number(node: exp.Expression, sign: str) -> str:
    if not isinstance(node, exp.Literal) or node.is_string:
        raise ValueError
    return f"{sign}{node.this}"


def _integer(node: exp.Expression, sign: str) -> Value:
    text = _number(node, sign)
    return from_json(str(int(text)), ColumnType.INT64)


def _decimal(node: exp.Expression, sign: str) -> Value:
    return Decimal(_number(node, sign))


def _float(node: exp.Expression, sign: str) -> Value:
    value = float(_number(node, sign))
    return value if isfinite(value) else None


def _string(node: exp.Expression, sign: str) -> str:
    if sign or not isinstance(node, exp.Literal) or not node.is_string:
        raise ValueError
    return str(node.this)


def _text(node: exp.Expression, sign: str) -> Value:
    return from_json(_string(node, sign), ColumnType.TEXT)


def _time(node: exp.Expression, sign: str) -> Value:
    text = _string(node, sign)
    try:
        return from_json(text, ColumnType.TIMESTAMP)
    except WireError:
        value = datetime.fromisoformat(text)
        return from_json(to_json(value, ColumnType.TIMESTAMP), ColumnType.TIMESTAMP)


def _bool(node: exp.Expression, sign: str) -> Value:
    return bool(node.this) if isinstance(node, exp.Boolean) and not sign else None


def _bytes(node: exp.Expression, sign: str) -> Value:
    return bytes.fromhex(node.this) if isinstance(node, exp.HexString) and not sign else None


_LITERALS: Mapping[ColumnType, tuple[Callable[[exp.Expression, str], Value], str]] = {
    ColumnType.BOOL: (_bool, "TRUE or FALSE"),
    ColumnType.INT32: (_integer, "a whole number"),
    ColumnType.INT64: (_integer, "a whole number"),
    ColumnType.FLOAT64: (_float, "a number"),
    ColumnType.DECIMAL: (_decimal, "a number"),
    ColumnType.TEXT: (_text, "a text in quotes, as 'eu',"),
    ColumnType.BYTES: (_bytes, "bytes as X'00ff'"),
    ColumnType.TIMESTAMP: (_time, "a time with its zone, as '2024-02-29T12:00:00Z',"),
}
