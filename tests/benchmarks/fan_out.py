"""What one more consumer costs: the same changes to more and more agreements."""

from itertools import pairwise

from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, run_preloaded
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes


def fan_out(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Microseconds for each delivered change, by the number of agreements; the first run warms."""
    numbers: dict[str, object] = {}
    costs: list[float] = []
    peak_mib = 0
    each = sizes.fan_out_events // len(WRITERS)
    for turn, agreements in enumerate((sizes.fan_out[0], *sizes.fan_out)):
        kind = HubKind(f"fan_out_{agreements}_{turn}", replicas=agreements)
        run = run_preloaded(environment, kind, new_load(), each)
        peak_mib = max(peak_mib, run.memory.peak_mib)
        if turn:
            costs.append(run.probe.seconds / run.counted.delivered * 1_000_000)
            numbers |= {
                f"us_per_delivered_{agreements}": round(costs[-1], 2),
                f"events_per_s_{agreements}": round(run.events_per_s),
                f"delivered_{agreements}": run.counted.delivered,
                f"agents_cpu_s_{agreements}": round(run.seen.cpu_s, 2),
            }
    falls = all(b < a for a, b in pairwise(costs))
    ratio = round(costs[-1] / costs[0], 3)
    return {
        "fan_out": {
            **numbers,
            "cost_falls": falls,
            "cost_ratio_last_to_first": ratio,
            "peak_mib": peak_mib,
        }
    }
