"""Latency at a steady rate: from append in the origin's topic to receipt from the others' topics.

A change contains the time at which it was sent to Kafka; a consumer of the updates topics reads
its clock on receipt, so both ways through the broker are included.
"""

from statistics import quantiles

from tests.benchmarks.agents import agents_running, report_of
from tests.benchmarks.counting import count
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    running,
    topics_of,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, new_load, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 10


def latency(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Each rate on a hub of its own."""
    return {f"latency_{rate}": _at(environment, rate, sizes) for rate in sizes.rates}


def _at(environment: BenchmarkEnvironment, rate: int, sizes: Sizes) -> dict[str, object]:
    config, load = environment.config(HubKind(f"latency_{rate}")), new_load(SHARED_OF_1000)
    publish_hellos(environment.bootstrap, topics_of(config))
    probe = HubProbe()
    task = environment.writing(config, load, rate, sizes.seconds, sizes.warm_up_s)
    with watching(environment) as memory, running(environment, config, probe):
        wait(lambda: bool(probe.batches), "the hub has processed the hellos", probe)
        with agents_running(task):
            wait(lambda: probe.judged >= task.changes, "the hub judged everything", probe)
    seen = report_of(task)
    counted = count(config, environment.bootstrap, load, task.changes // len(WRITERS))
    cuts = quantiles(seen.latencies_ms, n=100)
    batches = probe.working[len(probe.working) // 2 :]
    return {
        "p50_s": round(cuts[49] / 1000, 3),
        "p99_s": round(cuts[98] / 1000, 3),
        "warm_up_s": sizes.warm_up_s,
        "changes": counted.written,
        "written_per_s": round(seen.written / seen.writing_s),
        "deliveries_measured": len(seen.latencies_ms),
        "contended_percent": counted.contended_percent,
        "work_in_batch_p50_s": round(
            quantiles([b.published_s - b.planned_s for b in batches], n=100)[49], 3
        ),
        "agents_cpu_s": round(seen.cpu_s, 2),
        "peak_mib": memory.peak_mib,
    }
