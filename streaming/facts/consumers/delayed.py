"""What a consumer is not sent yet because its agreement is delayed."""

from dataclasses import dataclass
from datetime import datetime

from checkpoints.commit.epochs import Checkpoint
from checkpoints.times import time_of
from streaming.config.sections import AgreementConfig
from streaming.core.delivery.due import delayed_epochs
from streaming.core.text.wording import as_count
from streaming.facts.consumers.ruvs import state_of


@dataclass(frozen=True, slots=True)
class DelayedSending:
    """How many hub epochs wait by the delay of an agreement, and when the first of them is due."""

    hub_epochs: int
    until: datetime

    @property
    def text(self) -> str:
        """What waits, as people read it behind the agreement's name."""
        what = f"{as_count(self.hub_epochs, 'hub epoch')} wait{'s' * (self.hub_epochs == 1)}"
        return f"{what} by its delay, the first until {self.until:%Y-%m-%d %H:%M:%S} UTC"


def delayed_sending(commit: Checkpoint, agreement: AgreementConfig) -> DelayedSending | None:
    """What waits, as of a commit; None: nothing, or it has become due and is sent next."""
    hub = commit.state
    held = hub.held_back.get(agreement.name)
    known = state_of(hub, agreement.name)
    delayed = delayed_epochs(known, agreement.delay_ms, held, commit.at_ms)
    if delayed is None or delayed.after >= hub.hub_epoch:
        return None
    return DelayedSending(hub.hub_epoch - delayed.after, time_of(delayed.until_ms))
