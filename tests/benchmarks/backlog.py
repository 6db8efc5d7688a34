"""A hub that was down: how fast it catches up, and whether its memory stays flat."""

from tests.benchmarks.agents import agents_running, report_of
from tests.benchmarks.counting import count
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    fill,
    run_preloaded,
    running,
    topics_of,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, new_load, preload
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15
BEFORE = 30_000
"""Changes after which the hub stops, when all consumers are level."""


def backlog(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """One round: a new hub's throughput, then a hub that missed changes and starts again.

    The first hub, at half of that size, warms up.
    """
    _throughput(environment, "backlog_warm_up", sizes.events // 2)
    usual_per_s = _throughput(environment, "backlog_throughput", sizes.events)
    numbers = _level_again(environment, sizes)
    ratio = numbers["events_per_s"] / usual_per_s
    return {"backlog": {**numbers, "ratio_to_throughput": round(ratio, 3)}}


def _throughput(environment: BenchmarkEnvironment, name: str, events: int) -> float:
    """Events a second of a new hub."""
    load = new_load(SHARED_OF_1000)
    return run_preloaded(environment, HubKind(name), load, events // len(WRITERS)).events_per_s


def _level_again(environment: BenchmarkEnvironment, sizes: Sizes) -> dict[str, float]:
    """The hub is level, stops, misses the changes, and starts again."""
    config, load = environment.config(HubKind("backlog")), new_load(SHARED_OF_1000)
    before, after = HubProbe(), HubProbe()
    first, each = BEFORE // len(WRITERS), (BEFORE + sizes.backlog_events) // len(WRITERS)
    fill(environment, config, load, first)
    task = environment.task(config)
    missed = (each - first) * len(WRITERS)
    with agents_running(task):
        with running(environment, config, before):
            wait(lambda: before.judged >= first * len(WRITERS), "the hub is level", before)
        preload(environment.bootstrap, topics_of(config), load, first, each)
        with watching(environment) as memory, running(environment, config, after):
            wait(lambda: after.judged >= missed, "the hub is level again", after)
    counted = count(config, environment.bootstrap, load, each, restarts=1)
    started_s, ended_s = after.working[0].planned_s, after.working[-1].published_s
    middle_s = (started_s + ended_s) / 2
    earlier, later = (
        memory.peak_between_mib(*span) for span in ((started_s, middle_s), (middle_s, ended_s))
    )
    return {
        "events": missed,
        "seconds_to_level": round(after.seconds, 1),
        "events_per_s": round(missed / after.seconds),
        "contended_percent": counted.contended_percent,
        "delivered": counted.delivered,
        "memory_earlier_half_mib": earlier,
        "memory_later_half_mib": later,
        "memory_later_to_earlier": round(later / max(earlier, 1), 3),
        "agents_cpu_s": round(report_of(task).cpu_s, 2),
        "peak_mib": memory.peak_mib,
    }
