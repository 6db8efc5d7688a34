"""The state of the hub as of its last commit: replicas, agreements, quarantine, conflicts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from checkpoints.last_poll import read_poll
from checkpoints.reader import NONE_OPEN, OpenChanges, Reader
from checkpoints.times import time_of
from streaming.config.config import Config
from streaming.core.model.ruv import Ruv
from streaming.core.model.state import HubState, ReplicaState
from streaming.core.model.statuses import AgreementStatus, remedy_of
from streaming.facts.backlog import UNKNOWN, Backlog, OriginBacklog, backlog
from streaming.facts.conflict_counters import ConflictCounters, conflict_counters, without_counters
from streaming.facts.divergent import DivergentRow
from streaming.facts.freshness import doubt_of, freshness
from streaming.facts.lag import Lag, lags
from streaming.facts.level import unread_records
from streaming.facts.names import names_of
from streaming.facts.recorded import RecordedFacts, recorded_facts
from streaming.facts.resync import ConsumerResync, consumer_resyncs
from streaming.facts.ruvs import ruv_document, state_of
from streaming.facts.serving import serving


@dataclass(frozen=True, slots=True)
class ReplicaSummary:
    """A replica's state at the hub; None where nothing is known yet.

    `last_conflict_epoch`, `last_stable_epoch`, `conflict_handling`: how far it has applied the
    refreshes of its last conflict. `seen_age_s`: since its last record. `pending`, `waiting`:
    changes that are uncommitted, and that are committed and not eligible. `missing_opno`: the first
    ordinal that it has passed and the hub has not got. `remedy`: what to do
    about a replica that is stopped. `paused`: as many
    transactions as limits.open_transactions are uncommitted, so reading its topic is paused.
    `oldest_pending`: the transaction of its oldest uncommitted change.
    """

    rid: int
    name: str | None
    state: str
    remedy: str | None
    session: str | None
    epoch: int
    mre: int
    last_conflict_epoch: int
    last_stable_epoch: int
    conflict_handling: bool
    seen_at: datetime | None
    seen_age_s: float | None
    max_csn: str | None
    pending: int
    waiting: int
    missing_opno: int | None
    paused: bool
    oldest_pending_age_s: float | None
    oldest_pending: str | None


@dataclass(frozen=True, slots=True)
class PendingSummary:
    """The pending and waiting changes of all replicas; `oldest`: a transaction."""

    pending: int
    waiting: int
    oldest_age_s: float | None
    oldest: str | None


@dataclass(frozen=True, slots=True)
class AgreementSummary:
    """The two positions of an agreement, and how far its consumer is behind.

    `remedy`: what to do if it alone is sent nothing, and its replica is not stopped. `lag_s`: since
    the first hub epoch that it has not acknowledged. `lag_changes`: changes of others that it has
    not; `unsent_changes`: those of them that are not sent either. None: not known before its hello.
    `origins`: its lag by origin. `resync`: its consumer is away, or in resync.
    """

    name: str
    consumer: str
    state: str
    remedy: str | None
    sent_covers: int
    acked_covers: int
    lag_epochs: int
    lag_s: float | None
    lag_changes: int | None
    unsent_changes: int | None
    origins: tuple[OriginBacklog, ...]
    level: bool
    resync: ConsumerResync | None


@dataclass(frozen=True, slots=True)
class QuarantineSummary:
    """How many records are kept, over all and by reason."""

    kept: int
    by_reason: dict[str, int]


@dataclass(frozen=True, slots=True)
class ConflictSummary:
    """How many conflicts are recorded, over all and by kind."""

    total: int
    by_kind: dict[str, int]


@dataclass(frozen=True, slots=True)
class HubStatus:
    """The hub; ages in seconds, None where no batch is committed yet.

    `polled_age_s`: since a running hub last reached Kafka. `stale`: why the facts may no longer
    hold. `unread`: replica -> the records in its topic that the hub had not read at its last poll.
    `differing`: rows that a replica may hold otherwise than the hub. `unreplicated`: replica -> the
    columns that stay in its database, as table.column. `process`: the one that wrote
    last. `planned_batch`: one that is planned and not committed.
    `counts`: of the last batch; `totals`: since the state was made.
    """

    hub: str
    state: Path
    process: str
    committed_at: datetime | None
    age_s: float | None
    polled_age_s: float | None
    stale: str | None
    batch: int
    planned_batch: int | None
    hub_epoch: int
    generation: int | None
    config_version: int | None
    ruvs: dict[str, Ruv]
    replicas: tuple[ReplicaSummary, ...]
    pending: PendingSummary
    agreements: tuple[AgreementSummary, ...]
    unread: dict[str, int]
    quarantine: QuarantineSummary
    differing: tuple[DivergentRow, ...]
    unreplicated: dict[str, tuple[str, ...]]
    conflicts: ConflictSummary
    counters: tuple[ConflictCounters, ...]
    counts: dict[str, int]
    totals: dict[str, int]

    def document(self) -> dict[str, Any]:
        """The facts as one JSON document, in the order of the fields; `ruvs` as text."""
        found: dict[str, Any] = {}
        for name, value in asdict(replace(self, ruvs={})).items():
            found |= ruv_document(self.ruvs) if name == "ruvs" else {name: value}
        return found


def hub_status(
    config: Config, reader: Reader, now_s: float, recorded: RecordedFacts | None = None
) -> HubStatus:
    """The status of the hub as of the reader's commit; ages are counted up to `now_s`.

    `recorded`: what the tables say, if that is at hand; a hub at work has it in memory.
    """
    recorded = recorded or recorded_facts(config, reader)
    commit = reader.commit
    state = commit.state if commit else None
    quarantine, conflicts = dict(recorded.quarantine), dict(recorded.conflicts)
    replicas = _replicas(config, reader, recorded, now_s)
    counts, totals = (commit.counts, commit.totals) if commit else ({}, {})
    age, poll = freshness(reader, now_s), read_poll(reader.root)
    return HubStatus(
        hub=config.hub.name,
        state=config.hub.state,
        process=reader.hub,
        committed_at=time_of(commit.at_ms) if commit else None,
        age_s=round(now_s - commit.at_ms / 1000, 3) if commit else None,
        polled_age_s=age.polled_age_s,
        stale=doubt_of(age),
        batch=reader.batch,
        planned_batch=reader.planned,
        hub_epoch=state.hub_epoch if state else 0,
        generation=state.generation if state else None,
        config_version=commit.config_version if commit else None,
        ruvs=dict(state.ruvs) if state else {},
        replicas=replicas,
        pending=_pending(replicas),
        agreements=_agreements(config, reader, recorded, now_s),
        unread=unread_records(serving(config, reader), reader, poll.ends) if poll else {},
        quarantine=QuarantineSummary(sum(quarantine.values()), quarantine),
        differing=recorded.differing,
        unreplicated=dict(recorded.unreplicated),
        conflicts=ConflictSummary(sum(conflicts.values()), conflicts),
        counters=conflict_counters(totals, names_of(config)),
        counts=without_counters(counts),
        totals=without_counters(totals),
    )


def _replicas(
    config: Config, reader: Reader, recorded: RecordedFacts, now_s: float
) -> tuple[ReplicaSummary, ...]:
    state = reader.commit.state if reader.commit else None
    names = {**recorded.names, **names_of(config)}
    known, largest = (state.replicas, state.largest) if state else ({}, {})
    rids = dict.fromkeys([*(r.rid for r in config.replicas), *known])
    full = recorded.crowded
    paused = {rid for rid in full if rid not in known or not known[rid].is_stopped}
    configured = {replica.rid for replica in config.replicas}
    found = (
        _replica(known.get(rid, ReplicaState(rid)), names, largest, recorded.opened, paused, now_s)
        for rid in rids
    )
    return tuple(one if one.rid in configured else replace(one, remedy=None) for one in found)


def _replica(
    replica: ReplicaState,
    names: Mapping[int, str],
    largest: Mapping[int, str],
    opened: Mapping[tuple[int, str], OpenChanges],
    paused: Collection[int],
    now_s: float,
) -> ReplicaSummary:
    pending = opened.get((replica.rid, "pending"), NONE_OPEN)
    waiting = opened.get((replica.rid, "waiting"), NONE_OPEN)
    seen = replica.seen_ms > 0
    oldest = pending.oldest
    return ReplicaSummary(
        rid=replica.rid,
        name=names.get(replica.rid),
        state=replica.status_text,
        remedy=remedy_of(replica.status, replica.detail, names.get(replica.rid)),
        session=replica.session.id if replica.session else None,
        epoch=replica.epoch,
        mre=replica.mre,
        last_conflict_epoch=replica.last_conflict_epoch,
        last_stable_epoch=replica.last_stable_epoch,
        conflict_handling=replica.handles_conflict,
        seen_at=time_of(replica.seen_ms) if seen else None,
        seen_age_s=round(now_s - replica.seen_ms / 1000, 3) if seen else None,
        max_csn=largest.get(replica.rid),
        pending=pending.count,
        waiting=waiting.count,
        missing_opno=replica.missing_opno,
        paused=replica.rid in paused,
        oldest_pending_age_s=None if oldest is None else round(now_s - oldest.timestamp(), 3),
        oldest_pending=pending.transaction,
    )


def _pending(replicas: Sequence[ReplicaSummary]) -> PendingSummary:
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


def _agreements(
    config: Config, reader: Reader, recorded: RecordedFacts, now_s: float
) -> tuple[AgreementSummary, ...]:
    hub = reader.commit.state if reader.commit else None
    configured = {one.name: one for one in config.agreements}
    resyncs = {one.agreement: one for one in consumer_resyncs(config, reader, now_s)}
    return tuple(
        _agreement(
            lag,
            hub,
            backlog(config, hub, configured[lag.agreement], recorded.epochs, now_s),
            resyncs.get(lag.agreement),
        )
        for lag in lags(config, reader)
    ) + _retired(config, hub, recorded)


def _agreement(
    lag: Lag, hub: HubState | None, behind: Backlog, resync: ConsumerResync | None
) -> AgreementSummary:
    return AgreementSummary(
        name=lag.agreement,
        consumer=lag.consumer,
        state=lag.state,
        remedy=_remedy(lag, hub, resync),
        sent_covers=state_of(hub, lag.agreement).sent_covers if hub else 0,
        acked_covers=lag.acked_covers,
        lag_epochs=lag.epochs,
        lag_s=behind.lag_s,
        lag_changes=behind.changes,
        unsent_changes=behind.unsent,
        origins=behind.origins,
        level=lag.is_level,
        resync=resync,
    )


def _remedy(lag: Lag, hub: HubState | None, resync: ConsumerResync | None) -> str | None:
    known = state_of(hub, lag.agreement) if hub else None
    if known is None or known.status not in _ALONE or (resync and resync.is_ordered):
        return None
    return remedy_of(known.status, known.detail, agreement=lag.agreement)


_ALONE = (AgreementStatus.REFUSED, AgreementStatus.CHANGE_TRACKING)
"""The statuses in which an agreement is sent nothing while its consumer's topic is read."""


def _retired(
    config: Config, hub: HubState | None, recorded: RecordedFacts
) -> tuple[AgreementSummary, ...]:
    """The agreements that the hub keeps and that are not configured any more."""
    configured = {agreement.name for agreement in config.agreements}
    kept = [one for name, one in hub.agreements.items() if name not in configured] if hub else []
    return tuple(
        AgreementSummary(
            name=one.name,
            consumer=recorded.names.get(one.consumer, str(one.consumer)),
            state=one.status_text,
            remedy=None,
            sent_covers=one.sent_covers,
            acked_covers=one.acked_covers,
            lag_epochs=hub.hub_epoch - one.acked_covers if hub else 0,
            lag_s=UNKNOWN.lag_s,
            lag_changes=UNKNOWN.changes,
            unsent_changes=UNKNOWN.unsent,
            origins=UNKNOWN.origins,
            level=False,
            resync=None,
        )
        for one in kept
    )
