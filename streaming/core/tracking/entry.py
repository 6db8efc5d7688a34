"""What is tracked: one row that the consumer lacks, at its position in hub order."""

from collections.abc import Iterable
from typing import NamedTuple


class HubPosition(NamedTuple):
    """A position in hub order: a hub epoch, and a place within it, from 0."""

    hub_epoch: int
    place: int = 0


class TrackedRow(NamedTuple):
    """A row that was written while the consumer was away; `position`: where, in hub order.

    `incarnation`: that of the table when the row was written; it rises with every truncate.
    `key`: canonical text of the key object. A refresh is tracked at the position of the row that it
    sent, a refused item at the one that it was refused at. Positions are compared with those of
    rows; where these have no place, it is 0 in both.
    """

    table: str
    incarnation: int
    key: str
    position: HubPosition


class ChangedRows(NamedTuple):
    """The rows of one table that a consumer lacks; of the table's highest incarnation only."""

    table: str
    incarnation: int
    keys: tuple[str, ...]


def newest(
    entries: Iterable[TrackedRow], upto: HubPosition | None = None
) -> tuple[TrackedRow, ...]:
    """Return one entry per table, incarnation and key: the last one in hub order.

    `upto`: entries behind this position are discarded. The order of the result means nothing.
    """
    found = dict[tuple[str, int, str], TrackedRow]()
    for entry in entries:
        if upto is not None and entry.position > upto:
            continue
        known = found.get(entry[:3])
        if known is None or known.position < entry.position:
            found[entry[:3]] = entry
    return tuple(found.values())


def changed_rows(entries: Iterable[TrackedRow]) -> tuple[ChangedRows, ...]:
    """Return the changed rows table by table, each key once.

    Entries of an incarnation below a table's highest are of rows that a truncate has removed.
    """
    keys = dict[str, tuple[int, dict[str, None]]]()
    for table, incarnation, key, _ in entries:
        known = keys.get(table)
        if known is None or known[0] < incarnation:
            keys[table] = incarnation, {key: None}
        elif known[0] == incarnation:
            known[1][key] = None
    return tuple(
        ChangedRows(table, number, tuple(found)) for table, (number, found) in keys.items()
    )


def count_rows(entries: Iterable[TrackedRow] | None) -> int | None:
    """Return how many rows are tracked, whatever their incarnation; None: nothing is tracked."""
    return None if entries is None else len({(table, key) for table, _, key, _ in entries})
