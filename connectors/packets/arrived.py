"""The packets of a folder as a replica sees them: their parts together, and what each is to it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from connectors.packets.header import ChangesHeader, Header, UpdatesHeader
from streaming.core.delivery.consumer import Position


class Arrival(StrEnum):
    """What a packet is to a replica at its position (docs/packets.md, In any order)."""

    NEXT = "next"
    """it continues what the replica has: it can be applied at once"""
    WAITS = "waits"
    """it follows a packet that has not come yet"""
    INCOMPLETE = "incomplete"
    """parts of it have not come yet"""
    APPLIED = "applied"
    """the replica has all that it brings"""
    OUTDATED = "outdated"
    """it answers another session, or is of a generation that is over: it is never applied"""


@dataclass(frozen=True, slots=True)
class ArrivedPacket:
    """A packet of the hub in a folder: the header of one of its parts, and the files by part.

    A part that is there twice, under another name, counts once.
    """

    header: UpdatesHeader
    files: Mapping[int, Path]

    @property
    def is_whole(self) -> bool:
        """Return whether all parts are there."""
        return len(self.files) == self.header.parts

    @property
    def paths(self) -> list[Path]:
        """The files in the order of the parts."""
        return [self.files[part] for part in sorted(self.files)]

    def at(self, position: Position) -> Arrival:
        """What it is to a replica at this position, by the consumer's rule.

        One of a higher generation is next whatever it answers: the hub was put back, and its first
        record leads to one hello.
        """
        header = self.header
        is_ours = header.session == position.session
        seen = max(position.generation, position.seen_generation)
        if header.generation < position.generation:
            return Arrival.OUTDATED
        if not is_ours and (header.generation <= seen or not header.session):
            return Arrival.OUTDATED
        last = header.last_hub_epoch
        if is_ours and last is not None and last <= position.last:
            return Arrival.APPLIED
        if last is None and not header.content.records:
            return Arrival.APPLIED  # it only says what the hub has
        if not self.is_whole:
            return Arrival.INCOMPLETE
        is_put_back = header.generation > position.generation and position.answered
        is_next = not is_ours or is_put_back or (header.first_prev or 0) <= position.last
        return Arrival.NEXT if is_next else Arrival.WAITS


def together(headers: Iterable[tuple[Path, UpdatesHeader]]) -> list[ArrivedPacket]:
    """The packets of these files, in hub order."""
    packets = dict[tuple[object, ...], tuple[UpdatesHeader, dict[int, Path]]]()
    for path, header in sorted(headers, key=_hub_order):
        _, files = packets.setdefault(_identity(header), (header, {}))
        files.setdefault(header.part, path)
    return [ArrivedPacket(header, files) for header, files in packets.values()]


def _identity(header: UpdatesHeader) -> tuple[object, ...]:
    """What all parts of one packet share."""
    return (
        *(header.replicageneration, header.hub, header.agreement, header.rid, header.generation),
        *(header.session, header.number, header.parts, header.first_prev, header.last_hub_epoch),
    )


def _hub_order(arrived: tuple[Path, UpdatesHeader]) -> tuple[object, ...]:
    path, header = arrived
    return (
        *(header.agreement, header.generation, header.first_prev or 0, header.last_hub_epoch or 0),
        *(header.number, header.part, path.name),
    )


def starred(headers: Mapping[Path, Header]) -> set[Path]:
    """The files that depend on no other packet of these that waits, and whose parts are all there.

    It is what a folder tells by itself: the first packet of each chain.
    """
    updates = [(path, one) for path, one in headers.items() if isinstance(one, UpdatesHeader)]
    packets = [one for one in together(updates) if one.is_whole]
    found = {
        path
        for one in packets
        if not any(_leads_to(other, one) for other in packets)
        for path in one.files.values()
    }
    changes = [(path, one) for path, one in headers.items() if isinstance(one, ChangesHeader)]
    return found | {
        path
        for path, one in changes
        if not any(o.outbox == one.outbox and o.base < one.base for _, o in changes)
    }


def _leads_to(packet: ArrivedPacket, other: ArrivedPacket) -> bool:
    """Return whether a packet comes before another of the same session."""
    mine, its = packet.header, other.header
    is_one_chain = (mine.agreement, mine.generation, mine.session) == (
        *(its.agreement, its.generation, its.session),
    )
    return is_one_chain and (mine.first_prev or 0) < (its.first_prev or 0)
