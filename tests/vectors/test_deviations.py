"""Every rule is needed, explains its own shape only, and together they explain all."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vectors import origin
from tests.vectors.cases import CASES, DEVIATIONS, broken, csn, session
from tests.vectors.deviations import FILE
from tests.vectors.outcome import Case
from tests.vectors.runner import KINDS, run_case

NO_RULES = replace(DEVIATIONS, rules=())

EDGE = session(
    {"1": (1, 9)},
    {"1": (1, 3)},
    [(4, 1), (9, 1)],
    supplier_purge_ruv=["{replica 1} " + csn(3, 1)],
    expect={"anchor": None, "sent": []},
)
HOLE = session(
    {"1": (1, 9), "2": (2, 9)},
    {"1": (1, 3), "2": (2, 4)},
    [(3, 1), (9, 1), (9, 2)],
    supplier_purge_ruv=["{replica 2} " + csn(6, 2)],
    expect={"anchor": csn(3, 1), "sent": [csn(9, 1), csn(9, 2)]},
)
NEIGHBOUR = session(
    {"1": (1, 4)},
    {"1": (1, 3)},
    [(3, 1), (4, 1), "00000004000100010000"],
    expect={"anchor": csn(3, 1), "sent": [csn(4, 1), "00000004000100010000"]},
)


def conflict(*words: str) -> Case:
    """What the origin makes of "A delete" and so on, on one row that both have."""
    steps = [
        {"sync": word}
        if "->" in word
        else {
            "cluster": word[0],
            "op": word[2:],
            "table": "t1",
            "key": 1,
            "values": None if word.endswith("delete") else {"b": f"w{number}"},
            "txn": number,
        }
        for number, word in enumerate(words)
    ]
    return origin.case([{"table": "t1", "key": 1, "values": {"b": "x"}}], steps)


UNSEEN = conflict("B delete", "A delete", "B insert", "A->B", "B->A", "A->B")
FOLLOWS = conflict("B delete", "A delete", "A->B", "B insert", "B->A", "A->B")


@pytest.mark.parametrize(
    ("rule", "case"),
    [
        ("start_at_purge_edge", EDGE),
        ("hole_behind_another_start", HOLE),
        ("neighbour_beyond_stop", NEIGHBOUR),
        ("insert_meets_unseen_delete", UNSEEN),
        ("insert_follows_rejected_write", FOLLOWS),
    ],
)
def test_a_rule_accounts_for_its_shape_and_its_law_is_checked(rule: str, case: Case) -> None:
    """Every rule is needed, names its law, and fails when the law does not hold."""
    lawless = tuple(
        replace(kind, laws=dict.fromkeys(kind.laws, lambda *_: "broken")) for kind in KINDS
    )

    assert run_case(case, DEVIATIONS).text == f"differs by rule {rule}, law holds"
    assert run_case(case, NO_RULES).failed
    assert run_case(case, DEVIATIONS, kinds=lawless).failed
    assert rule in {each.name for each in DEVIATIONS.rules}


def test_every_rule_names_a_shape_and_a_law_that_exist() -> None:
    """And says why."""
    shapes = {kind.name: kind.shapes for kind in KINDS}
    laws = {kind.name: kind.laws for kind in KINDS}
    for rule in DEVIATIONS.rules:
        assert rule.shape in shapes[rule.kind]
        assert rule.law in laws[rule.kind]
        assert rule.reason


def test_a_rule_explains_nothing_on_other_rows() -> None:
    """A wrong row beside a deviation is still a difference."""
    row = {"table": "t1", "key": 2, "values": {"b": "y"}}
    case = broken(UNSEEN, "setup_rows", value=[*UNSEEN["setup_rows"], row])
    rows = {name: [*UNSEEN["expect"][name], row] for name in ("final_rows_A", "final_rows_B")}
    case = broken(case, "expect", value={**UNSEEN["expect"], **rows})
    other = broken(case, "expect", "final_rows_A", -1, "values", "b", value="z")

    assert not run_case(case, DEVIATIONS).failed
    assert run_case(other, DEVIATIONS).failed


def test_rules_name_no_case() -> None:
    """A rule is a rule, not an example."""
    text = FILE.read_text()

    assert not [case["id"] for case in CASES if case["id"] in text]


writes = st.fixed_dictionaries(
    {
        "cluster": st.sampled_from("AB"),
        "op": st.sampled_from(("insert", "update", "delete")),
        "table": st.just("t1"),
        "key": st.integers(1, 2),
        "txn": st.none(),
    }
)
syncs = st.sampled_from(("A->B", "B->A")).map(lambda way: {"sync": way})


@st.composite
def random_cases(draw: st.DrawFn) -> Case:
    """What the origin makes of random writes and syncs."""
    setup = [{"table": "t1", "key": k, "values": {"b": "x"}} for k in (1, 2) if draw(st.booleans())]
    steps: list[Case] = draw(st.lists(st.one_of(writes, writes, syncs), max_size=25))
    written = [
        {**step, "values": None if step.get("op") == "delete" else {"b": f"w{number}"}}
        if "op" in step
        else step
        for number, step in enumerate(steps)
    ]
    return origin.case(setup, [*written, *draw(st.sampled_from(ENDINGS))])


def mirrored(case: Case) -> Case:
    """The same with A and B exchanged: B detects."""
    other, expect = {"A": "B", "B": "A", "A->B": "B->A", "B->A": "A->B"}, case["expect"]
    return {
        **case,
        "detecting_cluster": other[case["detecting_cluster"]],
        "steps": [
            {name: other[step[name]]} | {k: v for k, v in step.items() if k != name}
            for step in case["steps"]
            for name in ("sync", "cluster")
            if name in step
        ],
        "expect": expect
        | {f"final_rows_{to}": expect[f"final_rows_{of}"] for of, to in ("AB", "BA")},
    }


ENDINGS: list[list[Case]] = [[], [{"sync": "B->A"}, {"sync": "A->B"}]]


@given(random_cases())
def test_the_rules_account_for_every_difference_to_the_origin(case: Case) -> None:
    """Not only in the cases that somebody printed."""
    outcome = run_case(case, DEVIATIONS)

    assert not outcome.failed, outcome.line
    assert run_case(mirrored(case), DEVIATIONS).text == outcome.text
