"""An incarnation of a table: what the hub has of it, what the consumer has, and what remains.

A truncate ends an incarnation and begins the next, so one table may have two at once: one whose
rows must go, one whose rows must come. That is why drops go before creates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple


class AtHub(StrEnum):
    """What the hub has of an incarnation."""

    LOADING = "loading"
    """its first rows are being read; more of them are announced"""
    PRESENT = "present"
    """it holds the rows of the table"""
    DROPPING = "dropping"
    """it was ended, or its load was aborted; consumers may still have rows of it"""
    GONE = "gone"
    """nobody has a row of it"""

    @property
    def holds_rows(self) -> bool:
        """Return whether rows of it are sent."""
        return self in (AtHub.LOADING, AtHub.PRESENT)


class AtConsumer(StrEnum):
    """What a consumer has of an incarnation."""

    MISSING = "missing"
    """nothing: it began while the consumer was away"""
    INCOMPLETE = "incomplete"
    """part of it: the consumer went away in its first copy"""
    LOADING = "loading"
    """what was announced so far"""
    PRESENT = "present"
    """its rows"""
    DROPPING = "dropping"
    """its rows, which a live batch removes"""
    DROP_REMAINS = "drop_remains"
    """its rows, which nothing but a resync removes"""
    NOTHING = "nothing"
    """nothing, and nothing is to come"""

    @property
    def takes_rows(self) -> bool:
        """Return whether a resync may send rows of it: it is there, or will be created."""
        return self in _TAKES_ROWS


_TAKES_ROWS = {
    *(AtConsumer.MISSING, AtConsumer.INCOMPLETE, AtConsumer.LOADING, AtConsumer.PRESENT),
}


class WorkKind(StrEnum):
    """How a resync brings a table up to date, from the strongest to the weakest."""

    FULL_COPY = "full_copy"
    """every row, because nothing was tracked or the table is new there"""
    SCAN = "scan"
    """every row in ranges of keys; rows that the hub has not are deleted"""
    PAGE = "page"
    """the rows that were tracked"""
    APPEND_ONLY = "append_only"
    """what was appended behind the last row that was delivered"""

    @property
    def is_whole(self) -> bool:
        """Return whether all rows are sent, so that no tracked row is needed."""
        return self in (WorkKind.FULL_COPY, WorkKind.SCAN)


@dataclass(frozen=True, slots=True)
class TableIncarnation:
    """One incarnation of a table, as one agreement sees it; `work`: how it is resynced, if it is.

    `is_scanned`: its tracked rows do not tell what changed (it was truncated, or is always
    scanned).
    """

    table: str
    number: int
    at_hub: AtHub = AtHub.PRESENT
    at_consumer: AtConsumer = AtConsumer.PRESENT
    is_append_only: bool = False
    is_scanned: bool = False
    work: WorkKind | None = None


def incarnations_of(
    now: TableIncarnation, acked: int | None, *, is_full: bool = False
) -> tuple[TableIncarnation, ...]:
    """Return the incarnations of a table for a resync: the hub's, and the consumer's if it is over.

    now: the table as the hub has it. acked: the number of the incarnation that the consumer last
    acknowledged; None: it never had the table. is_full: a full copy of it was begun and never
    acknowledged, so it begins again. What a resync sent and nobody acknowledged does not count.
    """
    there = AtConsumer.PRESENT if acked == now.number else AtConsumer.MISSING
    current = replace(now, at_consumer=there, work=WorkKind.FULL_COPY if is_full else None)
    if acked is None or acked == now.number:
        return (current,)
    old = TableIncarnation(now.table, acked, AtHub.DROPPING, AtConsumer.DROP_REMAINS)
    return (old, current)


class TableAction(StrEnum):
    """What a resync does to an incarnation as a whole, before any row is sent."""

    DROP = "drop"
    """delete the rows that the consumer has of it"""
    CREATE = "create"
    """begin it at the consumer, empty"""
    NONE = "none"
    """nothing"""


class TableStep(NamedTuple):
    """An action, and the incarnation to which it is done."""

    action: TableAction
    incarnation: TableIncarnation


def action_on(incarnation: TableIncarnation) -> TableAction:
    """Return what is to be done; each action can be repeated."""
    at_hub, at_consumer = incarnation.at_hub, incarnation.at_consumer
    if at_hub is AtHub.DROPPING and at_consumer is AtConsumer.DROP_REMAINS:
        return TableAction.DROP
    if at_hub.holds_rows and at_consumer in (AtConsumer.MISSING, AtConsumer.INCOMPLETE):
        return TableAction.CREATE
    return TableAction.NONE


def after_action(incarnation: TableIncarnation) -> TableIncarnation:
    """Return the incarnation once its action is done and committed."""
    match action_on(incarnation):
        case TableAction.DROP:
            return gone(incarnation)
        case TableAction.CREATE if incarnation.at_hub is AtHub.LOADING:
            return replace(incarnation, at_consumer=AtConsumer.LOADING)
        case TableAction.CREATE:
            return replace(incarnation, at_consumer=AtConsumer.PRESENT)
        case TableAction.NONE:
            return incarnation


def gone(incarnation: TableIncarnation) -> TableIncarnation:
    """Return the incarnation when nobody has a row of it any more."""
    return replace(
        incarnation, at_hub=AtHub.GONE, at_consumer=AtConsumer.NOTHING, work=None, is_scanned=False
    )


def steps(
    incarnations: Iterable[TableIncarnation], referring_first: Sequence[str]
) -> tuple[TableStep, ...]:
    """Return what is to be done before rows are sent: all drops, then all creates.

    `referring_first`: the tables, each before those that it refers to. Drops go in this order,
    creates against it, so no row ever refers to one that is not there.
    """
    level = {table: place for place, table in enumerate(referring_first)}
    found = [TableStep(action_on(each), each) for each in incarnations]
    drops = [step for step in found if step.action is TableAction.DROP]
    creates = [step for step in found if step.action is TableAction.CREATE]
    return (
        *sorted(drops, key=lambda step: level[step.incarnation.table]),
        *sorted(creates, key=lambda step: -level[step.incarnation.table]),
    )
