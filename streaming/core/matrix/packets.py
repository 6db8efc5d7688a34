"""Packets for a replica that Kafka does not reach: when the hub exports one, and what it names.

An export is part of a batch. Its commit row raises what is sent, and the file is written behind it.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

RETRY_MS = 10_000
"""After how long a packet that could not be written is exported again."""


class Place(NamedTuple):
    """Up to where a replica's records are in its topic: the first `place` of this outbox."""

    outbox: str
    place: int


@dataclass(frozen=True, slots=True)
class PacketFeed:
    """What a batch leaves of the packets of an agreement.

    `number`: of the last packet; numbers only grow. `batch`: the one that exported it; 0: none did,
    or not again. `exported_ms`: the clock of that. `is_ordered`: an operator wants one. `is_open`:
    the last one did not hold everything, so another follows at once. `is_unwritten`: the last one
    could not be written, and its range is exported again. `got`, `csn`: what the last one told the
    replica of its own records, and the largest CSN among them; None, empty: nothing.
    """

    number: int = 0
    batch: int = 0
    exported_ms: int = 0
    is_ordered: bool = False
    is_open: bool = False
    is_unwritten: bool = False
    got: Place | None = None
    csn: str = ""

    def is_due(self, clock_ms: int, every_ms: int) -> bool:
        """Return whether a packet may be exported now; `every_ms` 0: only on order."""
        waited_ms = clock_ms - self.exported_ms
        if self.is_unwritten:
            return waited_ms >= RETRY_MS
        return self.is_ordered or self.is_open or (0 < every_ms <= waited_ms)

    def wants_packet(
        self, clock_ms: int, every_ms: int, place: Place | None, *, lacks: bool
    ) -> bool:
        """Return whether a packet is exported now.

        `place`: see `Place`, of the records that the hub has read; None: not known, or there is
        none. `lacks`: the replica lacks something that may be sent. Where it lacks nothing a
        header goes by the clock that tells it another place, the first one, or one that is ordered:
        what a replica sent first may be lost, and it must learn of that.
        """
        if not self.is_due(clock_ms, every_ms):
            return False
        is_news = place is not None and place != self.got
        by_clock = is_news or self.number == 0
        return lacks or self.is_ordered or self.is_unwritten or (not self.is_open and by_clock)

    def exported(
        self, batch: int, clock_ms: int, place: Place | None, csn: str, *, is_open: bool
    ) -> "PacketFeed":
        """The feed behind a batch that exports a packet; `is_open`: more follows at once."""
        got, csn = (place, csn) if place is not None else (self.got, self.csn)
        return PacketFeed(self.number + 1, batch, clock_ms, is_open=is_open, got=got, csn=csn)

    def ordered(self) -> "PacketFeed":
        """The feed when an operator wants a packet."""
        return replace(self, is_ordered=True)

    def not_written(self) -> "PacketFeed":
        """The feed when its last packet could not be written."""
        return replace(self, batch=0, is_unwritten=True)

    def not_again(self) -> "PacketFeed":
        """The feed when its last packet is not written again: what it held follows at once."""
        return replace(self, batch=0, is_open=True)
