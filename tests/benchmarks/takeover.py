"""From kill -9 of the hub at work until its standby has committed a hub epoch."""

import signal
import time
from statistics import median

from streaming.hub.rehearsal import WARM
from tests.benchmarks.agents import agents_running
from tests.benchmarks.committed import hub_epoch, judged
from tests.benchmarks.counting import count
from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, topics_of
from tests.benchmarks.load import WRITERS, new_load, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes
from tests.harness.hub_process import HubProcess, wait_until

RATE = 500
WRITES_S = 60.0
BEFORE_S = 5.0
"""The time of writing before the kill, once the standby is warm."""
LOOK_S = 0.02


def takeover(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The median of several runs, and the longest one."""
    runs = [_run(environment, number) for number in range(sizes.start_runs)]
    return {"takeover": {"seconds": round(median(runs), 2), "longest_s": round(max(runs), 2)}}


def _run(environment: BenchmarkEnvironment, number: int) -> float:
    kind = HubKind(f"takeover{number}")
    config, load = environment.config(kind), new_load()
    publish_hellos(environment.bootstrap, topics_of(config))
    file = environment.folder / f"{kind.name}.toml"
    file.write_text(f"{file.read_text()}\n[http]\nport = 0\n")
    task = environment.writing(config, load, RATE, WRITES_S)
    with HubProcess(file) as active:
        wait_until(lambda: hub_epoch(config) > 0, lambda: active.output)
        with HubProcess(file, "--standby") as standby:
            wait_until(lambda: "stands by" in standby.output, lambda: standby.output)
            with agents_running(task):
                wait_until(lambda: WARM in standby.output, lambda: standby.output)
                time.sleep(BEFORE_S)
                active.signal_group(signal.SIGKILL)
                killed_s, before = time.monotonic(), hub_epoch(config)
                while hub_epoch(config) <= before:
                    time.sleep(LOOK_S)
                took_s = time.monotonic() - killed_s
                wait_until(lambda: judged(config) >= task.changes, lambda: standby.output)
    count(config, environment.bootstrap, load, task.changes // len(WRITERS), restarts=1)
    return took_s
