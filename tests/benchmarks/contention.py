"""What conflicts cost: some of all changes go to rows that all replicas write at once.

Under EPOCH_TRANS the changes come in transactions, whose rows are all contended or all not.
"""

from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, run_preloaded
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes

TRANSACTION = {"EPOCH": 1, "EPOCH_TRANS": 4}
"""Function -> changes in a transaction."""


def contention(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The speed at each percentage, in alternation, and its ratio to that of the first."""
    return {f"contention_{f.lower()}": _under(environment, f, sizes) for f in TRANSACTION}


def _under(environment: BenchmarkEnvironment, function: str, sizes: Sizes) -> dict[str, object]:
    size = TRANSACTION[function]
    each = sizes.contended_events // len(WRITERS) // size * size
    numbers: dict[str, object] = {"events": each * len(WRITERS), "transaction": size}
    rounds, peak_mib = list[Round](), 0
    for turn in range(sizes.rounds + 1):
        found = {}
        for percent in sizes.percents[: None if turn else 1]:  # the first turn warms up
            kind = HubKind(f"{function.lower()}_{percent}_{turn}", function=function)
            # two of three come second; no row of its own twice, or one conflict had followers
            load = new_load(percent * 15, each, size)
            run = run_preloaded(environment, kind, load, each)
            peak_mib = max(peak_mib, run.memory.peak_mib)
            numbers[f"contended_{percent}_percent"] = run.counted.contended_percent
            found[str(percent)] = run.events_per_s
        if turn:
            rounds.append(found)
    base, *_ = sides = [str(percent) for percent in sizes.percents]
    for side in sides:
        numbers[f"events_per_s_{side}_percent"] = round(middle(rounds, side))
        numbers[f"ratio_{side}_percent"] = ratio(rounds, side, base)
    return {**numbers, "peak_mib": peak_mib, "rounds": rounds}
