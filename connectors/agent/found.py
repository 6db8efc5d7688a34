"""What is found in a replica's database, for a person and for whoever empties it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class CheckedColumn:
    """A column, the type that it is configured as (None: it is not), and what it may hold."""

    table: str
    name: str
    declared: str
    configured: str | None
    holds: str
    default: str | None


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A configured table; `triggers`: the user's own."""

    name: str
    rows: int
    is_captured: bool
    triggers: tuple[str, ...]


class ConstraintKind(StrEnum):
    """A kind of constraint, by the code of a refusal for it (docs/wire.md, refused)."""

    UNIQUE = "unique"
    """no two rows have the same values in these columns"""
    CHECK = "check"
    """a condition on the row"""
    FOREIGN_KEY = "foreign_key"
    """a row of another table must exist; the agent does not check it when it applies"""


@dataclass(frozen=True, slots=True)
class TableConstraint:
    """A constraint of a table, and its text as SQL has it; columns are empty for a CHECK."""

    table: str
    kind: ConstraintKind
    columns: tuple[str, ...]
    text: str


_CONSTRAINT_MEANS = {
    ConstraintKind.UNIQUE: "two replicas may each accept a row with the same values; each database"
    " then refuses the other's row, which `slackwater status` lists until one of them changes",
    ConstraintKind.CHECK: "a database without it may accept a row that this one then refuses, and"
    " that `slackwater status` lists until it changes; declare it at every replica",
    ConstraintKind.FOREIGN_KEY: "the agent does not check it when it applies: a row whose parent"
    " was deleted at another replica stays, and ON DELETE or ON UPDATE does nothing then",
}


def constraint_warnings(constraints: Sequence[TableConstraint]) -> list[str]:
    """What each constraint beside the key means among replicas."""
    return [f"table {one.table}: {one.text}: {_CONSTRAINT_MEANS[one.kind]}" for one in constraints]


@dataclass(frozen=True, slots=True)
class CheckedPoint:
    """Something that was checked; `to_do`: what is wrong and what to do, empty: it is in order.

    `is_in_the_way`: what is wrong keeps an agent from starting; otherwise it is a warning.
    """

    what: str
    to_do: str = ""
    is_in_the_way: bool = True


@dataclass(frozen=True, slots=True)
class DatabaseCheck:
    """What was found; `complaints` and `row_faults` are in the way, `warnings` are not.

    `row_faults`: rows that no other replica can take; `uncarried`: those of which an agent has
    published a write, since when; `saved`: how many were overwritten and are nowhere else
    (`slackwater agent saved`); `without_key`: tables that could not be configured, because nothing
    in them is unique; `to_snapshot`: tables whose rows the agent tells the
    others when it starts; `broken_references`: rows that refer to no row, if they were looked for;
    `points`: what was checked of a server and of the agent's rights, in order or not.
    """

    tables: tuple[CheckedTable, ...]
    columns: tuple[CheckedColumn, ...]
    constraints: tuple[TableConstraint, ...]
    without_key: tuple[str, ...]
    not_configured: tuple[str, ...]
    warnings: tuple[str, ...]
    row_faults: tuple[str, ...]
    complaints: tuple[str, ...]
    to_snapshot: tuple[str, ...]
    uncarried: tuple[str, ...]
    saved: int
    broken_references: tuple[str, ...] = ()
    points: tuple[CheckedPoint, ...] = ()

    @property
    def is_good(self) -> bool:
        """Return whether an agent would start, and carry every row that is there."""
        prevented = any(one.to_do and one.is_in_the_way for one in self.points)
        return not (self.complaints or self.row_faults or self.uncarried or prevented)


@dataclass(frozen=True, slots=True)
class SavedImage:
    """A row that was overwritten and was nowhere else; `key`: as the wire has it."""

    id: int
    at: datetime
    table: str
    key: str
    why: str


@dataclass(frozen=True, slots=True)
class KnownOwn:
    """What the hub knows of a replica's own changes: the largest CSN and opno."""

    csn: str = ""
    opno: int = 0


Rows = Iterable[tuple[str, str]]
"""Rows of a table: key and image as the wire has them."""

IsKnown = Callable[[str, str, str], bool]
"""Return whether the hub has this image of the row: table, key, image."""
