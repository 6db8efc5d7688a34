"""Tracking vectors of a resync under way: its pages, its workers, and how far it is."""

from collections.abc import Callable
from enum import StrEnum

from streaming.core.model.wording import as_bytes, as_percent
from streaming.core.tracking import progress as shown
from streaming.core.tracking.incarnation import WorkKind
from streaming.core.tracking.meta import ResyncMode
from streaming.core.tracking.paging import page_rule, pages, scan_rule
from streaming.core.tracking.ranges import scanned_pages
from streaming.core.tracking.states import TrackingState
from streaming.core.tracking.work import Piece, next_pieces, next_step
from tests.vectors.outcome import VectorError
from tests.vectors.tracking import BLOCK, NO_NUMBER, Found, Input, position
from tests.vectors.words import decision


class NothingToSay(StrEnum):
    """Why a number is not shown of a resync."""

    NOT_YET = "none"
    """it cannot be said yet"""
    OVER = "over"
    """the resync is over"""


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
