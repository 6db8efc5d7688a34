"""What filters of rows cost: every agreement has a condition, which all rows of the input fulfil.

So what is delivered is the same, and counted the same, on both sides.
"""

from functools import partial

from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, preloaded_by_turns
from tests.benchmarks.load import WRITERS, Load, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import middle, ratio
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15
CONDITIONS = {"unfiltered": "", "filtered": "id >= 0 AND owner LIKE 'customer%'"}
"""Side -> the condition of each agreement."""


def filters(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The hub's speed without conditions and with them, by turns; the first turn warms up."""
    each = sizes.filtered_events // len(WRITERS)
    sides = {side: partial(_side, condition) for side, condition in CONDITIONS.items()}
    rounds, peak_mib = preloaded_by_turns(environment, sizes.rounds, each, sides)
    return {
        "filters": {
            **{f"{side}_per_s": round(middle(rounds, side)) for side in CONDITIONS},
            "ratio_to_unfiltered": ratio(rounds, "filtered", "unfiltered"),
            "events": each * len(WRITERS),
            "peak_mib": peak_mib,
            "rounds": rounds,
        }
    }


def _side(condition: str, name: str) -> tuple[HubKind, Load]:
    return HubKind(name, condition=condition), new_load(SHARED_OF_1000)
