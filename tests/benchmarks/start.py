"""How long a start takes, by part: from `run` to the first hub epoch, from kill -9 on."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import median
from subprocess import DEVNULL, Popen
from typing import Any

from checkpoints.commit.faults import FaultPoint
from streaming.config.config import Config
from tests.benchmarks.agents import agents_running
from tests.benchmarks.counting import count
from tests.benchmarks.environment import WAIT_S, BenchmarkEnvironment, HubKind, fill, topics_of
from tests.benchmarks.load import WRITERS, new_load, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PRELOADED = 3_000
RATE = 1_000
BEFORE_S = 20
"""The time of writing before the kill; after it the hub restarts and writing lasts half as long."""

StartMark = dict[str, Any]


class HubProcess:
    """A hub in a process of its own, with the marks of its start."""

    def __init__(self, environment: BenchmarkEnvironment, config: Config, name: str) -> None:
        prefix = config.hub.topic_prefix
        self.marks_path = environment.folder / f"{name}.jsonl"
        self.started_s = time.time()
        command = [sys.executable, "-m", "tests.benchmarks.timed_hub"]
        files = [str(environment.folder / f"{prefix.rstrip('.')}.toml"), str(self.marks_path)]
        self.process = Popen([*command, *files], stdin=DEVNULL, start_new_session=True)

    @property
    def marks(self) -> list[StartMark]:
        """Its marks so far."""
        text = self.marks_path.read_text() if self.marks_path.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]

    def first(self, condition: Callable[[StartMark], bool], what: str) -> StartMark:
        """Wait for the first mark for which the condition holds."""
        limit = time.monotonic() + WAIT_S
        while True:
            found = next((mark for mark in self.marks if condition(mark)), None)
            if found is not None:
                return found
            if self.process.poll() is not None or time.monotonic() > limit:
                raise SystemExit(f"the hub did not reach: {what}")
            time.sleep(0.05)

    def delivered(self, judged: int) -> StartMark:
        """Wait until so many changes are judged and delivered."""
        done = FaultPoint.AFTER_PUBLISH
        return self.first(
            lambda m: m["what"] == done and m["judged"] >= judged, f"{judged} changes delivered"
        )

    def batch_seconds(self) -> list[float]:
        """From plan to delivery of each batch so far."""
        found, planned_s = [], 0.0
        for mark in self.marks:
            if mark["what"] == FaultPoint.AFTER_PLAN:
                planned_s = mark["at_s"]
            if mark["what"] == FaultPoint.AFTER_PUBLISH:
                found.append(mark["at_s"] - planned_s)
        return found

    def end(self) -> int:
        """Stop it in order; its peak memory in MiB."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)
        return max((int(mark["peak_mib"]) for mark in self.marks if "peak_mib" in mark), default=0)

    def kill(self) -> None:
        """Kill it with its JVM."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def parts(self, reached: StartMark) -> dict[str, float]:
        """Seconds from one step to the next, up to a mark."""
        found, before_s = {}, self.started_s
        steps = [
            "imported",
            "checked",
            "session",
            "opened",
            FaultPoint.AFTER_PLAN,
            FaultPoint.AFTER_COMMIT,
        ]
        for step in steps:
            there = (mark["at_s"] for mark in self.marks if mark["what"] == step)
            at_s = next(at_s for at_s in there if at_s >= before_s)
            found[_PARTS[step]] = round(at_s - before_s, 2)
            before_s = at_s
        found[_REST] = round(reached["at_s"] - before_s, 2)
        return found


_PARTS: dict[str, str] = {
    "imported": "python_s",
    "checked": "java_version_s",
    "session": "spark_session_s",
    "opened": "state_and_topics_s",
    FaultPoint.AFTER_PLAN: "query_to_first_plan_s",
    FaultPoint.AFTER_COMMIT: "first_batch_to_commit_s",
}
_REST = "rest_s"


def start(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The medians of several runs."""
    anew = [_anew(environment, n) for n in range(sizes.start_runs)]
    again = [_after_a_kill(environment, n) for n in range(sizes.start_runs)]
    return {"start": _medians(anew), "start_after_kill": _medians(again)}


def _medians(runs: list[dict[str, float]]) -> dict[str, object]:
    found = {name: round(median(run[name] for run in runs), 2) for name in runs[0]}
    return {**found, "peak_mib": max(round(run["peak_mib"]) for run in runs)}


def _anew(environment: BenchmarkEnvironment, number: int) -> dict[str, float]:
    """From `run` to the first hub epoch that is delivered; its changes lie there already."""
    config, load = environment.config(HubKind(f"start_{number}")), new_load()
    each = PRELOADED // len(WRITERS)
    fill(environment, config, load, each)
    with (
        _hub(environment, config, f"start_{number}") as hub,
        agents_running(environment.task(config)),
    ):
        reached = hub.delivered(each * len(WRITERS))
        parts = hub.parts(reached)
        peak_mib = hub.end()
    count(config, environment.bootstrap, load, each)
    return {"seconds": reached["at_s"] - hub.started_s, **parts, "peak_mib": peak_mib}


def _after_a_kill(environment: BenchmarkEnvironment, number: int) -> dict[str, float]:
    """From kill -9 until everything is delivered; the replicas continue to write meanwhile."""
    config, load = environment.config(HubKind(f"killed_{number}")), new_load()
    publish_hellos(environment.bootstrap, topics_of(config))
    task = replace(environment.task(config), per_s=RATE, seconds=BEFORE_S * 1.5, base_s=load.base_s)
    name = f"killed_{number}"
    with _hub(environment, config, name) as hub:
        hub.first(lambda mark: mark["what"] == FaultPoint.AFTER_PUBLISH, "the hellos")
        with agents_running(task):
            hub.delivered(RATE)
            time.sleep(BEFORE_S)
            killed_s = time.time()
            hub.kill()
            with _hub(environment, config, f"{name}_again") as again:
                reached = again.delivered(task.changes)
                parts = again.parts(reached)
                peak_mib = again.end()
        young = hub.batch_seconds()
    each = task.changes // len(WRITERS)
    counted = count(config, environment.bootstrap, load, each, restarts=1)
    return {
        "seconds": reached["at_s"] - killed_s,
        **parts,
        "written_per_s": RATE,
        "young_jvm_batches_1_to_5_p50_s": median(young[:5]),
        "young_jvm_batches_after_20_s_p50_s": median(young[-5:]),
        "repeated_records": counted.repeated_records,
        "peak_mib": peak_mib,
    }


@contextmanager
def _hub(environment: BenchmarkEnvironment, config: Config, name: str) -> Iterator[HubProcess]:
    """A hub that does not outlive its measure."""
    hub = HubProcess(environment, config, name)
    try:
        yield hub
    finally:
        if hub.process.poll() is None:
            hub.kill()
