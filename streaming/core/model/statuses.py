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
    INPUT_LOST = "input_lost"
    """its topic lost records that the hub had not read; the detail says how"""
    RECOVERED = "recovered"
    """an operator gave up its lost input; its next hello is answered by a full copy"""


WIRE_VERSION = "wire version"
"""How the detail of a stop begins if hub and agent understand no common version of the wire."""


FOR_GOOD = "for good"
"""The detail of a replica or agreement that an operator has retired: it never comes back."""

REPLICA = "REPLICA"
"""In a remedy, the name of the replica."""
AGREEMENT = "AGREEMENT"
"""In a remedy, the name of the agreement."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a replica is stopped; `detail`: more about the reason, or empty."""

    reason: StopReason
    detail: str = ""

    @property
    def remedy(self) -> str:
        """What an operator does about it, in one sentence; REPLICA stands for the name."""
        match self.reason:
            case StopReason.HUB_BEHIND:
                return (
                    "its database has what this hub's state lacks: if another hub sends to its"
                    " updates topic, stop that one, and give it agreements of other names; if the"
                    " state was restored from a backup, stop the hub and restore a newer one; else"
                    " stop the agent and run `slackwater reinit`, which saves the rows that only"
                    " this database has"
                )
            case StopReason.OTHER_REPLICAGENERATION:
                return (
                    "its database belongs to another hub: correct the database's path, or stop the"
                    " agent and run `slackwater reinit`, which fills the database from this hub"
                )
            case StopReason.UNSUPPORTED if self.detail.startswith(WIRE_VERSION):
                return "hub and agent understand no common version of the wire: upgrade the older"
            case StopReason.UNSUPPORTED:
                return (
                    "its topic holds a record that this version cannot process: upgrade the hub,"
                    " or stop the agent and run `slackwater reinit`"
                )
            case StopReason.INPUT_LOST:
                return (
                    "what it wrote there and the hub did not read is in its database only: run"
                    f" `slackwater recover {REPLICA}`, then start its agent: a full copy overwrites"
                    " those rows; with `--snapshot` the agent publishes all of its rows before that"
                )
            case StopReason.RECOVERED:
                return (
                    "start its agent: a full copy overwrites the rows that only its database has;"
                    " with `--snapshot` the agent publishes all of its rows before that"
                )


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
    INPUT_LOST = StopReason.INPUT_LOST.value
    """stopped: its topic lost records that were not read"""
    RECOVERED = StopReason.RECOVERED.value
    """stopped until its next hello: an operator gave up its lost input"""
    RETIRED = "retired"
    """not configured any more, or retired for good: its topic is not read, its state is kept"""

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
                | ReplicaStatus.INPUT_LOST
                | ReplicaStatus.RECOVERED
                | ReplicaStatus.RETIRED
            ):
                return True


_RETIRED_FOR_GOOD = (
    "an operator has retired it: remove it from the configuration; to take part again its database"
    " starts empty, under another name and rid, or with `slackwater clean-ruv RID --readmit`"
)


_REFUSED = (
    'its table says on_refused = "stop": `slackwater conflicts list --kind refused --open` says'
    f" why; remove the cause, then run `slackwater resume {AGREEMENT}`"
)


_PAUSED = f"an operator paused it: `slackwater resync {AGREEMENT}` brings it what it lacks"
_SILENT = "start its agent, or see that agent's log: as soon as it answers it is sent what it lacks"


_UNWRITABLE = (
    "its updates topic refuses what the hub sends, and the hub's log says why: give the hub its"
    " rights on it back, and it goes on by itself; or mend the topic's settings, then run"
    f" `slackwater resync {AGREEMENT}`, or wait until the hub tries again"
)

_ELSEWHERE = (
    "its agent reads the updates of another hub: start it with this hub's configuration to move it"
    " here, which copies everything to it"
)

_DELAYED = (
    "it needs a copy, whose rows are younger than its delay_s:"
    f" `slackwater resume {AGREEMENT} --now` begins it"
)


def remedy_of(
    status: "ReplicaStatus | AgreementStatus",
    detail: str,
    replica: str | None = None,
    agreement: str | None = None,
) -> str | None:
    """What to do about a status, in one sentence; None: nothing, or it is not configured.

    `replica`, `agreement`: the names, where they are known.
    """
    text = _remedy(status, detail)
    if text is None:
        return None
    return text.replace(REPLICA, replica or REPLICA).replace(AGREEMENT, agreement or AGREEMENT)


def _remedy(status: "ReplicaStatus | AgreementStatus", detail: str) -> str | None:
    if status in (ReplicaStatus.RETIRED, AgreementStatus.RETIRED):
        return _RETIRED_FOR_GOOD if detail == FOR_GOOD else None
    if status is AgreementStatus.REFUSED:
        return _REFUSED
    if status is AgreementStatus.CHANGE_TRACKING:
        return _AWAY[AwayReason(detail)]
    return Stop(StopReason(status.value), detail).remedy if status.is_stopped else None


class AgreementStatus(StrEnum):
    """What an agreement's consumer is sent."""

    WAITING_FOR_HELLO = "waiting_for_hello"
    """nothing: its consumer's position is not known"""
    CATCHING_UP = "catching_up"
    """bounded pages of the changelog, from its position on"""
    IN_SYNC = "in_sync"
    """each batch as it is committed"""
    CHANGE_TRACKING = "change_tracking"
    """nothing: its consumer is away, which the detail explains; what it lacks is brought by a
    resync"""
    RESYNC = "resync"
    """the rows that it lacks as they stand, page by page, beside each batch as it is committed"""
    SNAPSHOT = "snapshot"
    """nothing: its consumer tells the rows that it had before it was a replica; sending begins with
    the end of that"""
    HUB_BEHIND = StopReason.HUB_BEHIND.value
    """nothing: its consumer is ahead of the hub"""
    OTHER_REPLICAGENERATION = StopReason.OTHER_REPLICAGENERATION.value
    """nothing: its consumer's data came from another initial load"""
    UNSUPPORTED = StopReason.UNSUPPORTED.value
    """nothing: its consumer wrote a record that this version cannot process"""
    INPUT_LOST = StopReason.INPUT_LOST.value
    """nothing: of what its consumer wrote, something was lost unread"""
    RECOVERED = StopReason.RECOVERED.value
    """nothing until its consumer starts anew: its lost input was given up"""
    REFUSED = "refused"
    """nothing until an operator resumes it: its consumer's database refused a row; the detail names
    the table, whose `on_refused` is `stop`; what the consumer writes is read on"""
    RETIRED = "retired"
    """nothing: it is not configured any more, or retired for good; its positions are kept"""

    @property
    def is_stopped(self) -> bool:
        """Return whether nothing is sent in this status until an operator acts."""
        match self:
            case (
                AgreementStatus.WAITING_FOR_HELLO
                | AgreementStatus.CATCHING_UP
                | AgreementStatus.IN_SYNC
                | AgreementStatus.CHANGE_TRACKING
                | AgreementStatus.RESYNC
                | AgreementStatus.SNAPSHOT
            ):
                return False
            case (
                AgreementStatus.HUB_BEHIND
                | AgreementStatus.OTHER_REPLICAGENERATION
                | AgreementStatus.UNSUPPORTED
                | AgreementStatus.INPUT_LOST
                | AgreementStatus.RECOVERED
                | AgreementStatus.REFUSED
                | AgreementStatus.RETIRED
            ):
                return True

    @property
    def is_sent_to(self) -> bool:
        """Return whether a consumer is sent anything in this status."""
        return self in (
            AgreementStatus.CATCHING_UP,
            AgreementStatus.IN_SYNC,
            AgreementStatus.RESYNC,
        )

    @property
    def keeps_place(self) -> bool:
        """Return whether an agreement goes on in this very status after it was retired."""
        return self.is_stopped or self in (
            AgreementStatus.CHANGE_TRACKING,
            AgreementStatus.RESYNC,
            AgreementStatus.SNAPSHOT,
        )

    @property
    def ends_agent(self) -> bool:
        """Return whether its consumer's agent is told, and ends."""
        return self.is_stopped and self is not AgreementStatus.REFUSED


class AwayReason(StrEnum):
    """Why a consumer counts as away: the detail of CHANGE_TRACKING."""

    SILENT = "silent"
    """it acknowledged nothing for hub.ack_timeout_s; its next record brings it back"""
    PAUSED = "paused"
    """an operator paused it, and only `slackwater resync` brings it back"""
    UNWRITABLE = "unwritable"
    """its updates topic refused what it was sent; tried again after hub.ack_timeout_s"""
    ELSEWHERE = "elsewhere"
    """another hub serves it, by an agreement of its own; its hello to this hub brings it here"""
    DELAYED = "delayed"
    """it needs a copy, whose rows would be younger than its delay; only `slackwater resume --now`
    begins it"""


_AWAY = {
    AwayReason.SILENT: _SILENT,
    AwayReason.PAUSED: _PAUSED,
    AwayReason.UNWRITABLE: _UNWRITABLE,
    AwayReason.ELSEWHERE: _ELSEWHERE,
    AwayReason.DELAYED: _DELAYED,
}

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
