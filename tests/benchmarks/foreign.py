"""What another spelling costs: the same input as an agent in another language might write it."""

from dataclasses import replace

from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, run_preloaded
from tests.benchmarks.load import WRITERS, Spelling, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15


def foreign(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The hub's speed with either spelling, in alternation; the first turn warms up."""
    each = sizes.foreign_events // len(WRITERS)
    rounds, peak_mib = list[Round](), 0
    for turn in range(sizes.rounds + 1):
        found = {}
        for spelling in Spelling:
            load = replace(new_load(SHARED_OF_1000), spelling=spelling)
            run = run_preloaded(environment, HubKind(f"{spelling}{turn}"), load, each)
            peak_mib = max(peak_mib, run.memory.peak_mib)
            found[str(spelling)] = run.events_per_s
        rounds.append(found)
    del rounds[0]
    return {
        "foreign": {
            **{f"{spelling}_per_s": round(middle(rounds, spelling)) for spelling in Spelling},
            "ratio_to_canonical": ratio(rounds, Spelling.FOREIGN, Spelling.CANONICAL),
            "events": each * len(WRITERS),
            "peak_mib": peak_mib,
            "rounds": rounds,
        }
    }
