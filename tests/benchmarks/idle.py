"""The cost of an idle hub: processor time, and batches without input."""

import os
import time

from streaming.jvm.private import jvm_pid
from tests.benchmarks.agents import agents_running
from tests.benchmarks.counting import count
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    fill,
    running,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.memory import cpu_s
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PRELOADED = 300_000
"""Enough to warm up the JVM, as after a day."""
QUIET_S = 10


def idle(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """A hub whose consumers are all level."""
    config, load, probe = environment.config(HubKind("idle")), new_load(), HubProbe()
    each = PRELOADED // len(WRITERS)
    fill(environment, config, load, each)
    pids = [os.getpid(), jvm_pid(environment.spark)]

    def used() -> tuple[float, float, int]:
        return time.monotonic(), sum(map(cpu_s, pids)), len(probe.batches)

    with (
        watching(environment) as memory,
        agents_running(environment.task(config)),
        running(environment, config, probe),
    ):
        wait(lambda: probe.judged >= PRELOADED, "the hub judged everything", probe)
        time.sleep(QUIET_S)
        before = used()
        time.sleep(sizes.idle_s)
        took_s, used_s, batches = (b - a for a, b in zip(before, used(), strict=True))
    count(config, environment.bootstrap, load, each)
    return {
        "idle": {
            "of_one_core": round(used_s / took_s, 3),
            "batches": batches,
            "seconds": round(took_s, 1),
            "peak_mib": memory.peak_mib,
        }
    }
