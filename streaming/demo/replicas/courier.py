"""Who carries packets in a demonstration: all the transport that a replica without Kafka has.

A thread copies what either side wrote into the folder of the other. It can be told to lose one.
"""

import json
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from connectors.packets.format import read_header
from connectors.packets.header import PacketKind, UpdatesHeader

CARRY_S = 0.2
"""How long a packet waits to be carried, at most."""


@dataclass(frozen=True, slots=True)
class DroppedPacket:
    """A packet to a replica that never arrived: its file, what it continued, and what it held."""

    name: str
    first_prev: int
    last_hub_epoch: int
    at_ms: int


@dataclass(slots=True)
class Courier:
    """Carries packets between the hub's folder and the replica's, until `end` is called.

    `lost`: the packet that was lost, once there was one that held something.
    """

    hub: Path
    replica: Path
    is_to_lose: bool = False
    lost: DroppedPacket | None = None
    failure: OSError | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        """Start to carry."""
        self.thread = threading.Thread(target=self._carry_on, name="courier", daemon=True)
        self.thread.start()

    def lose_next(self) -> None:
        """Lose the next packet to the replica that holds something."""
        self.is_to_lose = True

    def end(self) -> None:
        """Carry what is there, and no more."""
        self.stop.set()
        self.thread.join()

    def check(self) -> None:
        """Raise what ended it, if something did."""
        if self.failure is not None:
            raise self.failure

    def waiting(self) -> int:
        """How many packets of the hub wait in the replica's folder."""
        return len(list(self.replica.glob(f"{PacketKind.UPDATES}-*.packet")))

    def _carry_on(self) -> None:
        try:
            while not self.stop.wait(CARRY_S):
                self._carry()
            self._carry()
        except OSError as error:
            self.failure = error

    def _carry(self) -> None:
        for file in _packets(self.hub, PacketKind.UPDATES):
            if not self._is_lost(file):
                _copy(file, self.replica)
            file.unlink()
        for file in _packets(self.replica, PacketKind.CHANGES):
            _copy(file, self.hub)
            file.unlink()

    def _is_lost(self, file: Path) -> bool:
        """Return whether this is the packet to be lost."""
        if not self.is_to_lose or self.lost is not None:
            return False
        header = read_header(file)
        if not isinstance(header, UpdatesHeader) or header.last_hub_epoch is None:
            return False
        prev, now_ms = header.first_prev or 0, time.time_ns() // 1_000_000
        self.lost = DroppedPacket(file.name, prev, header.last_hub_epoch, now_ms)
        return True


def store_lost_packet(
    file: Path, replica: str, courier: Courier, asked_ms: int, entries: Sequence[object]
) -> None:
    """Store what is known of the lost packet: when it was lost, and when it was asked for again.

    `entries`: the columns of the replica's row that were lowered.
    """
    assert courier.lost is not None  # noqa: S101  # it is waited for
    document = {"replica": replica, **asdict(courier.lost), "asked_ms": asked_ms}
    text = json.dumps({**document, "waiting": courier.waiting(), "entries": entries}, indent=2)
    file.write_text(text, encoding="utf-8")


def _packets(folder: Path, kind: PacketKind) -> Iterator[Path]:
    yield from sorted(folder.glob(f"{kind}-*.packet"))


def _copy(file: Path, folder: Path) -> None:
    """Nobody sees half of a packet: its name comes last."""
    unfinished = folder / f".{file.name}.carried"
    shutil.copyfile(file, unfinished)
    unfinished.rename(folder / file.name)
