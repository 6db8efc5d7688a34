"""Each replica's state at the hub, and how old what is known of it is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from checkpoints.commit.last_poll import read_poll
from checkpoints.reading.reader import NONE_OPEN, Reader
from checkpoints.times import time_of
from streaming.config.config import Config
from streaming.core.counts.counter_keys import (
    CHANGES,
    DUPLICATES,
    KEPT,
    QUARANTINED,
    Counts,
    of_replicas,
)
from streaming.core.model import csn
from streaming.core.model.statuses import remedy_of
from streaming.core.records.quarantine_budget import KeptSum, QuarantineLimits
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.facts.names import names_of
from streaming.facts.status.recorded import RecordedFacts


@dataclass(frozen=True, slots=True)
class ReplicaSummary:
    """A replica's state at the hub; None where nothing is known yet.

    `last_conflict_epoch`, `last_stable_epoch`, `conflict_handling`: how far it has applied the
    refreshes of its last conflict. `mre_age_s`: since the first hub epoch that it has not reflected
    was committed; None: too long ago. `seen_age_s`: since its last record. `ruv_age_s`: since the
    time of its largest CSN; negative while its clock is ahead. `clock_ahead_s`: how far that was
    ahead of the time of its last record. `pending`, `waiting`: changes that are uncommitted, and
    that are committed and not eligible. `missing_opno`: the first ordinal that it has passed and
    the hub has not got. `remedy`: what to do about a replica that is stopped. `paused`: as many
    transactions as limits.open_transactions are uncommitted, so reading its topic is paused.
    `unreadable`: what Kafka refuses, where its topic may not be read. `oldest_pending`: the
    transaction of its oldest uncommitted change. `changes`: verdict -> how many were judged;
    `quarantined`: reason -> how many records; `duplicates`: how many came again. `kept_records`,
    `kept_bytes`: its records that are in quarantine now, and how many of their bytes are kept;
    `kept_ratio`: the part of `limits.quarantine_bytes` or `limits.quarantine_records` that is used.
    """

    rid: int
    name: str | None
    state: str
    remedy: str | None
    session: str | None
    epoch: int
    mre: int
    mre_age_s: float | None
    last_conflict_epoch: int
    last_stable_epoch: int
    conflict_handling: bool
    seen_at: datetime | None
    seen_age_s: float | None
    max_csn: str | None
    ruv_age_s: float | None
    clock_ahead_s: float | None
    pending: int
    waiting: int
    missing_opno: int | None
    paused: bool
    unreadable: str | None
    oldest_pending_age_s: float | None
    oldest_pending: str | None
    changes: dict[str, int]
    quarantined: dict[str, int]
    duplicates: int
    kept_records: int
    kept_bytes: int
    kept_ratio: float


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """The pending and waiting changes of all replicas; `oldest`: a transaction."""

    pending: int
    waiting: int
    oldest_age_s: float | None
    oldest: str | None


def replica_summaries(
    config: Config, reader: Reader, recorded: RecordedFacts, now_s: float
) -> tuple[ReplicaSummary, ...]:
    """Every replica that is configured or known, those first that are configured."""
    commit = reader.commit
    known = commit.state.replicas if commit else {}
    names = {**recorded.names, **names_of(config)}
    rids = dict.fromkeys([*(r.rid for r in config.replicas), *known])
    configured = {replica.rid for replica in config.replicas}
    refused = unreadable_replicas(config, reader)
    unreadable = {one.rid: refused[one.name] for one in config.replicas if one.name in refused}
    totals = _by_replica(commit.totals if commit else {})
    found = (
        _replica(
            known.get(rid, ReplicaState(rid)),
            names.get(rid),
            commit.state if commit else None,
            recorded,
            totals,
            unreadable,
            config.limits.quarantine,
            now_s,
        )
        for rid in rids
    )
    return tuple(one if one.rid in configured else replace(one, remedy=None) for one in found)


def unreadable_replicas(config: Config, reader: Reader) -> dict[str, str]:
    """Replica -> what Kafka refuses, of those whose topics a hub was last not let read."""
    poll = read_poll(reader.root)
    refused = poll.unreadable if poll else {}
    topics = {one.name: config.changes_topic(one.name) for one in config.replicas}
    return {name: refused[topic] for name, topic in topics.items() if topic in refused}


def pending_summary(replicas: Sequence[ReplicaSummary]) -> PendingSummary:
    """What is open of all replicas."""
    oldest = max(
        (one for one in replicas if one.oldest_pending_age_s is not None),
        key=lambda one: one.oldest_pending_age_s or 0,
        default=None,
    )
    return PendingSummary(
        pending=sum(one.pending for one in replicas),
        waiting=sum(one.waiting for one in replicas),
        oldest_age_s=oldest.oldest_pending_age_s if oldest else None,
        oldest=oldest.oldest_pending if oldest else None,
    )


_Totals = Mapping[int, Mapping[str, dict[str, int]]]
"""Rid -> name -> verdict or reason -> count."""


def _by_replica(totals: Counts) -> _Totals:
    found: dict[int, dict[str, dict[str, int]]] = {}
    for (name, rid, of), count in of_replicas(totals).items():
        found.setdefault(rid, {}).setdefault(name, {})[of] = count
    return found


def _replica(
    replica: ReplicaState,
    name: str | None,
    hub: HubState | None,
    recorded: RecordedFacts,
    totals: _Totals,
    unreadable: Mapping[int, str],
    quarantine: QuarantineLimits,
    now_s: float,
) -> ReplicaSummary:
    pending = recorded.opened.get((replica.rid, "pending"), NONE_OPEN)
    waiting = recorded.opened.get((replica.rid, "waiting"), NONE_OPEN)
    seen_s = replica.seen_ms / 1000 if replica.seen_ms > 0 else None
    largest = hub.largest.get(replica.rid) if hub else None
    counts = totals.get(replica.rid, {})
    kept = KeptSum(**counts.get(KEPT, {}))
    return ReplicaSummary(
        rid=replica.rid,
        name=name,
        state=replica.status_text,
        remedy=remedy_of(replica.status, replica.detail, name),
        session=replica.session.id if replica.session else None,
        epoch=replica.epoch,
        mre=replica.mre,
        mre_age_s=_mre_age_s(replica, recorded, now_s),
        last_conflict_epoch=replica.last_conflict_epoch,
        last_stable_epoch=replica.last_stable_epoch,
        conflict_handling=replica.handles_conflict,
        seen_at=time_of(replica.seen_ms) if seen_s else None,
        seen_age_s=_age_s(seen_s, now_s),
        max_csn=largest,
        ruv_age_s=_age_s(csn.time_of(largest), now_s) if largest else None,
        clock_ahead_s=max(0.0, csn.time_of(largest) - seen_s) if largest and seen_s else None,
        pending=pending.count,
        waiting=waiting.count,
        missing_opno=replica.missing_opno,
        paused=replica.rid in recorded.crowded and not replica.is_stopped,
        unreadable=unreadable.get(replica.rid),
        oldest_pending_age_s=_age_s(pending.oldest.timestamp() if pending.oldest else None, now_s),
        oldest_pending=pending.transaction,
        changes=counts.get(CHANGES, {}),
        quarantined=counts.get(QUARANTINED, {}),
        duplicates=sum(counts.get(DUPLICATES, {}).values()),
        kept_records=kept.records,
        kept_bytes=kept.bytes,
        kept_ratio=round(quarantine.used(kept), 4),
    )


def _mre_age_s(replica: ReplicaState, recorded: RecordedFacts, now_s: float) -> float | None:
    """Of a replica in a session; a level one has reflected everything."""
    behind = recorded.epochs.behind(replica.mre, (), replica.rid) if replica.session else None
    if behind is None:
        return None
    return 0.0 if behind.since_ms is None else _age_s(behind.since_ms / 1000, now_s)


def _age_s(at_s: float | None, now_s: float) -> float | None:
    return None if at_s is None else round(now_s - at_s, 3)
