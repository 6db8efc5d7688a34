"""Tracking vectors of a resync: what it reads, its pages, and how far it is."""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

import pyarrow as pa

from streaming.core.model.statuses import AgreementStatus
from streaming.core.text.wording import as_bytes, as_percent
from streaming.core.tracking import progress as shown
from streaming.core.tracking.progress import ResyncMode, WorkKind
from streaming.core.tracking.resync import page_end
from streaming.stages.tracked import TRACKED_ROWS, newest
from tests.reference.pages import scanned_pages
from tests.vectors.outcome import VectorError
from tests.vectors.tracking import BLOCK, NO_NUMBER, Found, Input, position
from tests.vectors.words import decision


class NothingToSay(StrEnum):
    """Why a number is not shown of a resync."""

    NOT_YET = "none"
    """it cannot be said yet"""
    OVER = "over"
    """the resync is over"""


def compact(_: str, given: Input) -> Found:
    """The last write of each row: what a resync reads of the changelog."""
    rows = [
        {"table": _row(each), "key": str(each["block"]), "tracked": position(each["lsn"])}
        for each in given["transient"]
    ]
    found = newest([pa.Table.from_pylist(rows, TRACKED_ROWS)]).to_pylist()
    log = {tuple(row.values()): each for row, each in zip(rows, given["transient"], strict=True)}
    return {"compact": [log[tuple(one.values())] for one in found]}


def _row(record: Mapping[str, Any]) -> str:
    """The table of a row: its relation, and which of those that had its entry."""
    return json.dumps([record["rel"], record["pttid"], record["ptsn"]])


def scan_blocks(kind: str, given: Input) -> Found:
    """What a scan that goes on visits, and whether it deletes what is behind the last row."""
    if not WorkKind(decision(kind, "kind", given["kind"])).is_whole:
        raise VectorError(f"no scan: {given['kind']}")
    keys = [str(number) for number in range(given["relation_blocks"])]
    after = str(given["ckpt_block"] - 1) if given["ckpt_block"] else None
    found = list(scanned_pages("t", keys, lambda key: ((int(key),),), 3, after))
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
    left, found = sorted(blocks), list[list[int]]()
    while left:
        end = page_end(left, given["batch_size"], lambda block: block)
        found.append(left[:end])
        left = left[end:]
    return found


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


def eta(_: str, given: Input) -> Found:
    """When a resync ends; the origin writes 0 where that cannot be said."""
    end = shown.estimated_end(
        given["start"], given["now"], given["total_blocks"], given["done_blocks"]
    )
    return {"eta_epoch_seconds": 0 if end is None else end}


def gpstate_row(kind: str, given: Input) -> Found:
    """What is shown of a resync."""
    is_over = decision(kind, "dataState", given["dataState"]) == AgreementStatus.IN_SYNC.value
    eta = given["eta"] or None
    total, share = shown.progress(given["done_blocks"], given["total_blocks"], eta, is_over=is_over)
    nothing = NothingToSay.OVER if is_over else NothingToSay.NOT_YET
    return {
        "resync_mode": ResyncMode.FULL if given["full"] else ResyncMode.INCREMENTAL,
        "progress": _text(share, as_percent, NothingToSay.NOT_YET),
        "data_synced": as_bytes(given["done_blocks"] * BLOCK),
        "est_total": _text(total, lambda blocks: as_bytes(blocks * BLOCK), nothing),
        "eta": nothing if is_over else eta or nothing,
        "total_objects": _text(_number(given["total_objects"]), str, NothingToSay.NOT_YET),
        "objects_to_resync": _text(_number(given["objects_left"]), str, NothingToSay.NOT_YET),
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
