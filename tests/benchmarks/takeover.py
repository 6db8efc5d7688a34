"""From kill -9 of the hub at work until its standby has committed a hub epoch, or is ready to.

The second is with a window of many rows behind the last materialization.
"""

import signal
import time
from pathlib import Path
from statistics import median

from streaming.hub.standby.rehearsal import WARM
from tests.benchmarks.agents import agents_running
from tests.benchmarks.committed import hub_epoch, judged
from tests.benchmarks.counting import count
from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, fill, topics_of
from tests.benchmarks.load import WRITERS, new_load, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes
from tests.harness.hub_process import HubProcess, wait_until

RATE = 500
WRITES_S = 60.0
BEFORE_S = 5.0
"""The time of writing before the kill, once the standby is warm."""
LOOK_S = 0.02
READY = "ready at hub epoch "


def takeover(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The median of several runs, and the longest one."""
    runs = [_run(environment, number) for number in range(sizes.start_runs)]
    ready_s = _until_ready(environment, sizes.takeover_rows)
    return {
        "takeover": {
            "seconds": round(median(runs), 2),
            "longest_s": round(max(runs), 2),
            "window_rows": sizes.takeover_rows,
            "ready_with_window_s": round(ready_s, 2),
        }
    }


def _run(environment: BenchmarkEnvironment, number: int) -> float:
    kind = HubKind(f"takeover{number}")
    config, load = environment.config(kind), new_load()
    publish_hellos(environment.bootstrap, topics_of(config))
    file = _file_of(environment, kind)
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


def _until_ready(environment: BenchmarkEnvironment, rows: int) -> float:
    """From the kill until the standby is ready, when nobody writes any more."""
    each = rows // len(WRITERS)
    load = new_load(own_rows=each)
    kind = HubKind("window")
    config = environment.config(kind)
    fill(environment, config, load, each)
    file = _file_of(environment, kind)
    with HubProcess(file) as active:
        wait_until(lambda: judged(config) >= each * len(WRITERS), lambda: active.output)
        with HubProcess(file, "--standby") as standby:
            wait_until(lambda: WARM in standby.output, lambda: standby.output)
            time.sleep(BEFORE_S)
            active.signal_group(signal.SIGKILL)
            killed_s = time.monotonic()
            standby.waits_for(lambda: READY in standby.output, "it is ready")
            return time.monotonic() - killed_s


def _file_of(environment: BenchmarkEnvironment, kind: HubKind) -> Path:
    """The configuration of a hub beside another one on this machine: at any port."""
    file = environment.folder / f"{kind.name}.toml"
    file.write_text(f"{file.read_text()}\n[http]\nport = 0\n")
    return file
