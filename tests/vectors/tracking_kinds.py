"""Each kind of tracking vector, and what plays it."""

from collections.abc import Callable

from tests.vectors import tracked_outages as outages
from tests.vectors import tracked_pages as running
from tests.vectors import tracked_tables as tables
from tests.vectors import tracking
from tests.vectors.outcome import Case, Difference, Explains
from tests.vectors.tracking import Found, Input, Play, Tracked

PLAYS: dict[str, Play] = {
    **{
        play.__name__: play
        for play in (
            outages.compact,
            outages.compaction_round,
            outages.compaction_trigger,
            outages.crash_ct_vs_xlog,
            outages.incremental_change_list,
            outages.total_blocks,
            outages.enter_change_tracking,
            outages.ct_io_error,
            outages.crash_in_resync,
            outages.state_transition,
            outages.fts_failover,
            tables.mark_page_incremental,
            tables.mirror_object_action,
            tables.object_order,
            tables.ao_catchup,
            tables.ao_complete,
            running.page_incremental_compare,
            running.page_scan_compare,
            running.scan_blocks,
            running.change_batches,
            running.worker_pick,
            running.resync_manager_loop,
            running.eta,
            running.gpstate_row,
            running.abbreviate_bytes,
        )
    },
    "mark_full_copy": tables.mark_full_copy_of,
    "change_batches_bug": running.change_batches,
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
