"""What it costs to be looked at: a scrape each second and an open page, in turns with neither.

One hub takes changes at a steady rate all the time, and what counts is the processor time that its
driver and JVM use in a turn. How fast a backlog is worked off varies by a third from one turn to
the next, which says nothing of a difference of two percent; the driver decides in one thread, so
a share of one core is the most that it can cost of the throughput.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from streaming.hub.observe.served import served
from streaming.hub.observe.view import HubView
from streaming.jvm.private import jvm_pid
from tests.benchmarks.agents import agents_running
from tests.benchmarks.counting import count
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    running,
    topics_of,
    wait,
)
from tests.benchmarks.load import WRITERS, new_load, publish_hellos
from tests.benchmarks.looker import Seen, looking
from tests.benchmarks.memory import cpu_s
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle
from tests.benchmarks.sizes import Sizes
from tests.harness.served_hub import free_port

ALONE, LOOKED_AT = "alone", "looked_at"

PER_S = 2_000
"""Changes a second."""
SHARED_OF_1000 = 10
"""Conflicts are told to the page."""
SETTLE_S = 3.0
"""Whoever looks starts and connects before a turn is measured."""


def observed(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Of one core, what driver and JVM use on both sides, and the median difference.

    Rounds begin with one side and with the other in turn; the first one warms up.
    """
    load, port = new_load(SHARED_OF_1000), free_port()
    config = environment.config(HubKind("observed"))
    config = config.model_copy(update={"http": config.http.model_copy(update={"port": port})})
    publish_hellos(environment.bootstrap, topics_of(config))
    turns_s = 2 * (sizes.observed_rounds + 1) * (sizes.observed_s + SETTLE_S)
    task = environment.writing(config, load, PER_S, turns_s * 1.2, sizes.warm_up_s)
    probe, view, rounds, seen = HubProbe(), HubView(config), list[Round](), Seen()
    with served(view), running(environment, config, probe, view):
        wait(lambda: bool(probe.batches), "the hub has processed the hellos", probe)
        with agents_running(task):
            time.sleep(sizes.warm_up_s)
            for turn in range(sizes.observed_rounds + 1):
                found: dict[str, float] = {}
                for side in (ALONE, LOOKED_AT) if turn % 2 else (LOOKED_AT, ALONE):
                    with _looking(port if side == LOOKED_AT else 0) as looked:
                        time.sleep(SETTLE_S)
                        found[side] = _used(environment, sizes.observed_s)
                    seen = Seen(seen.scrapes + looked.scrapes, seen.events + looked.events)
                if turn:
                    rounds.append(found)
            is_steady = probe.judged < task.changes
            wait(lambda: probe.judged >= task.changes, "the hub judged everything", probe)
    if not is_steady:
        raise SystemExit("observed: the writers had ended before the last turn")
    count(config, environment.bootstrap, load, task.changes // len(WRITERS))
    return {
        "observed": {
            **{
                f"{side}_of_one_core": round(middle(rounds, side), 3) for side in (ALONE, LOOKED_AT)
            },
            "cost_of_one_core": round(median(r[LOOKED_AT] - r[ALONE] for r in rounds), 4),
            "scrapes": seen.scrapes,
            "events": seen.events,
            "rounds": rounds,
        }
    }


def _used(environment: BenchmarkEnvironment, seconds: float) -> float:
    """The share of one core that driver and JVM use for some seconds."""
    pids = [os.getpid(), jvm_pid(environment.spark)]
    before_s, began_s = sum(map(cpu_s, pids)), time.monotonic()
    time.sleep(seconds)
    return (sum(map(cpu_s, pids)) - before_s) / (time.monotonic() - began_s)


@contextmanager
def _looking(port: int) -> Iterator[Seen]:
    if not port:
        yield Seen()
        return
    with looking(port) as seen:
        yield seen
