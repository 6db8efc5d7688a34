"""Every rule is needed, explains its own shape only, and together they explain all."""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.conflict.judge import Judged
from tests.harness.examples import examples
from tests.vectors import epochs, origin, shapes
from tests.vectors.cases import CASES, DEVIATIONS, broken, csn, session
from tests.vectors.deviations import FILE
from tests.vectors.outcome import About, Case
from tests.vectors.random_cases import FUNCTIONS, random_cases
from tests.vectors.runner import KINDS, run_case

NO_RULES = replace(DEVIATIONS, rules=())
NONSENSE = 99
COUNTERS = DEVIATIONS.counters

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


def conflict(*words: str, function: str = "NDB$EPOCH", **tables: str | None) -> Case:
    """What the origin makes of "A delete", "B insert 3 x" and so on; rows 1 and 2 are there.

    Without a key it is row 1; x names a transaction; every new X is smaller than the last.
    """
    steps = [
        {"sync": word} if "->" in word else _write(number, *word.split())
        for number, word in enumerate(words)
    ]
    setup = [{"table": "t1", "key": key, "values": {"b": "x", "X": 0}} for key in (1, 2)]
    return origin.case(setup, steps, function, tables)


def _write(number: int, cluster: str, op: str, key: str = "1", txn: str | None = None) -> Case:
    values = None if op == "delete" else {"b": f"w{number}", "X": 10 - number}
    named = {"cluster": cluster, "op": op, "table": "t1", "key": int(key)}
    return {**named, "values": values, "txn": txn}


UNSEEN = conflict("B delete", "A delete", "B insert", "A->B", "B->A", "A->B")
FOLLOWS = conflict("B delete", "A delete", "A->B", "B insert", "B->A", "A->B")
BUILDS = conflict(
    *("A update", "B update 1 x", "B insert 3 x", "B->A", "B delete 3 y", "B insert 4 y"),
    *("B->A", "A->B"),
    function="NDB$EPOCH_TRANS",
)
DEPENDENT = conflict(
    *("A update", "B update 1 x", "B update 2 x", "B update 2 y", "B->A", "A->B"),
    function="NDB$EPOCH_TRANS",
)
DELETES = conflict("B delete", "A delete", "B->A", "A->B", function="NDB$EPOCH2")
BROUGHT_BACK = broken(
    conflict(
        *("A insert 3", "A->B", "A update 3", "B delete 3", "A->B", "B update 3", "A delete 3"),
        "B->A",
        function="NDB$EPOCH2",
    ),
    *("expect", "exceptions"),
    value=None,  # they differ by the delete that won, too
)
NEWER = conflict("B insert 3", "B->A", "B delete 3", "A->B", function="NDB$EPOCH2")
OWN_WINNER = broken(
    conflict(
        *("B delete", "B insert", "A delete", "A->B", "B->A", "B insert", "B->A"),
        function="NDB$EPOCH2",
    ),
    *("expect", "exceptions"),
    value=None,  # they differ by the delete that won, too
)
LOWERS = conflict("B update", "B update", "B->A", function="NDB$MAX")
CROSSING = conflict("A update", "B delete", "B->A", "A->B", function="NDB$MAX_DELETE_WIN")
NO_FUNCTION = conflict("A update", "B update", "B->A", "A->B", t1=None)
TWICE = conflict("A update", "B update 1 x", "B update 1 x", "B->A", "A->B")
HIDDEN = conflict(
    *("A update", "A->B", "B->A", "A->B", "B->A", "B update", "B->A"), function="NDB$EPOCH(0)"
)
LATE_ROW_WITH_A_LARGE_KEY = {
    "id": "made",
    "kind": "change_batches_bug",
    "input": {
        "batch_size": 1,
        "blocks": [
            {"block": 1, "lsn": 7},
            {"block": 2, "lsn": 9},
            {"block": 3, "lsn": 8},
            {"block": 4, "lsn": 9},
        ],
    },
    "expect": {"batches": [[1], [2], [4]], "lost_blocks": [3]},
}


MADE = {
    "start_at_purge_edge": EDGE,
    "hole_behind_another_start": HOLE,
    "neighbour_beyond_stop": NEIGHBOUR,
    "insert_meets_unseen_delete": UNSEEN,
    "insert_follows_rejected_write": FOLLOWS,
    "write_builds_on_rejected_transaction": BUILDS,
    "dependent_is_counted": DEPENDENT,
    "delete_meets_unseen_delete": DELETES,
    "update_follows_winning_delete": BROUGHT_BACK,
    "answer_meets_newer_write": NEWER,
    "insert_over_own_winner": OWN_WINNER,
    "update_does_not_raise_its_column": LOWERS,
    "crossing_writes_are_told": CROSSING,
    "crossing_writes_of_no_function": NO_FUNCTION,
    "write_in_the_epochs_that_bits_hide": HIDDEN,
    "row_written_twice_in_a_transaction": TWICE,
    "row_in_front_of_its_position": LATE_ROW_WITH_A_LARGE_KEY,
}
"""A case of each rule."""
DEVIATING = {
    **MADE,
    **{
        case["id"]: case
        for case in CASES
        if run_case(case, DEVIATIONS).text.startswith("differs by rule")
    },
}
"""Those, and the printed cases that a rule accounts for."""


@pytest.mark.parametrize(("rule", "case"), MADE.items(), ids=MADE.keys())
def test_a_rule_accounts_for_its_shape_and_its_law_is_checked(rule: str, case: Case) -> None:
    """Every rule is needed, names its law, and fails when the law does not hold."""
    lawless = tuple(
        replace(kind, laws=dict.fromkeys(kind.laws, lambda *_: "broken")) for kind in KINDS
    )

    assert run_case(case, DEVIATIONS).text == f"differs by rule {rule}, law holds"
    assert run_case(case, NO_RULES).failed
    assert run_case(case, DEVIATIONS, kinds=lawless).failed
    assert rule in {each.name for each in DEVIATIONS.rules}


@pytest.mark.parametrize("case", DEVIATING.values(), ids=DEVIATING.keys())
def test_no_rule_accounts_for_what_the_origin_would_not_do(case: Case) -> None:
    """Neither for another row, nor for another count, exception, anchor or CSN."""
    assert not run_case(case, DEVIATIONS).failed
    for other in nonsense(case):
        assert run_case(other, DEVIATIONS).failed, other["expect"]


def nonsense(case: Case) -> Iterator[Case]:
    """The case with one expectation after the other that neither the origin nor the hub meets."""
    yield from _of_expect(case, case["expect"], ("expect",), "final_")
    for place, step in enumerate(case.get("steps", [])):
        yield from _of_expect(case, step, ("steps", place), "expect_")


def _of_expect(
    case: Case, expect: Case, path: tuple[str | int, ...], prefix: str
) -> Iterator[Case]:
    stranger = {"table": "t1", "key": 999, "values": {"b": "nonsense"}}
    for name in (f"{prefix}rows_A", f"{prefix}rows_B", "exceptions"):
        listed = expect.get(name)
        if listed is None:
            continue
        yield broken(case, *path, name, value=[*listed, stranger])
        for place, row in enumerate(listed):
            fields = ("old", "new", "cause", "op_type") if name == "exceptions" else ("values",)
            for field in fields:
                yield broken(case, *path, name, place, value={**row, field: {"b": "nonsense"}})
    yield from _of_counts(case, expect, path)
    for name in ("batches", "lost_blocks"):
        if name in expect:
            yield broken(case, *path, name, value=[*expect[name], NONSENSE])
    if "sent" in expect:
        yield broken(case, *path, "sent", value=[*expect["sent"], csn(99, 1)])
        yield broken(case, *path, "sent", value=[csn(99, 1), *expect["sent"]])
    if expect.get("sent"):
        yield broken(case, *path, "sent", value=expect["sent"][1:])
        yield broken(case, *path, "anchor", value=csn(99, 1))


def _of_counts(case: Case, expect: Case, path: tuple[str | int, ...]) -> Iterator[Case]:
    count = expect.get("conflict_count_delta")
    if isinstance(count, int):
        yield broken(case, *path, "conflict_count_delta", value=NONSENSE)
    for name in count if isinstance(count, dict) else ():
        yield broken(case, *path, "conflict_count_delta", name, value=NONSENSE)
    for name in expect.get("counters") or {}:
        if not any(fnmatchcase(name, rule.name) and not rule.counts for rule in COUNTERS):
            yield broken(case, *path, "counters", name, value=NONSENSE)


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, case in MADE.items() if "steps" in case]
)
def test_a_rule_explains_its_own_rows_from_its_own_steps_on(rule: str, case: Case) -> None:
    """Not the same difference on another row, before the shape, or of no write in particular."""
    kind = next(kind for kind in KINDS if kind.name == "epoch")
    played, differences = kind.play(case, DEVIATIONS)
    explains = kind.shapes[rule](case, played)
    explained = [each for each in differences if explains and explains(each)]

    assert explains
    assert explained
    for each in explained:
        assert not explains(replace(each, row=("t1", '{"#1":999}')))
        assert not explains(replace(each, step=-1))
        assert not explains(replace(each, row=None))
        assert not explains(replace(each, step=None))
        assert not explains(replace(each, about=About.SENT))


@pytest.mark.parametrize("case", [UNSEEN, BUILDS, CROSSING, NO_FUNCTION, HIDDEN, TWICE])
def test_the_law_fails_when_a_loser_is_not_recorded(case: Case) -> None:
    """What was rejected, and what was overwritten by who had not seen it."""
    played = epochs.play(case, DEVIATIONS.counters)
    assert shapes.converged(case, played) is None
    log = played.world.hub.log
    losses = [n for n, (_, one) in enumerate(log) if isinstance(one, Judged) and one.conflict]
    assert losses

    for place in losses:
        hub_epoch, entry = log[place]
        assert isinstance(entry, Judged)
        log[place] = hub_epoch, entry._replace(conflict=None)
        assert "not recorded" in (shapes.converged(case, played) or "")
        log[place] = hub_epoch, entry


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
    row = {"table": "t1", "key": 9, "values": {"b": "y"}}
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


@pytest.mark.parametrize("name", FUNCTIONS)
@examples(share=6, is_fixed=True)
@given(data=st.data())
def test_the_rules_account_for_every_difference_to_the_origin(
    name: str, data: st.DataObject
) -> None:
    """Not only in the cases that somebody printed."""
    case = data.draw(random_cases(name))

    outcome = run_case(case, DEVIATIONS)

    assert not outcome.failed, outcome.line
    assert run_case(origin.mirrored_case(case), DEVIATIONS).text == outcome.text
