"""The last packet of an agreement whose consumer is sent some."""

from dataclasses import dataclass

from streaming.core.state.agreement_state import AgreementState
from streaming.core.text.wording import as_age, as_count


@dataclass(frozen=True, slots=True)
class PacketSummary:
    """The last packet; `number` 0: none was exported, and its age in seconds is None.

    `got`: up to which place of its outbox the hub had the replica's records then.
    """

    number: int
    exported_age_s: float | None
    got: int

    @property
    def text(self) -> str:
        """What was exported last, for people."""
        if self.exported_age_s is None:
            return "no packet was exported yet"
        age = as_age(self.exported_age_s)
        return f"packet {self.number} was exported {age}, with {as_count(self.got, 'record')} got"


def packet_summary(agreement: AgreementState | None, now_s: float) -> PacketSummary | None:
    """The last packet of an agreement; None: its consumer is sent none."""
    feed = agreement.feed if agreement is not None else None
    if feed is None:
        return None
    age_s = round(now_s - feed.exported_ms / 1000, 3) if feed.exported_ms else None
    return PacketSummary(feed.number, age_s, feed.got.place if feed.got else 0)
