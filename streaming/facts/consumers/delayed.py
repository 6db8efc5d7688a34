"""What a consumer is not sent yet because of when its agreement sends."""

from dataclasses import dataclass
from datetime import datetime

from checkpoints.commit.epochs import Checkpoint
from checkpoints.times import time_of
from streaming.config.cluster import AgreementConfig
from streaming.core.delivery.due import HeldReason, waiting_epochs
from streaming.core.text.wording import as_count
from streaming.facts.consumers.ruvs import state_of


@dataclass(frozen=True, slots=True)
class DelayedSending:
    """How many hub epochs of an agreement wait, why, and until when the first of them does.

    Those that wait for its rate are due, so its consumer lacks them; `until` is None.
    """

    hub_epochs: int
    until: datetime | None
    reason: HeldReason

    @property
    def are_due(self) -> bool:
        """Return whether the consumer should have them."""
        return self.reason is HeldReason.RATE

    @property
    def text(self) -> str:
        """What waits, as people read it behind the agreement's name."""
        what = f"{as_count(self.hub_epochs, 'hub epoch')} wait{'s' * (self.hub_epochs == 1)}"
        why = _WHY[self.reason]
        until = f", the first until {self.until:%Y-%m-%d %H:%M:%S} UTC" if self.until else ""
        return f"{what} {why}{until}"


_WHY = {
    HeldReason.DELAY: "by its delay",
    HeldReason.HOURS: "for its hours",
    HeldReason.RATE: "by its bytes_per_s",
}


def delayed_sending(commit: Checkpoint, agreement: AgreementConfig) -> DelayedSending | None:
    """What waits, as of a commit; None: nothing, or it has become due and is sent next.

    What is held back though it is due waits for the agreement's rate.
    """
    hub = commit.state
    held = hub.held_back.get(agreement.name)
    known = state_of(hub, agreement.name)
    found = waiting_epochs(known, agreement.times, held, commit.at_ms)
    count = hub.hub_epoch - known.scanned
    if held is None or count <= 0:
        return None
    if found is not None:
        return DelayedSending(count, time_of(found.until_ms), found.reason)
    return DelayedSending(count, None, HeldReason.RATE) if agreement.bytes_per_s else None
