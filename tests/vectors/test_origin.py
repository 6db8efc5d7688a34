"""The model of the origin says what the origin printed, so its random cases are worth something."""

from tests.vectors import origin
from tests.vectors.cases import CONFLICTS, DEVIATIONS, by_id
from tests.vectors.expectations import Moment, differences
from tests.vectors.origin_findings import origin_findings
from tests.vectors.outcome import Case
from tests.vectors.steps import Sync, steps

MODELLED = [
    case for case in CONFLICTS if {s.get("op") for s in case["steps"]} <= {*origin.OP_TYPES, None}
]


@by_id(MODELLED)
def test_the_model_says_what_the_origin_printed(case: Case) -> None:
    """Rows, counts, counters and exceptions, behind every sync and at the end."""
    found, end = origin_findings(case), len(case["steps"])
    moments = [
        Moment(place, step.expect, found[place], listed_only=True)
        for place, step in enumerate(steps(case))
        if isinstance(step, Sync)
    ]

    for moment in [*moments, Moment(end, case["expect"], found[end])]:
        assert differences(case, moment, DEVIATIONS.counters) == []


def test_a_mirrored_step_is_mirrored_back() -> None:
    """So a case in which B detects can be told by a model in which A does."""
    for step in (step for case in CONFLICTS for step in case["steps"]):
        assert origin.mirrored(origin.mirrored(step)) == step
