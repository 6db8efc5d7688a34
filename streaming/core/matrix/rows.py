"""Rows of the matrix: per origin the number of its last change that a replica has.

The rules are those of ClearCase MultiSite (docs/rules/epoch_matrix.md). The hub's own row is fact;
the row of a consumer is an estimate, raised when something is sent to it, and lowered or raised by
an operator.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

Row = Mapping[int, int]
"""Origin's rid -> the number of its last change that is there; absent: 0, none is."""


Origin = TypeVar("Origin", int, str)
"""An origin's rid, or its name."""


class NumberRange(NamedTuple):
    """Consecutive numbers of one origin's changes, both ends included."""

    first: int
    last: int


class MovedColumn(NamedTuple):
    """A column of a row that an operator sets, as it was and as it becomes."""

    origin: int
    before: int
    after: int


def counted(number: int, opno: int | None, changes: int = 1) -> int:
    """The number of an origin's last change, behind further ones of it; `opno`: of the last.

    An origin that numbers its changes is believed, and never goes back; otherwise the hub counts.
    """
    return number + changes if opno is None else max(number, opno)


def lacking(own: Mapping[Origin, int], row: Mapping[Origin, int]) -> dict[Origin, NumberRange]:
    """What a replica with this row lacks of what is here, by origin.

    Operations `row` + 1 to `own` of each origin of which more is here than there (document 003,
    Optimization and the Epoch Number Matrix).
    """
    return {
        origin: NumberRange(row.get(origin, 0) + 1, number)
        for origin, number in own.items()
        if number > row.get(origin, 0)
    }


def moved(before: Row, after: Row) -> tuple[MovedColumn, ...]:
    """The columns in which two states of a row differ, by origin."""
    return tuple(
        MovedColumn(origin, before.get(origin, 0), after.get(origin, 0))
        for origin in sorted({*before, *after})
        if before.get(origin, 0) != after.get(origin, 0)
    )


def is_within(row: Row, numbers: Row) -> bool:
    """Return whether a row is at or below these numbers in every column that they name."""
    return all(row.get(origin, 0) <= number for origin, number in numbers.items())
