"""Each kind of tracking vector, and what plays it."""

from collections.abc import Callable

from tests.vectors import tracked_pages as running
from tests.vectors import tracking
from tests.vectors.outcome import Case, Difference, Explains
from tests.vectors.tracking import Found, Input, Play, Tracked

PLAYS: dict[str, Play] = {
    "compact": running.compact,
    "scan_blocks": running.scan_blocks,
    "change_batches": running.change_batches,
    "change_batches_bug": running.change_batches,
    "eta": running.eta,
    "gpstate_row": running.gpstate_row,
    "abbreviate_bytes": running.abbreviate_bytes,
}
"""Kind of case -> what plays it."""

ORIGINS: dict[str, Callable[[Input], Found]] = {"change_batches_bug": running.resumed_by_position}
"""Kind of case -> the origin's own rule, where the hub means something else."""


def is_tracking_case(case: Case) -> bool:
    """Return whether the case is one of change tracking and resync."""
    return case.get("kind") in PLAYS and case.keys() >= {"input", "expect"}


def play(case: Case) -> tuple[Tracked, list[Difference]]:
    """Ask core, and compare."""
    kind, given = case["kind"], case["input"]
    origin = ORIGINS.get(kind)
    played = Tracked(PLAYS[kind](kind, given), origin(given) if origin else {})
    return played, tracking.differences(case, played)


# -- where the hub means something else -------------------------------------------------------


def row_in_front_of_its_position(case: Case, _: Tracked) -> Explains | None:
    """A row stands behind another by its key and before it by its position."""
    if case["kind"] not in ORIGINS:
        return None
    by_key = [each["lsn"] for each in sorted(case["input"]["blocks"], key=lambda b: b["block"])]
    return (lambda _: True) if by_key != sorted(by_key) else None


def every_row_is_sent(_: Case, played: Tracked) -> str | None:
    """No page leaves a row out."""
    lost = played.found["lost_blocks"]
    return f"{lost} are on no page" if lost else None
