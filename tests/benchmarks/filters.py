"""What filters of rows cost: every agreement has a condition, which all rows of the input fulfil.

So what is delivered is the same, and counted the same, on both sides.
"""

from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, run_preloaded
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15
CONDITIONS = {"unfiltered": "", "filtered": "id >= 0 AND owner LIKE 'customer%'"}
"""Side -> the condition of each agreement."""


def filters(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The hub's speed without conditions and with them, by turns; the first turn warms up."""
    each = sizes.filtered_events // len(WRITERS)
    rounds, peak_mib = list[Round](), 0
    for turn in range(sizes.rounds + 1):
        found = {}
        for side, condition in CONDITIONS.items():
            kind = HubKind(f"{side}{turn}", condition=condition)
            run = run_preloaded(environment, kind, new_load(SHARED_OF_1000), each)
            peak_mib = max(peak_mib, run.memory.peak_mib)
            found[side] = run.events_per_s
        rounds.append(found)
    del rounds[0]
    return {
        "filters": {
            **{f"{side}_per_s": round(middle(rounds, side)) for side in CONDITIONS},
            "ratio_to_unfiltered": ratio(rounds, "filtered", "unfiltered"),
            "events": each * len(WRITERS),
            "peak_mib": peak_mib,
            "rounds": rounds,
        }
    }
