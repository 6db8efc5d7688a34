"""The post of a replica that Kafka does not reach: packets both ways, lost, doubled or late.

What a packet is to the replica, and from where the hub goes on, is decided by the product's own
rules; what the post does to packets is up to the story.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from connectors.packets.arrived import Arrival, ArrivedPacket
from connectors.packets.header import UpdatesHeader
from streaming.core.delivery.consumer import Position
from streaming.core.records.record import Stopped, Update


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet of the hub: its header, and the records that would stand in the updates topic."""

    header: UpdatesHeader
    records: tuple[Update | Stopped, ...]

    def at(self, position: Position) -> Arrival:
        """What it is to a replica at this position."""
        return ArrivedPacket(self.header, {1: Path(self.header.name)}).at(position)


class Places(NamedTuple):
    """A packet of the replica: the records of its outbox from `base` to before `end`."""

    base: int
    end: int


@dataclass(slots=True)
class Post:
    """What is under way, and what waits on either side.

    `fetched`: how many of the hub's packets were taken up; `down`: those under way to the replica,
    `bay`: those that are there. `exported`: up to where packets of the replica were made; `up`:
    those under way, `waiting`: those that are at the hub; `imported`: up to where they are in its
    topic. `got`: what the replica knows of that. `was_lost`: something was, since all was sent
    again. `answered`: the replica was in a session when its agent ran last, and need not say hello.
    """

    fetched: int = 0
    down: list[Packet] = field(default_factory=list)
    bay: list[Packet] = field(default_factory=list)
    exported: int = 0
    up: list[Places] = field(default_factory=list)
    waiting: list[Places] = field(default_factory=list)
    imported: int = 0
    got: int = 0
    was_lost: bool = False
    answered: bool = False

    def fetch(self, packets: Sequence[Packet]) -> None:
        """Take up what the hub has written since."""
        self.down += packets[self.fetched :]
        self.fetched = len(packets)

    def export(self, end: int) -> None:
        """Make a packet of what the outbox has behind the last one, if there is something."""
        if end > self.exported:
            self.up.append(Places(self.exported, end))
            self.exported = end

    def arrive(self) -> None:
        """Bring all that is under way to the replica, and what it says of what the hub has."""
        self.bay += self.down
        told = [packet.header.got.place for packet in self.down if packet.header.got]
        self.got = max([self.got, *told])
        self.down.clear()

    def next_packet(self, position: Position, *, is_told: bool) -> Packet | None:
        """The first packet that can be applied, those apart that never will be; None: all wait.

        What is applied stays until the outbox tells so; see connectors/packets/bay.py.
        """
        done = (Arrival.OUTDATED, *((Arrival.APPLIED,) if is_told else ()))
        self.bay = [packet for packet in self.bay if packet.at(position) not in done]
        ready = (packet for packet in self.bay if packet.at(position) is Arrival.NEXT)
        return min(ready, key=lambda one: one.header.last_hub_epoch or 0, default=None)

    def importable(self) -> range:
        """The places of the next records that the hub can take; what lies beyond a hole waits."""
        self.waiting += self.up
        self.up.clear()
        end, before = self.imported, -1
        while end != before:
            before = end
            end = max([end, *(one.end for one in self.waiting if one.base <= end)])
        self.waiting = [one for one in self.waiting if one.end > end]
        return range(self.imported, end)

    @property
    def is_still(self) -> bool:
        """Return whether nothing is under way."""
        return not (self.down or self.up)
