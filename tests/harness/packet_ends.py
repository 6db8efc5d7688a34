"""What a replica without Kafka has in place of its topics: an outbox, and a folder of packets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from connectors.kafka.placed_records import digest_of
from connectors.packets.format import packet_files, read_updates, write_changes
from connectors.packets.header import ChangesHeader, PacketKind, UpdatesHeader


@dataclass
class PacketEnds:
    """Stands in for TopicEnds: what is sent waits in the outbox until it is exported.

    `exported`: up to where the outbox went out. `headers`: of the hub's packets that were read.
    """

    folder: Path
    name: str
    rid: int
    outbox: str = "0123456789abcdef"
    records: list[bytes] = field(default_factory=list)
    exported: int = 0
    received: list[bytes] = field(default_factory=list)
    headers: list[UpdatesHeader] = field(default_factory=list)

    def send(self, _topic: str, _key: str, value: bytes | None, time_ms: int | None = None) -> int:
        """Put one record into the outbox; its place, from 0 on."""
        assert value is not None
        assert time_ms is None
        self.records.append(value)
        return len(self.records) - 1

    def export(self, upto: int | None = None) -> Path:
        """Write a packet of what was not exported, or of the part up to a place."""
        base, end = self.exported, len(self.records) if upto is None else upto
        path = self.packet(base, self.records[base:end])
        self.exported = end
        return path

    def packet(self, base: int, records: Sequence[bytes], *, generation: str | None = None) -> Path:
        """Write a packet of these records behind the place `base`."""
        hash_ = digest_of(self.records[base - 1]) if base else None
        header = ChangesHeader(
            generation, self.name, self.rid, self.outbox, base, base, hash_, 0, 0
        )
        return write_changes(self.folder, header, records)

    def read(self, _topic: str, offset: int = 0) -> list[tuple[str, bytes]]:
        """Every record that the hub's packets brought, from this one on; their files are gone."""
        for path in packet_files(self.folder, PacketKind.UPDATES):
            packet = read_updates(path)
            self.headers.append(packet.header)
            self.received += packet.records()
            path.unlink()
        return [("", value) for value in self.received[offset:]]

    def waiting(self) -> list[str]:
        """The names of the packets that the hub has not taken."""
        return [path.name for path in packet_files(self.folder, PacketKind.CHANGES)]
