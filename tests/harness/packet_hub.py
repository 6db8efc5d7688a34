"""The hub's side of a folder of packets, as simple as it can be: it takes and sends in order."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

from connectors import wire
from connectors.packets.format import packet_files, read_changes, write_updates
from connectors.packets.header import Got, PacketKind, UpdatesHeader
from streaming.core.model.change import Change
from streaming.core.records.record import Hello, Item, Record, Update
from tests.connectors.conformance.hub_batches import RUV
from tests.reference.wire import encode_update


@dataclass(slots=True)
class PacketHub:
    """A hub with one replica; `taken`: the (session, record) of the outbox in force, by place.

    A batch is sent for each call of `write`; `sent`: the hub epoch up to which they were exported.
    """

    folder: Path
    rid: int
    generation: int = 1
    batches: list[tuple[int, tuple[Item, ...]]] = field(default_factory=list)
    sent: int = 0
    number: int = 0
    taken: list[tuple[str, Record]] = field(default_factory=list)
    outbox: str = ""
    hash: str | None = None
    refused: list[Path] = field(default_factory=list)

    # -- what replicas wrote --------------------------------------------------------------------

    def take(self) -> list[Record]:
        """Import what continues the outbox in force, and remove it; the new records."""
        before = len(self.taken)
        for path in packet_files(self.folder, PacketKind.CHANGES):
            packet = read_changes(path)
            header, place = packet.header, len(self.taken)
            if header.outbox != self.outbox and header.base == 0:
                self.taken, self.outbox, self.hash, place, before = [], header.outbox, None, 0, 0
            if header.outbox != self.outbox:
                self.refused.append(path)
                continue
            if header.base > place:
                continue
            assert header.base != place or header.hash == self.hash, path
            records = list(packet.records())
            for value in records[place - header.base :]:
                self.taken.append(wire.decode(value))
                self.hash = hashlib.sha256(value).hexdigest()
            path.unlink()
        return [record for _, record in self.taken[before:]]

    @property
    def session(self) -> str | None:
        """The session of the last hello."""
        hellos = [session for session, one in self.taken if isinstance(one, Hello)]
        return hellos[-1] if hellos else None

    @property
    def changes(self) -> list[Change]:
        """The changes that it has of the outbox in force."""
        return [one for _, one in self.taken if isinstance(one, Change)]

    # -- what it sends --------------------------------------------------------------------------

    def answer(self) -> None:
        """Take what is there; a new hello is sent everything behind its covers."""
        hellos = [one for one in self.take() if isinstance(one, Hello)]
        if hellos:
            self.sent = hellos[-1].covers

    def write(self, *items: Item) -> None:
        """Accept a change of another replica."""
        self.batches.append((len(self.batches) + 1, items))

    def export(self, part_bytes: int = 2**20) -> list[Path]:
        """Write a packet of what was not sent yet."""
        left = self.batches[self.sent :]
        values, prev = list[bytes](), self.sent
        for hub_epoch, items in left:
            update = Update(
                *("a", self.generation, self.session or "", hub_epoch, prev, hub_epoch, RUV),
                *(0, 1, items),
            )
            values.append(encode_update(update))
            prev = hub_epoch
        self.number += 1
        header = UpdatesHeader(
            *("5f00", 9, "a", self.rid, self.generation, self.session, self.number, {}, {}),
            *(self.sent if left else None, prev if left else None, self.got()),
        )
        self.sent = prev
        return write_updates(self.folder, header, values, part_bytes)

    def got(self) -> Got | None:
        """Up to where it has the replica's records."""
        if not self.outbox:
            return None
        csn = max((one.csn for one in self.changes), default="")
        opno = max((one.opno or 0 for one in self.changes), default=0)
        return Got(self.outbox, len(self.taken), csn, opno)
