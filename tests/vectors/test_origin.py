"""The model of the origin says what the origin printed, so its random cases are worth something."""

import json

from tests.vectors import origin
from tests.vectors.cases import CONFLICTS, by_id
from tests.vectors.outcome import Case

MODELLED = [
    case for case in CONFLICTS if {s.get("op") for s in case["steps"]} <= {*origin.OP_TYPES, None}
]
FIELDS = ("table", "key", "op_type", "cause")


@by_id(MODELLED)
def test_the_model_says_what_the_origin_printed(case: Case) -> None:
    """Rows, counts and exceptions, where they were printed."""
    a_detects = case["detecting_cluster"] == "A"
    steps = case["steps"] if a_detects else [origin.mirrored(step) for step in case["steps"]]
    filters = case.get("final_rows_filter") or {}

    told = origin.case(case["setup_rows"], steps, case["function"], case.get("table_functions"))[
        "expect"
    ]

    for of, by in [("A", "B"), ("B", "A")]:
        printed = case["expect"].get(f"final_rows_{of}")
        rows = told[f"final_rows_{of if a_detects else by}"]
        if printed is not None:
            shown = [r for r in rows if all(r[n] == v for n, v in filters.items())]
            assert in_order(shown) == in_order(printed)
    assert_printed(case["expect"], told)


def assert_printed(printed: Case, told: Case) -> None:
    """What is counted and recorded."""
    count, counted = printed["conflict_count_delta"], told["conflict_count_delta"]
    if isinstance(count, int):
        assert (sum(counted.values()) if isinstance(counted, dict) else counted) == count
    for name in told["counters"].keys() & (printed.get("counters") or {}).keys():
        assert told["counters"][name] == printed["counters"][name]
    pairs = zip(*(in_order(e["exceptions"] or []) for e in (printed, told)), strict=True)
    for want, have in pairs if printed["exceptions"] is not None else ():
        assert all(want.get(name) in (None, have[name]) for name in FIELDS)


def in_order(rows: list[Case]) -> list[Case]:
    """Rows by table and key, those of one row as they came."""
    told: list[Case] = json.loads(json.dumps(rows))
    return sorted(told, key=lambda row: (row["table"], row["key"]))


def test_a_mirrored_step_is_mirrored_back() -> None:
    """So a case in which B detects can be told by a model in which A does."""
    for step in (step for case in CONFLICTS for step in case["steps"]):
        assert origin.mirrored(origin.mirrored(step)) == step
