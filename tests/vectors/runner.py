"""Runs the cases of any file of the known kinds, a line each."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from tests.vectors import epochs, functions, matrix_kinds, sessions, shapes, tracking_kinds
from tests.vectors.deviations import Deviations, Rule
from tests.vectors.outcome import Case, Difference, Explains, Outcome, VectorError
from tests.vectors.reading import reading, unread
from tests.vectors.tracking import Tracked

P = TypeVar("P")


@dataclass(frozen=True, slots=True)
class Kind(Generic[P]):
    """A kind of case: how it is told, run and compared, and the names that rules may use."""

    name: str
    matches: Callable[[Case], bool]
    functions: Callable[[Case], set[str]]
    play: Callable[[Case, Deviations], tuple[P, list[Difference]]]
    shapes: dict[str, Callable[[Case, P], Explains | None]]
    laws: dict[str, Callable[[Case, P], str | None]]


def _play_session(case: Case, _: Deviations) -> tuple[sessions.Played, list[Difference]]:
    played = sessions.play(case)
    return played, sessions.differences(case, played)


def _play_epochs(case: Case, deviations: Deviations) -> tuple[epochs.Played, list[Difference]]:
    played = epochs.play(case, deviations.counters)
    return played, list(played.differences)


def _play_tracking(case: Case, _: Deviations) -> tuple[Tracked, list[Difference]]:
    return tracking_kinds.play(case)


def _play_matrix(case: Case, _: Deviations) -> tuple[Tracked, list[Difference]]:
    return matrix_kinds.play(case)


def _named(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {function.__name__: function for function in functions}


KINDS: tuple[Kind[Any], ...] = (
    Kind(
        "session",
        sessions.is_session,
        lambda _: set(),
        _play_session,
        _named(
            sessions.start_at_purge_edge,
            sessions.hole_behind_another_start,
            sessions.neighbour_beyond_stop,
        ),
        _named(sessions.gapless),
    ),
    Kind(
        "epoch",
        epochs.is_epoch_case,
        functions.functions,
        _play_epochs,
        _named(
            shapes.insert_meets_unseen_delete,
            shapes.insert_follows_rejected_write,
            shapes.write_builds_on_rejected_transaction,
            shapes.dependent_is_counted,
            shapes.delete_meets_unseen_delete,
            shapes.update_follows_winning_delete,
            shapes.answer_meets_newer_write,
            shapes.insert_over_own_winner,
            shapes.update_does_not_raise_its_column,
            shapes.crossing_writes_are_told,
            shapes.crossing_writes_of_no_function,
            shapes.write_in_the_epochs_that_bits_hide,
            shapes.row_written_twice_in_a_transaction,
        ),
        _named(shapes.converged),
    ),
    Kind(
        "tracking",
        tracking_kinds.is_tracking_case,
        lambda _: set(),
        _play_tracking,
        _named(tracking_kinds.row_in_front_of_its_position),
        _named(tracking_kinds.every_row_is_sent),
    ),
    Kind("matrix", matrix_kinds.is_matrix_case, lambda _: set(), _play_matrix, {}, {}),
)


def run_file(path: Path, deviations: Deviations) -> Iterator[Outcome]:
    """The outcomes of a file's cases; a file that holds none is a failed outcome itself."""
    try:
        cases = json.loads(path.read_text())["cases"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        yield Outcome(str(path), f"is not a file of vectors: {error!r}", failed=True)
        return
    if not cases:
        yield Outcome(str(path), "is a file of vectors without a case", failed=True)
    for number, case in enumerate(cases, start=1):
        yield run_case(case, deviations, f"{path.name} case {number}")


def run_case(
    case: Case,
    deviations: Deviations,
    default_id: str = "case",
    kinds: tuple[Kind[Any], ...] = KINDS,
) -> Outcome:
    """One case's outcome, whatever it does."""
    name = default_id
    try:
        name = str(case.get("id", default_id))
        return Outcome(name, *_outcome(case, deviations, kinds))
    except Exception as error:  # noqa: BLE001  whatever a case raises is its outcome
        told = " ".join(str(error).split())
        return Outcome(name, f"raised {type(error).__name__}: {told}", failed=True)


def _outcome(case: Case, deviations: Deviations, kinds: tuple[Kind[Any], ...]) -> tuple[str, bool]:
    """The text of a case's line, and whether it failed."""
    if skip := deviations.skip_of_kind(case.get("kind")):
        return f"skipped, kind {case['kind']}: {skip.reason}", False
    kind = next((kind for kind in kinds if kind.matches(case)), None)
    if kind is None:
        raise VectorError(f"a case of an unknown kind, with the fields {', '.join(sorted(case))}")
    read = reading(case)
    names = kind.functions(read)
    if skipped := _skipped(case, names, deviations):
        return skipped, False
    played, differences = kind.play(read, deviations)
    if left := sorted({path for path in unread(read) if not deviations.is_ignored(path)}):
        raise VectorError(f"nobody reads {', '.join(left)}")
    if not differences:
        return "ok", False
    return _deviation(kind, read, played, differences, deviations.for_case(kind.name, names))


def _skipped(case: Case, names: set[str], deviations: Deviations) -> str | None:
    """Why the case is not run, or None; VectorError for a function that nobody knows."""
    reasons = list[str]()
    for name in sorted(names):
        if skip := deviations.skip_of_function(name):
            reasons.append(f"{name}: {skip.reason}")
        elif not functions.is_known(name):
            raise VectorError(f"unknown conflict function {name}")
    for step in case.get("steps", []):
        if skip := deviations.skip_of_op(step.get("op")):
            reasons.append(f"{skip.op}: {skip.reason}")
    return f"skipped, {reasons[0]}" if reasons else None


def _deviation(
    kind: Kind[P], case: Case, played: P, differences: list[Difference], rules: tuple[Rule, ...]
) -> tuple[str, bool]:
    """A difference that rules account for, where their laws hold; or the difference."""
    explains = {rule: kind.shapes[rule.shape](case, played) for rule in rules}
    used = set[Rule]()
    for difference in differences:
        rule = next((r for r, explain in explains.items() if explain and explain(difference)), None)
        if rule is None or not difference.is_origins:
            return "; ".join(dict.fromkeys(each.text for each in differences)), True
        used.add(rule)
    names = " and ".join(rule.name for rule in rules if rule in used)
    broken = [why for rule in used if (why := kind.laws[rule.law](case, played)) is not None]
    if broken:
        return f"differs by rule {names}, but its law does not hold: {'; '.join(broken)}", True
    return f"differs by rule {names}, law holds", False
