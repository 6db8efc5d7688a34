"""Leases: as long as a command reads a state, nothing that it may read is deleted or removed.

A lease is a file under the root. Its command renews it by counting up, and removes it at the end.
If the command dies the count stands still, and who watches it takes it for dead after a while by
his own clock: no two clocks are compared.
"""

import logging
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace

import orjson

from checkpoints.root import file_names, read_file, remove_file, replace_file, written_s
from streaming.core.access.root import StateRoot

LOG = logging.getLogger("slackwater")

LEASES = "leases"
"""The folder under the root."""

RENEW_S = 20.0
EXPIRES_S = 180.0
"""After so long without a renewal its command is dead, or was stopped and has to begin anew."""


@dataclass(frozen=True, slots=True)
class Lease:
    """What a command says that reads a state; `since_ms`: by its clock. `renewals`: how many."""

    command: str
    process: str
    since_ms: int
    renewals: int = 0

    def text(self) -> bytes:
        """The lease as its file holds it."""
        return orjson.dumps(asdict(self))


@contextmanager
def leased(root: StateRoot, command: str, renew_s: float = RENEW_S) -> Iterator[None]:
    """Have nothing removed that is there now for as long as the block takes.

    Where nothing may be written to the state that cannot be had, which is logged.
    """
    process = f"{socket.gethostname()}:{os.getpid()}"
    name = f"{LEASES}/{command}-{uuid.uuid4().hex}"
    lease, end = Lease(command, process, time.time_ns() // 1_000_000), threading.Event()
    try:
        replace_file(root, name, lease.text())
    except OSError as error:
        LOG.warning("%s cannot keep a hub from purging what it reads: %s", command, error)
        yield
        return
    keeper = threading.Thread(target=_renew, args=(root, name, lease, renew_s, end), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        end.set()
        keeper.join()
        with suppress(OSError):
            remove_file(root, name)


def _renew(root: StateRoot, name: str, lease: Lease, renew_s: float, end: threading.Event) -> None:
    """Count up until the end; what fails once may succeed the next time."""
    while not end.wait(renew_s):
        lease = replace(lease, renewals=lease.renewals + 1)
        with suppress(OSError):
            replace_file(root, name, lease.text())


def recorded_leases(root: StateRoot) -> dict[str, Lease]:
    """Name of the file -> lease, of all that are there, dead or not."""
    found = dict[str, Lease]()
    for name in file_names(root, LEASES):
        with suppress(OSError, ValueError, TypeError):  # it ended, or somebody else wrote it
            found[name] = Lease(**orjson.loads(read_file(root, f"{LEASES}/{name}")))
    return found


def fresh_leases(root: StateRoot) -> list[Lease]:
    """The leases whose files were written lately, by the clock of their storage and this one.

    For people to see; what is removed is decided by a LeaseWatch.
    """
    found, now_s = recorded_leases(root), time.time()
    written = {name: written_s(root, f"{LEASES}/{name}") for name in found}
    return [
        lease
        for name, lease in found.items()
        if (at_s := written[name]) is not None and now_s - at_s < EXPIRES_S
    ]


@dataclass(slots=True)
class LeaseWatch:
    """Tells the leases that are renewed from those of commands that died.

    `seen`: name -> the lease, and since when it has been seen so, by `clock`.
    """

    root: StateRoot
    expires_s: float = EXPIRES_S
    clock: Callable[[], float] = time.monotonic
    seen: dict[str, tuple[Lease, float]] = field(default_factory=dict)

    def alive(self) -> list[Lease]:
        """The leases in force; the file of one that died is removed."""
        now_s, before, self.seen = self.clock(), self.seen, {}
        for name, lease in recorded_leases(self.root).items():
            known, since_s = before.get(name, (lease, now_s))
            since_s = since_s if known == lease else now_s
            if now_s - since_s < self.expires_s:
                self.seen[name] = lease, since_s
            else:
                LOG.warning("the lease of %s (%s) expired", lease.command, lease.process)
                with suppress(OSError):
                    remove_file(self.root, f"{LEASES}/{name}")
        return [lease for lease, _ in self.seen.values()]
