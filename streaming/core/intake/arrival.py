"""What became of a record on its way in: kept in quarantine, a row to repair, or an outcome."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from streaming.core.model.change import Change, RowKey
from streaming.core.model.record import Reason, ReceivedRecord
from streaming.core.model.row import Arrived


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record that is no good, the reason, and its change where it is one."""

    rid: int
    offset: int
    time_ms: int
    session: str | None
    reason: Reason
    detail: str
    change: Change | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Repair:
    """A row to be refreshed and realigned at its origin, for what stands behind `offset`."""

    rid: int
    row: RowKey
    offset: int
    cause: Reason


@dataclass(frozen=True, slots=True)
class AbortTransaction:
    """An operator ends the open transaction that this CSN is the primary or a member of.

    `behind`: rid -> the last offset that was read of its topic when the operator's word was taken.
    """

    csn: str
    behind: Mapping[int, int]


class ControlOutcome(StrEnum):
    """What became of a control record."""

    TAKEN = "taken"
    """it changed the hub's state"""
    DUPLICATE = "duplicate"
    """known already"""
    UNKNOWN = "unknown"
    """a commit or abort of a transaction that is not open"""
    STOPPED = "stopped"
    """the replica stops here"""


def kept(
    received: ReceivedRecord, reason: Reason, detail: str, content: str | None = None
) -> Quarantined:
    """A record that goes to quarantine as it came."""
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
    )


def kept_arrived(arrived: Arrived, reason: Reason, detail: str) -> Quarantined:
    """A change that was taken in and goes to quarantine after all."""
    return Quarantined(
        arrived.change.rid,
        arrived.offset,
        arrived.time_ms,
        arrived.session,
        reason,
        detail,
        arrived.change,
        arrived.content,
    )
