"""A tracking vector is compared whole: nonsense in any place of an expectation fails the run."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.vectors.cases import DEVIATIONS, TRACKING, broken, by_id
from tests.vectors.outcome import Case, VectorError
from tests.vectors.runner import run_case
from tests.vectors.tracking_kinds import PLAYS
from tests.vectors.words import WORDS, decision, said

RUN = [case for case in TRACKING if not run_case(case, DEVIATIONS).text.startswith("skipped")]

Place = tuple[str | int, ...]
CHECKOUT = Path(__file__).parents[2]
FILE = Path(__file__).with_name("change_tracking.json")


def leaves(value: Any, path: Place) -> Iterator[tuple[Place, Any]]:  # noqa: ANN401
    """Each place of an expectation with what stands there; a list is a place of its own too."""
    match value:
        case dict():
            for name, inner in value.items():
                yield from leaves(inner, (*path, name))
        case list():
            yield path, value
            for place, inner in enumerate(value):
                yield from leaves(inner, (*path, place))
        case _:
            yield path, value


def others(value: object) -> Iterator[object]:
    """Values that are not this one."""
    match value:
        case bool():
            yield from (not value, int(value))
        case int():
            yield from (value + 1, str(value), bool(value))
        case str():
            yield from ("nonsense", "", None, 7)
        case None:
            yield from (0, "nonsense", [])
        case list():
            yield [*value, "nonsense"]
            yield value[1:] or [7]
            yield None
        case _:
            raise AssertionError(value)


def nonsense(case: Case) -> Iterator[Case]:
    """The case with another value in one place of its expectation, place after place."""
    for path, value in leaves(case["expect"], ("expect",)):
        for other in others(value):
            yield broken(case, *path, value=other)
    yield broken(case, "expect", "nonsense", value=1)
    yield broken(case, "expect", value={})


@by_id(RUN)
def test_nonsense_in_any_place_of_an_expectation_fails(case: Case) -> None:
    """Nothing of what a vector expects is passed over."""
    assert not run_case(case, DEVIATIONS).failed
    for other in nonsense(case):
        assert run_case(other, DEVIATIONS).failed, other["expect"]


@by_id(RUN)
def test_words_of_another_decision_fail(case: Case) -> None:
    """What is expected in words is compared by what it means, not only read."""
    kind = case["kind"]
    for path, value in leaves(case["expect"], ("expect",)):
        field = next(name for name in reversed(path) if isinstance(name, str))
        known = [w for w in WORDS if kind in w.kinds and field in w.fields]
        if not known or not isinstance(value, str) or not means(kind, field, value):
            continue
        for pattern, other in ((p, m) for w in known for p, m in w.means.items()):
            if other != decision(kind, field, value):
                changed = broken(case, *path, value=pattern.replace("*", ""))
                assert run_case(changed, DEVIATIONS).failed, changed["expect"]


def means(kind: str, field: str, text: str) -> bool:
    """Whether a text is one of the words; other texts are compared as they are."""
    try:
        return bool(decision(kind, field, text))
    except VectorError:
        return False


def test_a_word_that_nobody_knows_is_no_decision() -> None:
    """It is neither taken for the nearest one nor passed over."""
    with pytest.raises(VectorError, match="means nothing known"):
        decision("gpstate_row", "resync_mode", "do something")


def test_an_answer_is_said_in_the_words_of_the_file() -> None:
    """Yes, no, and that it cannot be said."""
    assert [said(answer) for answer in (True, False, None)] == ["yes", "no", "none"]


def test_every_kind_of_tracking_vector_is_played_or_has_its_reason() -> None:
    """What the hub does not have is skipped by its kind, and told as such in the table of rules."""
    page = (CHECKOUT / "docs" / "rules" / "change_tracking.md").read_text(encoding="utf-8")
    kinds = {case["kind"] for case in json.loads(FILE.read_text(encoding="utf-8"))["cases"]}

    assert {case["kind"] for case in RUN} == PLAYS.keys()
    assert {kind for kind in kinds - PLAYS.keys() if f"`{kind}`" not in page} == set()
    assert {kind for kind in kinds - PLAYS.keys() if not DEVIATIONS.skip_of_kind(kind)} == set()


@by_id(RUN)
def test_an_input_that_nobody_reads_is_refused(case: Case) -> None:
    """It would be a rule of the document that is passed over."""
    changed = broken(case, "input", "nonsense", value=1)

    assert "nobody reads input.nonsense" in run_case(changed, DEVIATIONS).text
    assert run_case(changed, DEVIATIONS).failed


def test_another_input_gives_another_end() -> None:
    """The hub's answer follows from the input; it is not read from the case."""
    case = next(case for case in RUN if case["kind"] == "compact")
    fewer = copy.deepcopy(case)
    fewer["input"]["transient"] = []

    assert run_case(fewer, DEVIATIONS).failed
