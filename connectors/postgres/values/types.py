"""Which type of the wire carries a type of PostgreSQL, which are refused, and which may be keys.

A type is carried if the text of its values says all of them, and is the same for every reader with
the agent's text settings. A key is found by the text of its values, so equal values of its type
must have one text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.table import ColumnType


class TypeForm(StrEnum):
    """What a type is made of: `pg_type.typtype`, and arrays by themselves."""

    BASE = "b"
    """nothing else"""
    ARRAY = "a"
    """elements of another type"""
    COMPOSITE = "c"
    """columns"""
    DOMAIN = "d"
    """the values of another type"""
    ENUM = "e"
    """labels"""
    RANGE = "r"
    """bounds of another type"""
    MULTIRANGE = "m"
    """ranges"""
    PSEUDO = "p"
    """no value: no column has one"""


@dataclass(frozen=True, slots=True)
class ServerType:
    """A type of a column; `parts`: the types that it is made of, a domain's own type for one.

    `is_built_in`: of the schema pg_catalog. `modifier`: length, scale or precision as `atttypmod`
    has it; -1: none. `collates_alike`: False for a collation that is not deterministic.
    """

    name: str
    form: TypeForm = TypeForm.BASE
    parts: tuple["ServerType", ...] = ()
    is_built_in: bool = True
    modifier: int = -1
    collates_alike: bool = True

    @property
    def base(self) -> "ServerType":
        """The type of which a domain has the values; any other type itself."""
        return self.parts[0].base if self.form is TypeForm.DOMAIN else self

    @property
    def scale(self) -> int | None:
        """How many digits a numeric has behind the point; None: as many as are written.

        PostgreSQL: utils/adt/numeric.c, numeric_typmod_scale: 11 bits with a sign.
        """
        if self.name != "numeric" or self.modifier < 0:
            return None
        return (((self.modifier - 4) & 0x7FF) ^ 1024) - 1024


_CARRIED = {
    "bool": (ColumnType.BOOL,),
    "int2": (ColumnType.INT32, ColumnType.INT64),
    "int4": (ColumnType.INT32, ColumnType.INT64),
    "int8": (ColumnType.INT64,),
    "oid": (ColumnType.INT64,),
    "float4": (ColumnType.FLOAT64,),
    "float8": (ColumnType.FLOAT64,),
    "numeric": (ColumnType.DECIMAL,),
    "timestamptz": (ColumnType.TIMESTAMP,),
    "timestamp": (ColumnType.TEXT, ColumnType.TIMESTAMP),
    "bytea": (ColumnType.BYTES,),
}
"""Built-in types -> what carries their values, the default first; `text` carries each, too."""

_TEXTS = {
    *("text", "varchar", "bpchar", "char", "name", "uuid", "xml", "json", "jsonb", "jsonpath"),
    *("date", "time", "timetz", "interval", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit"),
    *("point", "line", "lseg", "box", "path", "polygon", "circle", "pg_lsn"),
    *("tsvector", "tsquery"),
}
"""Built-in types whose values are carried in PostgreSQL's own spelling."""

_KEYS = {"bool", "int2", "int4", "int8", "text", "varchar", "uuid", "date", "timestamptz", "bytea"}
_WHY_NOT = {
    "money": "its text depends on lc_monetary",
    "regclass": "its text is a name, which may change",
}


def kinds_of(declared: ServerType) -> tuple[ColumnType, ...]:
    """The types of the wire that carry a type's values, the default first; empty: none does."""
    if refusal_of(declared) is not None:
        return ()
    kinds = _CARRIED.get(declared.base.name, ()) if declared.base.is_built_in else ()
    return (*kinds, *({ColumnType.TEXT} - {*kinds}))


def refusal_of(declared: ServerType) -> str | None:
    """Why no type of the wire carries the type's values, and what to do; None: one does."""
    for one in _made_of(declared):
        if one.form is TypeForm.BASE and not (one.is_built_in and _is_carried(one.name)):
            is_name = one.name.startswith("reg")
            why = _WHY_NOT["regclass"] if is_name else _WHY_NOT.get(one.name, "it is not known")
            of = "" if one == declared else f", of which {declared.name} is made,"
            return f"the type {one.name}{of} cannot be carried: {why}; declare it as text"
        if one.form is TypeForm.PSEUDO:
            return f"the type {one.name} has no values; declare it as text"
    return None


def key_refusal_of(declared: ServerType) -> str | None:
    """Why the type is none for a key; None: equal values have one text."""
    base = declared.base
    if not declared.collates_alike:
        return 'equal values of its collation may have several texts: declare it COLLATE "C"'
    is_one_text = base.is_built_in and (
        base.name in _KEYS or (base.name == "numeric" and base.scale is not None)
    )
    if is_one_text or base.form is TypeForm.ENUM:
        return None
    advice = "numeric with a scale, such as numeric(12,2)" if base.name == "numeric" else "text"
    return f"equal values of type {base.name} may have several texts: declare it as {advice}"


def _made_of(declared: ServerType) -> Iterator[ServerType]:
    yield declared
    for part in declared.parts:
        yield from _made_of(part)


def _is_carried(name: str) -> bool:
    return name in _CARRIED or name in _TEXTS
