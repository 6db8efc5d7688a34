"""The statuses of replicas and agreements: closed enums, with a separate detail text.

A new status is a new member here; mypy then reports every `match` that must handle it.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from streaming.core.model.errors import StateError


class StopReason(StrEnum):
    """Why the hub stops reading from a replica and sending to it, until an operator acts."""

    HUB_BEHIND = "hub_behind"
    """the consumer is ahead of the hub: the hub's state was rolled back"""
    OTHER_REPLICAGENERATION = "other_replicageneration"
    """the consumer's data came from another initial load"""
    UNSUPPORTED = "unsupported"
    """its topic holds a record that this version cannot process; the detail names the kind"""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a replica is stopped; `detail`: more about the reason, or empty."""

    reason: StopReason
    detail: str = ""


class ReplicaStatus(StrEnum):
    """What the hub does with a replica's changes topic."""

    SILENT = "silent"
    """no hello was read yet"""
    LIVE = "live"
    """a session is in force: its records are processed"""
    HUB_BEHIND = StopReason.HUB_BEHIND.value
    """stopped: its hello knows more than the hub ever committed"""
    OTHER_REPLICAGENERATION = StopReason.OTHER_REPLICAGENERATION.value
    """stopped: its hello names another initial load"""
    UNSUPPORTED = StopReason.UNSUPPORTED.value
    """stopped before a record that this version cannot process"""

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing more is read from a replica in this status."""
        match self:
            case ReplicaStatus.SILENT | ReplicaStatus.LIVE:
                return False
            case (
                ReplicaStatus.HUB_BEHIND
                | ReplicaStatus.OTHER_REPLICAGENERATION
                | ReplicaStatus.UNSUPPORTED
            ):
                return True


class AgreementStatus(StrEnum):
    """What an agreement's consumer is sent."""

    WAITING_FOR_HELLO = "waiting_for_hello"
    """nothing: its consumer's position is not known"""
    CATCHING_UP = "catching_up"
    """bounded pages of the changelog, from its position on"""
    IN_SYNC = "in_sync"
    """each batch as it is committed"""
    HUB_BEHIND = StopReason.HUB_BEHIND.value
    """nothing: its consumer is ahead of the hub"""
    OTHER_REPLICAGENERATION = StopReason.OTHER_REPLICAGENERATION.value
    """nothing: its consumer's data came from another initial load"""
    UNSUPPORTED = StopReason.UNSUPPORTED.value
    """nothing: its consumer wrote a record that this version cannot process"""

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing is sent in this status until an operator acts."""
        match self:
            case (
                AgreementStatus.WAITING_FOR_HELLO
                | AgreementStatus.CATCHING_UP
                | AgreementStatus.IN_SYNC
            ):
                return False
            case (
                AgreementStatus.HUB_BEHIND
                | AgreementStatus.OTHER_REPLICAGENERATION
                | AgreementStatus.UNSUPPORTED
            ):
                return True


StatusT = TypeVar("StatusT", bound=ReplicaStatus | AgreementStatus)
_SEPARATOR = ": "


def status_text(status: ReplicaStatus | AgreementStatus, detail: str) -> str:
    """The status as it is stored and shown, such as `live` or `unsupported: refused`."""
    return f"{status}{_SEPARATOR}{detail}" if detail else status.value


def parse_status(kind: type[StatusT], text: str) -> tuple[StatusT, str]:
    """Parse a text of `status_text` into (status, detail); StateError if it has no known status.

    `kind`: ReplicaStatus or AgreementStatus.
    """
    status, _, detail = text.partition(_SEPARATOR)
    try:
        return kind(status), detail
    except ValueError:
        raise StateError(
            f"the state holds {text!r}, which is no {kind.__name__} of this version:"
            " run the version that wrote it"
        ) from None
