"""What is missing between the packets of a folder and what its reader has."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from connectors.packets.arrived import Arrival, ArrivedPacket
from connectors.packets.header import ChangesHeader
from streaming.core.delivery.consumer import Position
from streaming.core.matrix.packets import Place


@dataclass(frozen=True, slots=True)
class MissingEpochs:
    """Hub epochs of which no packet is here, though later ones wait; both ends included."""

    agreement: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class MissingParts:
    """Parts of a packet that are not here."""

    agreement: str
    number: int
    parts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class OtherOutbox:
    """A packet waits that is of another outbox than the hub goes on with, and not its first."""

    replica: str
    outbox: str
    name: str


@dataclass(frozen=True, slots=True)
class MissingPlaces:
    """Places of a replica's outbox of which no packet is here; both ends included."""

    replica: str
    outbox: str
    first: int
    last: int


def missing_updates(
    packets: Iterable[ArrivedPacket], position: Position
) -> Iterator[MissingEpochs | MissingParts]:
    """What a replica at this position lacks before it can apply all of these packets.

    Each hole once: what is behind one counts as there.
    """
    has = position.last
    waiting = [one for one in packets if one.at(position) in _NOT_DONE]
    for packet in sorted(waiting, key=lambda one: one.header.first_prev or 0):
        header, prev = packet.header, packet.header.first_prev or 0
        if prev > has:
            yield MissingEpochs(header.agreement, has + 1, prev)
        if not packet.is_whole:
            gone = set(range(1, header.parts + 1)) - packet.files.keys()
            yield MissingParts(header.agreement, header.number, tuple(sorted(gone)))
        has = max(has, header.last_hub_epoch or 0)


_NOT_DONE = (Arrival.NEXT, Arrival.WAITS, Arrival.INCOMPLETE)


def missing_changes(
    headers: Iterable[ChangesHeader], got: Place | None
) -> Iterator[MissingPlaces | OtherOutbox]:
    """What the hub lacks of one replica before it can take all of these packets.

    `got`: up to where it has the replica's records; None: it has none. Whether an outbox is over or
    new, a packet from its midst does not tell.
    """
    has: dict[str, int] = {got.outbox: got.place} if got is not None else {}
    for one in sorted(headers, key=lambda header: (header.outbox, header.base)):
        known = has.get(one.outbox, 0)
        if one.base > known and got is not None and one.outbox not in has:
            yield OtherOutbox(one.replica, one.outbox, one.name)
            continue
        if one.base > known:
            yield MissingPlaces(one.replica, one.outbox, known + 1, one.base)
        has[one.outbox] = max(known, one.end)
