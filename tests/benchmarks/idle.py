"""What a hub costs that has nothing to do: processor time, and batches without input."""

import os
import time

from streaming.jvm.private import jvm_pid
from tests.benchmarks.agents import answering
from tests.benchmarks.counting import count
from tests.benchmarks.ground import Ground, HubKind, Probe, fill, running, wait, watching
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.memory import cpu_s
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PRELOADED = 300_000
"""So that its JVM is warm, as after a day."""
SETTLES_S = 10


def idle(ground: Ground, sizes: Sizes) -> Numbers:
    """A hub that is level with everybody, and stays so."""
    config, load, probe = ground.config(HubKind("idle")), new_load(), Probe()
    each = PRELOADED // len(WRITERS)
    fill(ground, config, load, each)
    pids = [os.getpid(), jvm_pid(ground.spark)]

    def used() -> tuple[float, float, int]:
        return time.monotonic(), sum(map(cpu_s, pids)), len(probe.batches)

    with (
        watching(ground) as memory,
        answering(ground.task(config)),
        running(ground, config, probe),
    ):
        wait(lambda: probe.judged >= PRELOADED, "the hub judged everything", probe)
        time.sleep(SETTLES_S)
        before = used()
        time.sleep(sizes.idle_s)
        took_s, used_s, batches = (b - a for a, b in zip(before, used(), strict=True))
    count(config, ground.bootstrap, load, each)
    return {
        "idle": {
            "of_one_core": round(used_s / took_s, 3),
            "batches": batches,
            "seconds": round(took_s, 1),
            "peak_mib": memory.peak_mib,
        }
    }
