"""What intake makes of a record: an entry of the quarantine, a row to repair, or an outcome."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.change import Change, RowKey
from streaming.core.model.row import Arrived
from streaming.core.records.kinds import KIND_OF
from streaming.core.records.record import Reason, ReceivedRecord, RecordKind


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record in quarantine, the reason, and the change that it holds, if any.

    `kind`: what it is, as far as that could be read. `is_invalid`: the record alone gave the
    reason, not what came before it. `mre`: of a change that waits for a column, its MRE, by which
    it is judged when it goes on.
    """

    rid: int
    offset: int
    time_ms: int
    session: str | None
    reason: Reason
    detail: str
    change: Change | None = None
    content: str | None = None
    kind: RecordKind | None = None
    is_invalid: bool = False
    mre: int | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """A row to refresh and realign at a replica, for its changes after `offset`.

    `cause`: why it is refreshed: a Reason, RETRY or COMPARED.
    """

    rid: int
    row: RowKey
    offset: int
    cause: str


RETRY = "retry"
"""The cause of a refresh of a refused row that an operator sends again."""

COMPARED = "compared"
"""The cause of a refresh of a row that a comparison found to differ."""


@dataclass(frozen=True, slots=True)
class AbortTransaction:
    """An operator's abort of the open transaction that has this CSN, as primary or as member.

    `behind`: rid -> the last offset read of its topic when the command was read.
    """

    csn: str
    behind: Mapping[int, int]


class ControlOutcome(StrEnum):
    """The outcome of a control record, or of a change that leaves no other trace."""

    TAKEN = "taken"
    """it changed the hub's state"""
    DUPLICATE = "duplicate"
    """processed before"""
    UNKNOWN = "unknown"
    """a commit or abort of a transaction that is not open, a goodbye of a session not in force"""
    STOPPED = "stopped"
    """the replica is stopped at this record"""
    GIVEN_UP = "given up"
    """it told of a session behind a stop, which never came into force"""
    OLD_GENERATION = "old generation"
    """it acknowledges or refuses what a hub sent whose state was restored since: it is ignored"""
    ELSEWHERE = "elsewhere"
    """it refuses what another hub sent, which answers it"""


def quarantined_record(
    received: ReceivedRecord,
    reason: Reason,
    detail: str,
    content: str | None = None,
    mre: int | None = None,
) -> Quarantined:
    """Make the quarantine entry of a record."""
    change = received.record if isinstance(received.record, Change) else None
    return Quarantined(
        received.rid,
        received.offset,
        received.time_ms,
        received.session,
        reason,
        detail,
        change,
        content,
        received.kind or (KIND_OF[type(received.record)] if received.record else None),
        received.reason is not None,
        mre,
    )


def quarantined_change(arrived: Arrived, reason: Reason, detail: str) -> Quarantined:
    """Make the quarantine entry of a change that intake had accepted."""
    return Quarantined(
        arrived.change.rid,
        arrived.offset,
        arrived.time_ms,
        arrived.session,
        reason,
        detail,
        arrived.change,
        arrived.content,
        RecordKind.CHANGE,
        mre=arrived.mre if reason is Reason.COLUMN else None,
    )
