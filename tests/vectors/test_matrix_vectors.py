"""A vector of the epoch number matrix is compared whole; every kind is played or has a reason."""

import copy
import json
from pathlib import Path

from tests.vectors.cases import DEVIATIONS, MATRIX, broken, by_id
from tests.vectors.matrix_kinds import PLAYS
from tests.vectors.outcome import Case
from tests.vectors.runner import run_case
from tests.vectors.test_tracking_vectors import nonsense

CHECKOUT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("epoch_matrix.json")


@by_id(MATRIX)
def test_nonsense_in_any_place_of_what_a_row_becomes_fails(case: Case) -> None:
    """Nothing of what a vector expects is passed over."""
    assert run_case(case, DEVIATIONS).text == "ok"
    for other in nonsense(case):
        assert run_case(other, DEVIATIONS).failed, other["expect"]


@by_id(MATRIX)
def test_an_input_of_the_matrix_that_nobody_reads_is_refused(case: Case) -> None:
    """It would be a rule of the document that is passed over."""
    changed = broken(case, "input", "nonsense", value=1)

    assert "nobody reads input.nonsense" in run_case(changed, DEVIATIONS).text


def test_every_kind_of_matrix_vector_is_played_or_has_its_reason() -> None:
    """What the hub does otherwise is skipped by its kind, and told as such on the page."""
    page = (CHECKOUT / "docs" / "rules" / "epoch_matrix.md").read_text(encoding="utf-8")
    kinds = {case["kind"] for case in json.loads(FILE.read_text(encoding="utf-8"))["cases"]}

    assert {case["kind"] for case in MATRIX} == PLAYS.keys()
    assert {kind for kind in kinds - PLAYS.keys() if f"`{kind}`" not in page} == set()
    assert {kind for kind in kinds - PLAYS.keys() if not DEVIATIONS.skip_of_kind(kind)} == set()


@by_id([case for case in MATRIX if case["kind"] == "export"])
def test_another_row_is_sent_something_else(case: Case) -> None:
    """The answer follows from the matrix; it is not read from the case."""
    raised = copy.deepcopy(case)
    rows = raised["input"]["matrix"]
    rows[raised["input"]["to"]] = rows[raised["input"]["at"]]

    assert run_case(raised, DEVIATIONS).failed
