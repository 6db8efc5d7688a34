"""The bay: packets of the hub that wait in a folder until the replica can apply them.

They come in any order, twice, and through third parties. What continues the replica's position is
applied, and what waits is looked at again behind it; a packet that waits never leads to a hello,
which would make every packet under way worthless.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from connectors.packets.arrived import Arrival, ArrivedPacket, together
from connectors.packets.format import PacketError, packet_files, read_header, read_updates
from connectors.packets.header import Got, PacketKind, UpdatesHeader
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import StateError
from streaming.core.text.wording import as_count

SCAN_S = 1.0
"""How often the folder is looked at, unless a packet was applied."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what a file that was looked at is known to be the same."""

    inode: int
    bytes: int
    changed_ns: int


@dataclass(slots=True)
class Bay:
    """The Receiver of a replica's agent; it removes what was applied, or never will be.

    A packet that is applied stays until the outbox tells so: a database that is put back to a state
    before it might not be known to lack it. `told`: the hub epoch up to which the outbox tells it.
    `offset`: what every record is said to stand at, as there is no topic. `wait`: called with
    seconds when nothing can be applied. `got`: what the hub had of the replica's records by the
    newest packet so far; `newest`: its generation and number.
    """

    folder: Path
    rid: int
    position: Callable[[], Position]
    wait: Callable[[float], object]
    told: Callable[[], int]
    offset: int = -1
    headers: dict[Path, tuple[Stamp, UpdatesHeader | None]] = field(default_factory=dict)
    faulty: dict[Path, str] = field(default_factory=dict)
    applying: deque[Path] = field(default_factory=deque)
    tried: dict[Path, int] = field(default_factory=dict)
    waiting: int = 0
    newest: tuple[int, int] = (0, 0)
    got: Got | None = None
    scanned_s: float | None = None

    def poll(self, timeout_ms: int) -> list[tuple[int, bytes]]:
        """The records of the next part that can be applied; empty if there is none now."""
        while not self.applying:
            if self.scanned_s is not None and monotonic() - self.scanned_s < SCAN_S:
                self.wait(timeout_ms / 1000)
                return []
            self.scanned_s = monotonic()
            self._choose()
        path = self.applying.popleft()
        try:
            records = read_updates(path).records()
        except (PacketError, OSError) as error:
            log.warning("it was verified a moment ago, and is read again: %s", error)
            self.applying.clear()
            return []
        if not self.applying:
            self.scanned_s = None  # what waited may follow
        return [(self.offset, record) for record in records]

    # -- the folder -----------------------------------------------------------------------------

    def _choose(self) -> None:
        """Remove what is done with, and take up the first packet that can be applied."""
        position, waiting = self.position(), 0
        for packet in self.packets():
            match packet.at(position):
                case Arrival.APPLIED if (packet.header.last_hub_epoch or 0) > self.told():
                    pass
                case Arrival.APPLIED | Arrival.OUTDATED as arrival:
                    self._remove(packet, arrival)
                case Arrival.NEXT if self._take_up(packet, position.last):
                    return
                case Arrival.WAITS | Arrival.INCOMPLETE | Arrival.NEXT:
                    waiting += 1
        if waiting > self.waiting:
            log.info(
                "%s in %s for what comes before: `slackwater import --diagnose` says what; if it"
                " does not come, have the hub send it again (`slackwater chepoch`)",
                *(as_count(waiting, "packet waits", "packets wait"), self.folder),
            )
        self.waiting = waiting

    def packets(self) -> list[ArrivedPacket]:
        """The packets for this replica that are there now, in hub order; damaged files are named.

        StateError: the folder cannot be read.
        """
        try:
            found = packet_files(self.folder, PacketKind.UPDATES)
        except OSError as error:
            raise StateError(
                f"the folder of packets {self.folder} cannot be read: {error.strerror}"
            ) from error
        self.headers = dict(self._looked_at(found))
        headers = {path: one for path, (_, one) in self.headers.items() if one is not None}
        for header in headers.values():
            number = (header.generation, header.number)
            if header.got is not None and number > self.newest:
                self.newest, self.got = number, header.got
        return together(headers.items())

    def _looked_at(
        self, paths: list[Path]
    ) -> Iterator[tuple[Path, tuple[Stamp, UpdatesHeader | None]]]:
        """Each file with its header; None: it is no packet for this replica."""
        self.faulty = {path: why for path, why in self.faulty.items() if path in paths}
        for path in paths:
            try:
                now = path.lstat()
                stamp = Stamp(now.st_ino, now.st_size, now.st_mtime_ns)
                known = self.headers.get(path)
                if known is None or known[0] != stamp:
                    known = (stamp, self._header(path))
            except FileNotFoundError:  # somebody moved it meanwhile
                continue
            yield path, known

    def _header(self, path: Path) -> UpdatesHeader | None:
        try:
            header = read_header(path)
        except PacketError as error:
            self._name(path, error)
            return None
        self.faulty.pop(path, None)
        is_ours = isinstance(header, UpdatesHeader) and header.rid == self.rid
        known = self.position().ruv.generation
        if not isinstance(header, UpdatesHeader) or not is_ours:
            return None
        if known and header.replicageneration != known:
            text = f"packet {path} is of another replicageneration, {header.replicageneration}"
            self._name(path, StateError(f"{text}: it is of another hub's data; move it away"))
            return None
        return header

    def _name(self, path: Path, error: Exception) -> None:
        """Log a file that cannot be used, once for each reason."""
        if self.faulty.get(path) != str(error):
            log.warning("%s", error)
            self.faulty[path] = str(error)

    def _take_up(self, packet: ArrivedPacket, last: int) -> bool:
        """Verify all parts; False: one is damaged, or it was tried at this position already."""
        paths = packet.paths
        if self.tried.get(paths[0]) == last:
            return False
        for path in paths:
            try:
                read_updates(path)
            except (PacketError, OSError) as error:
                self._name(path, error)
                self.headers[path] = (self.headers[path][0], None)  # until the file is another one
                return False
        self.tried = {paths[0]: last}
        self.applying.extend(paths)
        log.info("packet %d of %s is applied", packet.header.number, packet.header.agreement)
        return True

    def _remove(self, packet: ArrivedPacket, arrival: Arrival) -> None:
        for path in packet.paths:
            path.unlink(missing_ok=True)
            self.headers.pop(path, None)
        log.info(
            "packet %d of %s is removed: %s",
            *(packet.header.number, packet.header.agreement, arrival),
        )
