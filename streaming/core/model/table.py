"""A replicated table: its key, its columns with their types, and its conflict function."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.function import EPOCH, ConflictFunction

DEFAULT_DATASET = "default"
"""The data set of a table whose configuration names none."""


class ColumnType(StrEnum):
    """The type of a column, and its values on the wire (docs/wire.md, Values)."""

    BOOL = "bool"
    """true or false"""
    INT32 = "int32"
    """a JSON number"""
    INT64 = "int64"
    """a string of decimal digits"""
    FLOAT64 = "float64"
    """a JSON number, or one of the strings NaN, Infinity, -Infinity"""
    DECIMAL = "decimal"
    """a string of decimal digits with an optional point"""
    TEXT = "text"
    """a string"""
    BYTES = "bytes"
    """a string of base64"""
    TIMESTAMP = "timestamp"
    """a string, RFC 3339 with microseconds in UTC: 2024-02-29T23:59:59.000001Z"""


class OnRefused(StrEnum):
    """What the hub does when a replica's database refuses a row of the table."""

    SKIP = "skip"
    """the row is listed as differing, and sent again with its next version or by an operator"""
    STOP = "stop"
    """the replica is sent nothing more until an operator resumes its agreement"""
    REFRESH = "refresh"
    """the row is sent again by itself, at growing intervals"""


class OnHidden(StrEnum):
    """What the hub does with a write on a row that its replica is not shown."""

    JUDGE = "judge"
    """it is concurrent with the row, and the table's function decides"""
    QUARANTINE = "quarantine"
    """it goes to quarantine as `hidden`, and its replica is sent the row as it stands"""


@dataclass(frozen=True, slots=True)
class Table:
    """name, key columns in key order, all columns in schema order (key columns included).

    `dataset`: the data set that it belongs to; each has a RUV and pending lists of its own.
    `on_refused`: what follows when a replica refuses a row of it; `on_hidden`: when one writes a
    row that it is not shown.
    """

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, ColumnType]
    function: ConflictFunction = EPOCH
    dataset: str = DEFAULT_DATASET
    on_refused: OnRefused = OnRefused.SKIP
    on_hidden: OnHidden = OnHidden.JUDGE


def not_configured(name: str) -> str:
    """Why a change of a table is in quarantine that the configuration does not name."""
    return (
        f"table {name} is not configured: a change of a table that is not in the configuration"
        " cannot be judged; add the table (`slackwater config apply`) and release the record, or"
        " drop it"
    )


_WIDENED = {(ColumnType.INT32, ColumnType.FLOAT64), (ColumnType.INT64, ColumnType.DECIMAL)}
"""(old, new): each value of the old type is written as the same value of the new one.

An int32 is no int64: one is a JSON number, the other a string. Decimals and times have a text that
a text column would take; but a database may store them otherwise, and then the replicas differ.
"""


def keeps_values(old: ColumnType, new: ColumnType) -> bool:
    """Return whether every value that is written as the old type is the same one of the new.

    The hub keeps values as the wire writes them. Under another type most of them are no values, and
    some mean something else, as the base64 of bytes does under text.
    """
    return old is new or (old, new) in _WIDENED
