"""What conflicts cost: some of all changes go to rows that all replicas write at once.

Under EPOCH_TRANS the changes come in transactions, whose rows are all contended or all not.
"""

from statistics import median

from tests.benchmarks.ground import Ground, HubKind, run_preloaded
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

TRANSACTION = {"EPOCH": 1, "EPOCH_TRANS": 4}
"""Function -> changes in a transaction."""


def contention(ground: Ground, sizes: Sizes) -> Numbers:
    """The median speed at each percentage, the percentages in turn, counted from `conflicts`."""
    return {f"contention_{f.lower()}": _under(ground, f, sizes) for f in TRANSACTION}


def _under(ground: Ground, function: str, sizes: Sizes) -> dict[str, object]:
    size = TRANSACTION[function]
    each = sizes.contended_events // len(WRITERS) // size * size
    speeds: dict[int, list[float]] = {percent: [] for percent in sizes.percents}
    numbers: dict[str, object] = {"events": each * len(WRITERS), "transaction": size}
    peak_mib = 0
    for turn in range(sizes.contended_runs + 1):
        for percent in sizes.percents[: None if turn else 1]:  # the first turn warms up
            kind = HubKind(f"{function.lower()}_{percent}_{turn}", function=function)
            # two of three come second; no row of its own twice, or one conflict had followers
            load = new_load(percent * 15, each, size)
            run = run_preloaded(ground, kind, load, each)
            peak_mib = max(peak_mib, run.memory.peak_mib)
            numbers[f"contended_{percent}_percent"] = run.counted.contended_percent
            if turn:
                speeds[percent].append(run.events_per_s)
    base = median(speeds[sizes.percents[0]])
    for percent, found in speeds.items():
        numbers[f"events_per_s_{percent}_percent"] = round(median(found))
        numbers[f"ratio_{percent}_percent"] = round(median(found) / base, 3)
    return {**numbers, "peak_mib": peak_mib}
