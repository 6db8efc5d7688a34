"""A program that runs an agent, again and again, each time until it kills itself at some point.

A line on stdin is a run: the point and a seed. Its exit code is a line on stdout. A file with fsync
is the topic. Few rows are read, handed over and published at a time, so that transactions come in
parts.
"""

import os
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from connectors.agent import loop
from connectors.agent.contract import StoreBusyError, StoreError
from connectors.postgres import store as stores
from connectors.postgres.install.system import Capture, write_capture
from connectors.postgres.log import journal
from connectors.postgres.sql import Session
from connectors.postgres.store import PostgresStore
from tests.connectors.conformance.database_under_test import RID
from tests.connectors.conformance.hub_batches import CLOCK_S, apply, item
from tests.connectors.conformance.postgres_database import opened

KEYS = 30
ENDED_BY_SERVER = 3
"""The exit code of an agent whose server was killed."""


class KillPoint(StrEnum):
    """Where an agent dies."""

    BEFORE_PUBLISHING = "before publishing"
    AMID_PUBLISHING = "amid publishing"
    BEHIND_PUBLISHING = "behind publishing"
    BEHIND_CHECKPOINT = "behind the checkpoint"
    BEHIND_FEEDBACK = "behind feedback"
    SERVER = "the server"
    """it does not kill itself, for the server is killed"""
    NOWHERE = "nowhere"
    """it ends once all is published"""


@dataclass(slots=True)
class Kill:
    """Ends the process the n-th time that it comes to a point."""

    point: KillPoint
    left: int

    def at(self, point: KillPoint) -> bool:
        """Return whether it is to end here."""
        self.left -= point is self.point
        return point is self.point and self.left <= 0

    def here(self, point: KillPoint) -> None:
        """End here, if it is to."""
        if self.at(point):
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(slots=True)
class FileTopic:
    """A topic in a file: a record is a line, which is durable once publish returns."""

    path: Path
    kill: Kill
    is_connected: bool = True
    values: list[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self.values = lines(self.path)

    def read(self, offset: int) -> Iterator[tuple[int, bytes]]:
        """What is there."""
        yield from list(enumerate(self.values))[offset:]

    def last(self) -> bytes | None:
        """The last record."""
        return self.values[-1] if self.values else None

    def publish(self, values: list[bytes]) -> None:
        """Append records."""
        self.kill.here(KillPoint.BEFORE_PUBLISHING)
        if self.kill.at(KillPoint.AMID_PUBLISHING):
            self._append(values[: len(values) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        self._append(values)
        self.kill.here(KillPoint.BEHIND_PUBLISHING)

    def _append(self, values: list[bytes]) -> None:
        with self.path.open("ab") as file:
            file.writelines(value + b"\n" for value in values)
            file.flush()
            os.fsync(file.fileno())
        self.values += values


def lines(path: Path) -> list[bytes]:
    """The records of a topic."""
    return path.read_bytes().splitlines() if path.exists() else []


def run(dsn: str, topic: Path, point: KillPoint, seed: int) -> None:
    """Publish and apply until the end."""
    random_ = random.Random(seed)
    kill = Kill(point, random_.randint(1, 6))
    _bound(kill)
    store = opened(dsn)
    store.reader.assembler.part_writes = 3
    agent = loop.Agent(RID, store, FileTopic(topic, kill), None, lambda: CLOCK_S * 1000)
    agent.start()
    while agent.publish() or point is not KillPoint.NOWHERE or store.backlog():
        kill.here(KillPoint.BEHIND_FEEDBACK)
        if random_.random() < 0.3 and point is not KillPoint.NOWHERE:
            _apply(store, random_)


def _bound(kill: Kill) -> None:
    """Few rows at a time; and die once the checkpoint is stored and the server not told."""
    loop.PUBLISH_ROWS, journal.READ_AHEAD = 5, 20

    def written(session: Session, capture: Capture) -> None:
        write_capture(session, capture)
        kill.here(KillPoint.BEHIND_CHECKPOINT)

    vars(stores)["write_capture"] = written


def _apply(store: PostgresStore, random_: random.Random) -> None:
    """A batch of the hub on a few rows, unless a client has them."""
    hub_epoch = max(store.position.last, store.position.covers) + 1
    rows = [item(key, f"hub {hub_epoch} {key}") for key in random_.sample(range(KEYS), 3)]
    try:
        apply(store, *rows, hub_epoch=hub_epoch)
    except StoreBusyError:
        return


def main() -> None:
    """A child for each run, so that what they need is imported once."""
    dsn, topic = sys.argv[1], Path(sys.argv[2])
    for line in sys.stdin:
        point, seed = line.rstrip("\n").split("\t")
        child = os.fork()
        if child == 0:
            try:
                run(dsn, topic, KillPoint(point), int(seed))
            except StoreError as error:
                sys.stderr.write(f"{error}\n")
                os._exit(ENDED_BY_SERVER)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(f"{code}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
