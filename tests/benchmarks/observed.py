"""What it costs to be looked at: a scrape each second and an open page, in turns with neither.

One hub works off its backlog all the time, so both sides have the same state and are equally warm.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from checkpoints.faults import FaultPoint
from streaming.hub.served import served
from streaming.hub.view import HubView
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
)
from tests.benchmarks.load import new_load
from tests.benchmarks.looker import Seen, looking
from tests.benchmarks.memory import cpu_s
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes
from tests.harness.served_hub import free_port

ALONE, LOOKED_AT = "alone", "looked_at"
_CPU = "_cpu_us"

EVENTS_PER_BATCH = 20_000
"""A turn is cut at batches: it should have many."""
SETTLE_S = 3.0
"""Whoever looks starts and connects before a turn is measured; nobody is left of the turn before."""


@dataclass(slots=True)
class _Probe(HubProbe):
    """Notes the processor time of driver and JVM with each batch."""

    pids: tuple[int, ...] = ()
    used_s: list[float] = field(default_factory=list)

    def __call__(self, point: FaultPoint) -> None:
        before = len(self.batches)
        HubProbe.__call__(self, point)
        if len(self.batches) > before:
            self.used_s.append(sum(map(cpu_s, self.pids)))


def observed(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Changes a second, and processor time of driver and JVM for each, of both sides.

    Rounds begin with one side and with the other in turn; the first one warms up.
    """
    load, port, rounds, seen = new_load(), free_port(), list[Round](), Seen()
    config = environment.config(HubKind("observed", events_per_batch=EVENTS_PER_BATCH))
    config = config.model_copy(update={"http": config.http.model_copy(update={"port": port})})
    each = sizes.observed_events // len(load.writers)
    fill(environment, config, load, each)
    probe = _Probe(pids=(os.getpid(), jvm_pid(environment.spark)))
    view = HubView(config)
    with (
        agents_running(environment.task(config)),
        served(view),
        running(environment, config, probe, view),
    ):
        wait(lambda: bool(probe.working), "the hub has begun", probe)
        for turn in range(sizes.observed_rounds + 1):
            found: dict[str, float] = {}
            for side in (ALONE, LOOKED_AT) if turn % 2 else (LOOKED_AT, ALONE):
                with _looking(port if side == LOOKED_AT else 0) as looked:
                    time.sleep(SETTLE_S)
                    speed, cpu_us = _measure(probe, sizes.observed_s)
                found |= {side: speed, f"{side}{_CPU}": cpu_us}
                seen = Seen(seen.scrapes + looked.scrapes, seen.events + looked.events)
            if turn:
                rounds.append(found)
        is_enough = probe.judged < each * len(load.writers)
        wait(lambda: probe.judged >= each * len(load.writers), "the hub judged everything", probe)
    if not is_enough:
        raise SystemExit("observed: the backlog ended before the last turn; raise --observed-events")
    count(config, environment.bootstrap, load, each)
    return {
        "observed": {
            **{f"{side}_per_s": round(middle(rounds, side)) for side in (ALONE, LOOKED_AT)},
            "ratio_to_alone": ratio(rounds, LOOKED_AT, ALONE),
            "cpu_ratio_to_alone": ratio(rounds, f"{LOOKED_AT}{_CPU}", f"{ALONE}{_CPU}"),
            "scrapes": seen.scrapes,
            "events": seen.events,
            "rounds": rounds,
        }
    }


def _measure(probe: _Probe, seconds: float) -> tuple[float, float]:
    """Changes a second, and microseconds of processor for each, between two ends of batches."""
    first = len(probe.used_s)
    time.sleep(seconds)
    wait(lambda: len(probe.used_s) > first + 1, "a batch ends within the turn", probe)
    last = len(probe.used_s) - 1
    judged = sum(one.judged for one in probe.batches[first + 1 : last + 1])
    took_s = probe.batches[last].published_s - probe.batches[first].published_s
    used_s = probe.used_s[last] - probe.used_s[first]
    return judged / took_s, used_s / judged * 1_000_000


@contextmanager
def _looking(port: int) -> Iterator[Seen]:
    if not port:
        yield Seen()
        return
    with looking(port) as seen:
        yield seen
