"""Each kind of tracking vector, asked of the function of core that decides it."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from streaming.core.model.wording import as_bytes, as_percent
from streaming.core.tracking import progress as shown
from streaming.core.tracking.append_only import AppendedRows, catch_up, needs_catch_up
from streaming.core.tracking.entry import ChangedRows, changed_rows, count_rows
from streaming.core.tracking.incarnation import (
    AtConsumer,
    AtHub,
    TableAction,
    TableIncarnation,
    WorkKind,
    action_on,
    after_action,
    steps,
)
from streaming.core.tracking.logs import (
    FrozenLog,
    TrackingLogs,
    compacted,
    discard_behind,
    is_due,
)
from streaming.core.tracking.marking import mark_full_copy, why_not_paged
from streaming.core.tracking.meta import (
    OutageStart,
    ResyncMode,
    TrackingMeta,
    after_restart,
    after_tracking_failed,
    outage_start,
)
from streaming.core.tracking.paging import page_rule, pages, scan_rule
from streaming.core.tracking.ranges import scanned_pages
from streaming.core.tracking.states import TrackingState, event_between
from streaming.core.tracking.work import Piece, next_pieces, next_step
from tests.vectors import tracking
from tests.vectors.outcome import Case, Difference, Explains, VectorError
from tests.vectors.tracking import Found, Play, Tracked, entries, lsns_of, position, records
from tests.vectors.words import decision

BLOCK = 32 * 1024
PIECE = 64 * 1024
COMPACT_AFTER = 2**30 // BLOCK
"""The origin's sizes in bytes, and its threshold in blocks; here all of them are parameters."""
NO_NUMBER = -1
"""What the origin counts where it cannot."""

Input = Mapping[str, Any]


class NothingToSay(StrEnum):
    """Why a number is not shown of a resync."""

    NOT_YET = "none"
    """it cannot be said yet"""
    OVER = "over"
    """the resync is over"""


def compact(_: str, given: Input) -> Found:
    """A frozen log becomes the compact one."""
    logs = TrackingLogs(transient=FrozenLog(entries(given["transient"])))
    lsns = lsns_of(given["transient"])
    return {"compact": records(compacted(logs).compact or (), lsns)}


def compaction_round(_: str, given: Input) -> Found:
    """All logs become the compact one; what stands behind `upto_lsn` is discarded."""
    files = given["files"]
    frozen = files["transient"]
    upto = given.get("upto_lsn")
    bound = None if upto is None else position(upto)
    is_bound_to_frozen = frozen is not None
    before = TrackingLogs(
        entries(files["full"]),
        FrozenLog(entries(frozen), bound) if is_bound_to_frozen else None,
        entries(files["compact"]) if files["compact"] is not None else None,
    )
    after = compacted(before, None if is_bound_to_frozen else bound)
    lsns = lsns_of(*files.values())
    return {
        "files": {
            "full": records(after.full, lsns) or None,
            "transient": records(after.transient.entries, lsns) if after.transient else None,
            "compact": None if after.compact is None else records(after.compact, lsns),
        }
    }


def compaction_trigger(_: str, given: Input) -> Found:
    """Whether a log is frozen now."""
    due = is_due(
        given["buffers_added_since_compaction"],
        COMPACT_AFTER,
        is_running=given["compaction_in_progress"],
        has_transient=given["transient_exists"],
    )
    return {f"rename_{given['log']}_to_transient": due}


def crash_ct_vs_xlog(_: str, given: Input) -> Found:
    """What is discarded of a log that is ahead of what was committed."""
    last, committed = given["last_lsn_in_full_log"], given["last_xlog_lsn_on_disk"]
    behind = discard_behind(None if last is None else position(last), position(committed))
    return {"make_transient_and_discard_above": behind and behind.hub_epoch}


def incremental_change_list(_: str, given: Input) -> Found:
    """The changed rows of each table."""
    tables = {tracking.entry(each).table: each["pttid"] for each in given["compact"]}
    return {
        "rows": [
            {
                "pttid": tables[rows.table],
                "ptsn": rows.incarnation,
                "changed_blocks": len(rows.keys),
            }
            for rows in changed_rows(entries(given["compact"]))
        ]
    }


def total_blocks(_: str, given: Input) -> Found:
    """How many rows are tracked: blocks are counted by relation, not by catalogue entry."""
    log = given["compact"]
    found = None if log is None else [tracking.entry({**each, "pttid": 0}) for each in log]
    count = count_rows(found)
    return {"blocks": NO_NUMBER if count is None else count}


def mark_page_incremental(kind: str, given: Input) -> Found:
    """Whether tracked rows become pages, and why not."""
    change, found = given["change"], given["tuple"]
    keys = tuple(str(number) for number in range(change["blocks"]))
    reason = why_not_paged(
        ChangedRows(str(change["pttid"]), change["ptsn"], keys),
        _incarnation(kind, found, number=found["serial"], storage=found["storage"]),
    )
    return {"mark": reason is None, "reason": reason}


def _incarnation(
    kind: str, given: Input, number: int = 1, storage: str | None = None
) -> TableIncarnation:
    work = decision(kind, "sync", given["sync"]) if "sync" in given else "none"
    return TableIncarnation(
        "t",
        number,
        AtHub(decision(kind, "state", given["state"])),
        AtConsumer(decision(kind, "mirror", given["mirror"])),
        is_append_only=storage == "AppendOnly",
        work=None if work == "none" else WorkKind(work),
    )


def page_incremental_compare(_: str, given: Input) -> Found:
    """What a page does with a tracked row; a decision is all there is, nothing is logged beside."""
    is_there = given.get("block", 0) < given.get("relation_blocks", 1)
    row = position(given["page_lsn"]) if is_there else None
    return {"action": page_rule(position(given["ct_lsn"]), row), "log_mismatch": False}


def page_scan_compare(_: str, given: Input) -> Found:
    """What a bounded scan does with a row."""
    restart = position(given["ckpt_lsn"]) if given["ckpt_lsn"] else None
    end = position(given["end_resync_lsn"])
    return {"action": scan_rule(position(given["page_lsn"]), restart, end)}


def scan_blocks(kind: str, given: Input) -> Found:
    """What a scan that goes on visits, and whether it deletes what is behind the last row."""
    if WorkKind(decision(kind, "kind", given["kind"])) is not WorkKind.SCAN:
        raise VectorError(f"a scan of the unknown kind {given['kind']}")
    keys = [str(number) for number in range(given["relation_blocks"])]
    after = str(given["ckpt_block"] - 1) if given["ckpt_block"] else None
    found = list(scanned_pages("t", keys, lambda key: ((int(key),),), page_rows=3, after=after))
    visited = [int(key) for page in found for key in page.keys]
    return {
        "blocks_visited": visited,
        "blocks_reported": len(visited),
        "truncate_mirror_to": found[-1].range.to is None,
    }


def change_batches(_: str, given: Input) -> Found:
    """The pages of tracked rows."""
    found = _pages(given)
    sent = [block for page in found for block in page]
    everything = {each["block"] for each in given["blocks"]}
    return {
        "batches": found,
        "all_blocks_sent": everything == set(sent),
        "lost_blocks": sorted(everything - set(sent)),
    }


def _pages(given: Input) -> list[list[int]]:
    blocks = [each["block"] for each in given["blocks"]]
    return [list(page) for page in pages(blocks, given["batch_size"], lambda block: block)]


def resumed_by_position(given: Input) -> Found:
    """What the origin sends where it goes on with the position of the first row that is not sent.

    It sorts by block and takes one more than a batch holds, whose position is where it goes on.
    """
    size, left = given["batch_size"], sorted(given["blocks"], key=lambda each: each["block"])
    everything, found = {each["block"] for each in left}, list[list[int]]()
    while left:
        found.append([each["block"] for each in left[:size]])
        begin = left[size]["lsn"] if len(left) > size else None
        left = [each for each in left[size:] if begin is not None and each["lsn"] >= begin]
    sent = {block for batch in found for block in batch}
    return {"batches": found, "lost_blocks": sorted(everything - sent)}


def worker_pick(kind: str, given: Input) -> Found:
    """What a worker takes: one piece alone, or a group of tables' pages."""
    waiting = tuple(
        Piece(
            str(place),
            1,
            WorkKind(decision(kind, "kind", each["kind"])),
            each["changed_pages"],
        )
        for place, each in enumerate(given["waiting"])
    )
    taken = next_pieces(waiting, given["limit_pages"])
    if not taken:
        return {"single": None, "page_group": None}
    if taken[0].kind is WorkKind.PAGE:
        return {"page_group": len(taken)}
    return {"single": int(taken[0].table)}


def ao_catchup(kind: str, given: Input) -> Found:
    """What an append-only table lacks, in pieces."""
    rows = AppendedRows(given["loss_eof"], given["new_eof"], BLOCK)
    if not needs_catch_up(_incarnation(kind, given, storage="AppendOnly"), rows):
        return {"catchup": False}
    return {
        "catchup": True,
        "blocks_added_to_total": rows.to_count,
        "blocks_reported_done": rows.counted_when_done,
        "writes": [{"offset": one.offset, "length": one.rows} for one in catch_up(rows, PIECE)],
        "loss_eof_after": rows.completed(given["new_eof"]).delivered,
    }


def ao_complete(_: str, given: Input) -> Found:
    """An append-only table that was appended to while it was copied."""
    rows = AppendedRows(given["loss_eof"], given["current_new_eof"])
    after = rows.completed(given["copied_new_eof"])
    return {"loss_eof_after": after.delivered, "still_needs_catchup": after.is_behind}


def mirror_object_action(kind: str, given: Input) -> Found:
    """What is done to a table as a whole, and what it is then."""
    before = _incarnation(kind, given)
    after = after_action(before)
    return {
        "action": action_on(before),
        "mirror_after": after.at_consumer,
        "entry_after": after.at_hub,
    }


def object_order(_: str, given: Input) -> Found:
    """In which order tables are dropped and created."""
    both = [
        TableIncarnation(level, number, *what)
        for level in sorted(given["levels"])
        for number, what in (
            (2, (AtHub.PRESENT, AtConsumer.MISSING)),
            (1, (AtHub.DROPPING, AtConsumer.DROP_REMAINS)),
        )
    ]
    found = steps(both, given["levels"])
    drops = [step.action is TableAction.DROP for step in found]
    if drops != sorted(drops, reverse=True):
        raise VectorError("a table was created before all were dropped")
    return {
        "drop_order": [s.incarnation.table for s in found if s.action is TableAction.DROP],
        "create_order": [s.incarnation.table for s in found if s.action is TableAction.CREATE],
    }


def mark_full_copy_of(kind: str, given: Input) -> Found:
    """What a full copy makes of a table."""
    before = _incarnation(kind, given)
    after = mark_full_copy(before)
    return {
        "mirror": after.at_consumer,
        "sync": after.work,
        "entry": after.at_hub,
        "skip": after == before,
    }


def enter_change_tracking(_: str, given: Input) -> Found:
    """How an outage starts."""
    meta = given["meta"]
    return _started(
        outage_start(
            TrackingMeta(
                is_full=meta["full_resync"],
                is_marked=meta["resync_transition_completed"],
                is_finished=meta["insync_transition_completed"],
            )
        )
    )


def ct_io_error(_: str, __: Input) -> Found:
    """What follows where a tracked row cannot be written, whichever log it is of."""
    return _started(after_tracking_failed())


def _started(start: OutageStart) -> Found:
    return {
        "logs": start.keeps_logs,
        "meta": start,
        "tracking": start.tracks,
        "next_resync": start.next_resync,
    }


def crash_in_resync(_: str, given: Input) -> Found:
    """How a hub goes on that died within a resync."""
    end = given["end_resync_lsn"]
    meta = TrackingMeta(
        position(end) if end else None,
        is_full=given["full"],
        is_marked=given["resync_transition_completed"],
    )
    restart = after_restart(meta)
    stays = restart.state is TrackingState.RESYNC
    return {
        "stay_in" if stays else "go_back_to": restart.state,
        "then": restart.steps,
        "tracking": restart.tracks,
    }


def state_transition(kind: str, given: Input) -> Found:
    """Whether there is such a move, and what makes it."""
    before, after = (TrackingState(decision(kind, f, given[f])) for f in ("from", "to"))
    event = event_between(before, after)
    return {"allowed": event is not None, "event": event}


def fts_failover(kind: str, given: Input) -> Found:
    """Whether a consumer may take the place of a supplier that is gone."""
    pair = TrackingState(decision(kind, "pair", given["pair"]))
    lost, there = (decision(kind, f, given[f]) == "yes" for f in ("primary", "mirror"))
    return {"promote_mirror": not lost and there and pair.is_complete}


def resync_manager_loop(_: str, given: Input) -> Found:
    """What a resync does next."""
    step = next_step(
        has_table=given["scan_returned_entry"],
        in_queue=given["in_flight"],
        open_appends=given["ao_transactions_open"],
    )
    return {"next": step}


def eta(_: str, given: Input) -> Found:
    """When a resync ends; the origin writes 0 where that cannot be said."""
    end = shown.estimated_end(
        given["start"], given["now"], given["total_blocks"], given["done_blocks"]
    )
    return {"eta_epoch_seconds": 0 if end is None else end}


def gpstate_row(kind: str, given: Input) -> Found:
    """What is shown of a resync."""
    is_over = decision(kind, "dataState", given["dataState"]) == TrackingState.IN_SYNC.value
    found = shown.progress(
        ResyncMode.FULL if given["full"] else ResyncMode.INCREMENTAL,
        is_over=is_over,
        done=given["done_blocks"],
        total=given["total_blocks"],
        estimated_end_s=given["eta"] or None,
        objects=_number(given["total_objects"]),
        objects_left=_number(given["objects_left"]),
    )
    nothing = NothingToSay.OVER if is_over else NothingToSay.NOT_YET
    return {
        "resync_mode": found.mode,
        "progress": _text(found.percent, as_percent, NothingToSay.NOT_YET),
        "data_synced": as_bytes(found.done * BLOCK),
        "est_total": _text(found.total, lambda blocks: as_bytes(blocks * BLOCK), nothing),
        "eta": found.estimated_end_s or nothing,
        "total_objects": _text(found.objects, str, NothingToSay.NOT_YET),
        "objects_to_resync": _text(found.objects_left, str, NothingToSay.NOT_YET),
    }


def _number(count: int) -> int | None:
    return None if count == NO_NUMBER else count


def _text(
    value: int | None, write: Callable[[int], str], otherwise: NothingToSay
) -> str | NothingToSay:
    return otherwise if value is None else write(value)


def abbreviate_bytes(_: str, given: Input) -> Found:
    """A size as text."""
    return {"text": as_bytes(given["bytes"])}


PLAYS: dict[str, Play] = {
    **{
        play.__name__: play
        for play in (
            *(compact, compaction_round, compaction_trigger, crash_ct_vs_xlog),
            *(incremental_change_list, total_blocks, mark_page_incremental),
            *(page_incremental_compare, page_scan_compare, scan_blocks, change_batches),
            *(worker_pick, ao_catchup, ao_complete, mirror_object_action, object_order),
            *(enter_change_tracking, ct_io_error, crash_in_resync, state_transition),
            *(fts_failover, resync_manager_loop, eta, gpstate_row, abbreviate_bytes),
        )
    },
    "mark_full_copy": mark_full_copy_of,
    "change_batches_bug": change_batches,
}
"""Kind of case -> what plays it."""

ORIGINS: dict[str, Callable[[Input], Found]] = {"change_batches_bug": resumed_by_position}
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
