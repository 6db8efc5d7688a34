"""Marking: which of the four kinds of work each table gets when a resync begins."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from streaming.core.tracking.append_only import AppendedRows, needs_catch_up
from streaming.core.tracking.entry import ChangedRows
from streaming.core.tracking.incarnation import (
    AtConsumer,
    AtHub,
    TableIncarnation,
    WorkKind,
    gone,
)


class NotPaged(StrEnum):
    """Why tracked rows are not sent as pages."""

    GONE = "gone"
    """nobody has rows of this incarnation any more"""
    OTHER_INCARNATION = "other_incarnation"
    """the table was truncated since, or the hub does not know the table"""
    SENT_WHOLE = "sent_whole"
    """the table is scanned or copied, which sends them too"""
    APPEND_ONLY = "append_only"
    """the table catches up from where it was delivered"""
    BEING_DROPPED = "being_dropped"
    """the rows are about to go"""
    NOT_THERE = "not_there"
    """the consumer has no such table, and it will not be created"""


class UnpagedRows(NamedTuple):
    """Tracked rows that no page sends, and why."""

    rows: ChangedRows
    reason: NotPaged


@dataclass(frozen=True, slots=True)
class Marking:
    """The incarnations with their work, and the tracked rows that need none."""

    incarnations: tuple[TableIncarnation, ...]
    unpaged: tuple[UnpagedRows, ...] = ()


def mark_full_copy(incarnation: TableIncarnation) -> TableIncarnation:
    """Return the incarnation for a full copy: begun anew, or forgotten if only its drop remained.

    A consumer that gets a full copy deletes what is not in it, so nothing is left to be dropped.
    Incarnations that end in a live batch stay as they are.
    """
    if incarnation.at_hub.holds_rows:
        return replace(incarnation, at_consumer=AtConsumer.MISSING, work=WorkKind.FULL_COPY)
    if incarnation.at_consumer is AtConsumer.DROP_REMAINS:
        return gone(incarnation)
    return incarnation


def why_not_paged(rows: ChangedRows, incarnation: TableIncarnation | None) -> NotPaged | None:
    """Return why these tracked rows are not sent as pages; None: they are.

    `incarnation`: the highest one of the table, None if the hub knows none.
    """
    if incarnation is None or incarnation.number != rows.incarnation:
        return NotPaged.OTHER_INCARNATION
    if incarnation.at_hub is AtHub.GONE:
        return NotPaged.GONE
    if incarnation.work is not None and incarnation.work.is_whole:
        return NotPaged.SENT_WHOLE
    if incarnation.is_append_only:
        return NotPaged.APPEND_ONLY
    if not incarnation.at_hub.holds_rows:
        return NotPaged.BEING_DROPPED
    return None if incarnation.at_consumer.takes_rows else NotPaged.NOT_THERE


def mark(
    incarnations: Iterable[TableIncarnation],
    changed: Iterable[ChangedRows],
    appended: Mapping[str, AppendedRows],
    *,
    is_full: bool,
) -> Marking:
    """Return all incarnations marked, each with the strongest work that it needs.

    `changed`: from compacted logs. `appended`: table -> its rows, for append-only tables.

    1. A full copy of everything takes the place of all the rest.
    2. Scans: of truncated and always scanned tables, and of those whose copy is not finished.
    3. Pages of tracked rows.
    4. Catch-up of append-only tables.
    """
    if is_full:
        return Marking(tuple(mark_full_copy(each) for each in incarnations))
    marked = [_mark_scan(each) for each in incarnations]
    highest = _highest(marked)
    unpaged, paged = list[UnpagedRows](), set[tuple[str, int]]()
    for rows in changed:
        if (reason := why_not_paged(rows, highest.get(rows.table))) is None:
            paged.add((rows.table, rows.incarnation))
        else:
            unpaged.append(UnpagedRows(rows, reason))
    marked = [
        replace(each, work=WorkKind.PAGE) if (each.table, each.number) in paged else each
        for each in marked
    ]
    return Marking(tuple(_mark_append(each, appended) for each in marked), tuple(unpaged))


def _mark_scan(incarnation: TableIncarnation) -> TableIncarnation:
    """An unfinished full copy stays one; other marks of an earlier resync are forgotten."""
    is_there = incarnation.at_hub.holds_rows and incarnation.at_consumer.takes_rows
    if not is_there or incarnation.work is WorkKind.FULL_COPY:
        return replace(incarnation, work=incarnation.work if is_there else None)
    return replace(incarnation, work=WorkKind.SCAN if incarnation.is_scanned else None)


def _mark_append(
    incarnation: TableIncarnation, appended: Mapping[str, AppendedRows]
) -> TableIncarnation:
    rows = appended.get(incarnation.table)
    if incarnation.work is None and rows is not None and needs_catch_up(incarnation, rows):
        return replace(incarnation, work=WorkKind.APPEND_ONLY)
    return incarnation


def _highest(incarnations: Iterable[TableIncarnation]) -> dict[str, TableIncarnation]:
    found = dict[str, TableIncarnation]()
    for each in incarnations:
        if each.table not in found or found[each.table].number < each.number:
            found[each.table] = each
    return found
