"""What a page is told as hub epochs pass: what each brought, and how everybody stands."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint
from checkpoints.query import records
from checkpoints.times import time_of
from streaming.core.counts.counter_keys import of_hub
from streaming.facts.consumers.divergent import DivergenceKind
from streaming.facts.live import LiveFacts

CONFLICTS_MAX = 20
"""How many conflicts of a hub epoch are told in full; all of them are counted."""
IMAGE_MAX = 10_000
"""A longer row image is left out."""

_IMAGES = ("before", "after", "winner_image")


def epoch_event(checkpoint: Checkpoint, conflicts: pa.Table) -> dict[str, Any]:
    """What a hub epoch brought: counts, and its first conflicts with both sides.

    A conflict has the fields of `slackwater conflicts list --json`; `omitted` names the images that
    are too long.
    """
    return {
        "hub_epoch": checkpoint.state.hub_epoch,
        "batch": checkpoint.state.batch,
        "at": time_of(checkpoint.at_ms),
        "counts": of_hub(checkpoint.counts),
        "conflicts": {
            "count": conflicts.num_rows,
            "first": [conflict_document(row) for row in records(conflicts.slice(0, CONFLICTS_MAX))],
        },
    }


def state_event(found: LiveFacts) -> dict[str, Any]:
    """How the hub, its agreements and its replicas stand now."""
    status = found.status
    agreements = (
        asdict(one) | {"time_to_level_s": _finite(found.time_to_level_s.get(one.name))}
        for one in status.agreements
    )
    return {
        "hub": status.hub,
        "hub_epoch": status.hub_epoch,
        "batch": status.batch,
        "readiness": asdict(found.readiness),
        "agreements": list(agreements),
        "replicas": [asdict(one) for one in status.replicas],
        "unheard": [one.text for one in status.unheard],
        "unread": status.unread,
        "pending": asdict(status.pending),
        "quarantine": asdict(status.quarantine),
        "uncarried": Counter(
            one.replica for one in status.differing if one.kind is DivergenceKind.UNCARRIED
        ),
        "conflicts": {"total": status.conflicts.total, "by_kind": status.conflicts.by_kind},
        "totals": status.totals,
    }


def conflict_document(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of `conflicts`; `omitted` names the images that are too long and left out."""
    long = [name for name in _IMAGES if len(row[name] or "") > IMAGE_MAX]
    return {**row, **dict.fromkeys(long), "omitted": long}


def _finite(seconds: float | None) -> float | None:
    """JSON has no infinity: None also where it never comes."""
    return seconds if seconds is not None and seconds < float("inf") else None
