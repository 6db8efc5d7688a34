"""What it costs to be looked at: a scrape each second and an open page, by turns with neither."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

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


def observed(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Changes a second, and processor time of driver and JVM for each, of both sides.

    Rounds begin with one side and with the other in turn; the first one warms up.
    """
    rounds, seen = list[Round](), Seen()
    for turn in range(sizes.observed_rounds + 1):
        found: dict[str, float] = {}
        for side in (ALONE, LOOKED_AT) if turn % 2 else (LOOKED_AT, ALONE):
            kind = HubKind(f"{side}{turn}".replace("_", "-"))
            speed, cpu_us, looked = _run(environment, kind, sizes.events, side == LOOKED_AT)
            found |= {side: speed, f"{side}{_CPU}": cpu_us}
            seen = Seen(seen.scrapes + looked.scrapes, seen.events + looked.events)
        if turn:
            rounds.append(found)
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


def _run(
    environment: BenchmarkEnvironment,
    kind: HubKind,
    events: int,
    is_looked_at: bool,  # noqa: FBT001
) -> tuple[float, float, Seen]:
    """Changes a second, microseconds of processor for each, and what was seen."""
    config, load, probe = environment.config(kind), new_load(), HubProbe()
    port = free_port() if is_looked_at else 0
    config = config.model_copy(update={"http": config.http.model_copy(update={"port": port})})
    each = events // len(load.writers)
    fill(environment, config, load, each)
    gc.collect()
    pids, view = [os.getpid(), jvm_pid(environment.spark)], HubView(config)
    with (
        agents_running(environment.task(config)),
        served(view),
        _looking(port) as seen,
        running(environment, config, probe, view),
    ):
        before_s = sum(map(cpu_s, pids))
        wait(lambda: probe.judged >= each * len(load.writers), "the hub judged everything", probe)
        used_s = sum(map(cpu_s, pids)) - before_s
    written = count(config, environment.bootstrap, load, each).written
    return written / probe.seconds, used_s / written * 1_000_000, seen


@contextmanager
def _looking(port: int) -> Iterator[Seen]:
    if not port:
        yield Seen()
        return
    with looking(port) as seen:
        yield seen
