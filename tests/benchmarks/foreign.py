"""What another spelling costs: the same input as an agent in another language might write it."""

from dataclasses import replace
from functools import partial

from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, preloaded_by_turns
from tests.benchmarks.load import WRITERS, Load, Spelling, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import middle, ratio
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15


def foreign(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The hub's speed with either spelling, in alternation; the first turn warms up."""
    each = sizes.foreign_events // len(WRITERS)
    sides = {str(spelling): partial(_side, spelling) for spelling in Spelling}
    rounds, peak_mib = preloaded_by_turns(environment, sizes.rounds, each, sides)
    return {
        "foreign": {
            **{f"{spelling}_per_s": round(middle(rounds, spelling)) for spelling in Spelling},
            "ratio_to_canonical": ratio(rounds, Spelling.FOREIGN, Spelling.CANONICAL),
            "events": each * len(WRITERS),
            "peak_mib": peak_mib,
            "rounds": rounds,
        }
    }


def _side(spelling: Spelling, name: str) -> tuple[HubKind, Load]:
    return HubKind(name), replace(new_load(SHARED_OF_1000), spelling=spelling)
