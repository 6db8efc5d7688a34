"""What a hub costs that has nothing to do: processor time, and batches that nobody asked for."""

import os
import time

from tests.benchmarks.agents import answering
from tests.benchmarks.counting import count
from tests.benchmarks.ground import Ground, Kind, Probe, fill, running, wait, watching
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.memory import cpu_s, jvm_of
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PRELOADED = 300_000
"""So that its JVM is warm, as after a day."""
SETTLES_S = 10


def idle(ground: Ground, sizes: Sizes) -> Numbers:
    """A hub that is level with everybody, and stays so."""
    config, load, probe = ground.config(Kind("idle")), new_load(), Probe()
    each = PRELOADED // len(WRITERS)
    fill(ground, config, load, each)
    pids = [os.getpid(), jvm_of(ground.spark)]
    with (
        watching(ground) as memory,
        answering(ground.task(config)),
        running(ground, config, probe),
    ):
        wait(lambda: probe.judged >= PRELOADED, "the hub judged everything", probe)
        time.sleep(SETTLES_S)
        batches, used_s, since_s = len(probe.batches), sum(map(cpu_s, pids)), time.monotonic()
        time.sleep(sizes.idle_s)
        used_s = sum(map(cpu_s, pids)) - used_s
        batches, took_s = len(probe.batches) - batches, time.monotonic() - since_s
    count(config, ground.bootstrap, load, each)
    return {
        "idle": {
            "of_one_core": round(used_s / took_s, 3),
            "batches": batches,
            "seconds": round(took_s, 1),
            "peak_mib": memory.peak_mib,
        }
    }
