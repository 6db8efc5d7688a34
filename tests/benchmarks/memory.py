"""The memory of driver and JVM, sampled several times a second; the broker is not counted."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_EVERY_S = 0.2


@dataclass(slots=True)
class MemoryUse:
    """Resident bytes of all processes together: when, and how many."""

    at_s: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)

    @property
    def peak_mib(self) -> int:
        """The largest sample."""
        return max(self.bytes, default=0) >> 20

    def peak_between_mib(self, start_s: float, end_s: float) -> int:
        """The largest sample from one time to another."""
        there = zip(self.at_s, self.bytes, strict=True)
        return max((b for s, b in there if start_s <= s <= end_s), default=0) >> 20


@contextmanager
def watched(pids: Sequence[int]) -> Iterator[MemoryUse]:
    """Sample the processes while the block runs (needs /proc; without it there are no samples)."""
    memory, end = MemoryUse(), threading.Event()

    def sample() -> None:
        while not end.wait(_EVERY_S):
            memory.at_s.append(time.time())
            memory.bytes.append(sum(map(resident, pids)))

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        end.set()
        thread.join()


def resident(pid: int) -> int:
    """The bytes that a process holds in memory; 0 if there is none."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(found[0]) * 1024 if found else 0


def cpu_s(pid: int) -> float:
    """The seconds of processor time that a process has used, user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
