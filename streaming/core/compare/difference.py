"""A row that differs between two sides, and in what."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.compare.row_text import Image, value_text
from streaming.core.compare.side import Images
from streaming.core.model.table import Table


class DifferenceKind(StrEnum):
    """How a row differs."""

    ONLY_FIRST = "only_first"
    """it stands at the first side only"""
    ONLY_SECOND = "only_second"
    """it stands at the second side only"""
    COLUMNS = "columns"
    """it stands at both, with other values in some columns"""


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row with its images at both sides; None: it does not stand there."""

    table: str
    key: str
    first: Image | None
    second: Image | None
    columns: tuple[str, ...] = ()

    @property
    def kind(self) -> DifferenceKind:
        """Return how it differs."""
        if self.second is None:
            return DifferenceKind.ONLY_FIRST
        return DifferenceKind.ONLY_SECOND if self.first is None else DifferenceKind.COLUMNS


def differing_rows(
    table: Table,
    first: Images,
    second: Images,
    keys: Collection[str],
    ignored: DifferenceKind | None = None,
) -> list[DifferingRow]:
    """The rows of these keys that differ as they stand now; one that became equal is left out.

    `ignored`: rows of this kind do not differ, for an archive keeps them.
    """
    ours, theirs = first(keys), second(keys)
    found = list[DifferingRow]()
    for key in keys:
        pair = ours.get(key), theirs.get(key)
        columns = differing_columns(table, *pair)
        if columns or (pair[0] is None) != (pair[1] is None):
            found.append(DifferingRow(table.name, key, *pair, columns))
    return [one for one in found if one.kind is not ignored]


def differing_columns(table: Table, first: Image | None, second: Image | None) -> tuple[str, ...]:
    """The columns with other values; one that a side does not know differs in nothing.

    A hub knows no value of a column that no change has named.
    """
    if first is None or second is None:
        return ()
    return tuple(
        name
        for name, kind in table.columns.items()
        if name in first
        and name in second
        and value_text(first[name], kind, is_key=name in table.key)
        != value_text(second[name], kind, is_key=name in table.key)
    )
