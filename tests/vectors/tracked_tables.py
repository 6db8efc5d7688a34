"""Tracking vectors of whole tables: their marks, their drops and creates, their catch-up."""

from streaming.core.tracking.append_only import AppendedRows, catch_up, needs_catch_up
from streaming.core.tracking.entry import ChangedRows
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
from streaming.core.tracking.marking import mark_full_copy, why_not_paged
from tests.vectors.outcome import VectorError
from tests.vectors.tracking import BLOCK, Found, Input
from tests.vectors.words import decision

PIECE = 64 * 1024
"""The bytes that the origin sends at once; here it is a parameter."""


def mark_page_incremental(kind: str, given: Input) -> Found:
    """Whether tracked rows become pages, and why not."""
    change, found = given["change"], given["tuple"]
    keys = tuple(str(number) for number in range(change["blocks"]))
    reason = why_not_paged(
        ChangedRows(str(change["pttid"]), change["ptsn"], keys),
        _incarnation(kind, found, number=found["serial"], storage=found["storage"]),
    )
    return {"mark": reason is None, "reason": reason}


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
