"""Tracking vectors of an outage: its logs, how it starts and ends, what a crash leaves."""

from streaming.core.tracking.entry import changed_rows, count_rows
from streaming.core.tracking.logs import FrozenLog, TrackingLogs, compacted, discard_behind, is_due
from streaming.core.tracking.meta import (
    OutageStart,
    TrackingMeta,
    after_restart,
    after_tracking_failed,
    outage_start,
)
from streaming.core.tracking.states import TrackingState, event_between
from tests.vectors.tracking import (
    BLOCK,
    NO_NUMBER,
    Found,
    Input,
    entries,
    entry,
    lsns_of,
    position,
    records,
)
from tests.vectors.words import decision

COMPACT_AFTER = 2**30 // BLOCK
"""The origin's threshold in blocks; here it is a parameter."""


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
    tables = {entry(each).table: each["pttid"] for each in given["compact"]}
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
    found = None if log is None else [entry({**each, "pttid": 0}) for each in log]
    count = count_rows(found)
    return {"blocks": NO_NUMBER if count is None else count}


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
