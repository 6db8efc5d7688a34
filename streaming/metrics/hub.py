"""The metrics of a hub, from what it says of itself."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from itertools import product
from statistics import fmean

from checkpoints.format_number import FORMAT
from streaming.core.batch.counters import REFRESH
from streaming.core.conflict.judge import ConflictKind, Verdict
from streaming.core.delivery.due import HeldReason
from streaming.core.model.statuses import AgreementStatus, ReplicaStatus
from streaming.core.records.record import WIRE_VERSIONS, Reason
from streaming.facts.consumers.divergent import DivergenceKind
from streaming.facts.consumers.resync import ConsumerResync
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.live import LiveFacts
from streaming.facts.status.agreements import AgreementSummary
from streaming.facts.status.conflict_counters import ConflictCount
from streaming.facts.status.replicas import ReplicaSummary
from streaming.facts.versions import versions
from streaming.metrics import agreement_metrics as a
from streaming.metrics import catalogue as c
from streaming.metrics.exposition import Sample
from streaming.metrics.metric import Metric

ZEROED_MAX = 1_000
"""Up to so many series of conflicts begin at 0: `increase` does not see the first one otherwise."""


@cache
def _build() -> tuple[str, ...]:
    """The values of the labels of `slackwater_build_info`."""
    found = versions()
    return found.slackwater, found.python, found.spark, found.delta


def samples(found: LiveFacts | None, *, stands_by: bool = False) -> Iterator[Sample]:
    """Every value of a hub at work, histograms apart; None: it is starting, or stands by."""
    yield c.BUILD_INFO, _build(), 1
    yield c.WIRE_VERSION, (), max(WIRE_VERSIONS)
    yield c.FORMAT_VERSION, (), FORMAT
    yield c.READY, (), stands_by or (found is not None and found.readiness.ready)
    if found is None:
        return
    yield from _hub(found)
    yield from _input(found)
    yield from _conflicts(found)
    for agreement in found.status.agreements:
        yield from _agreement(found, agreement)
    for replica in found.status.replicas:
        yield from _replica(found, replica)
    yield from _storage(found)


def _hub(found: LiveFacts) -> Iterator[Sample]:
    status, checkpoint = found.status, found.checkpoint
    under_way = found.readiness.under_way
    yield c.CONFIG_VERSION, (), checkpoint.config_version
    yield c.HUB_EPOCH, (), status.hub_epoch
    yield c.GENERATION, (), checkpoint.state.generation
    yield c.BATCHES, (), status.batch
    yield c.SLOW_BATCHES, (), found.slow_batches
    yield c.UNDER_WAY, (), under_way.seconds if under_way else 0
    yield c.LAST_COMMIT, (), checkpoint.at_ms / 1_000
    if found.polled_s is not None:
        yield c.LAST_POLL, (), found.polled_s
    yield c.HUBS_SEEN, (), found.hubs_seen
    yield c.WINDOW_ROWS, (), found.window_rows
    yield c.ROWS_LAG, (), status.hub_epoch - found.rows_epoch


def _input(found: LiveFacts) -> Iterator[Sample]:
    for name, topic in found.topics.items():
        yield c.RECORDS_READ, (name,), found.checkpoint.offsets.get(topic, 0)
        yield c.UNREAD, (name,), found.status.unread.get(name, 0)
    if found.files is not None:  # then the tables were read
        for reason in Reason:
            yield c.QUARANTINE, (reason,), found.status.quarantine.by_reason.get(reason, 0)
    behind = [found.status.unread.get(name, 0) for name in found.topics] or [0]
    for statistic, of in (("avg", fmean), ("max", max), ("min", min)):
        yield c.KAFKA_BEHIND, (statistic,), of(behind)
    yield c.UNKNOWN_TOPICS, (), len(found.status.unknown_topics)
    yield c.PACKET_PROBLEMS, (), len(found.status.packets)


def _conflicts(found: LiveFacts) -> Iterator[Sample]:
    status = found.status
    counts = {(one.kind, one.function, one.table, one.replica): one.count for one in _counts(found)}
    for of, count in counts.items():
        yield c.CONFLICTS, of, count
    sent = {(of.replica, of.table): of.counters.get(REFRESH, 0) for of in status.counters}
    for where, count in ({(of[3], of[2]): 0 for of in counts} | sent).items():
        yield c.REFRESHES, where, count
    differing = Counter((one.replica, one.kind) for one in status.differing)
    for replica, reasons in status.unnamed.items():
        differing[replica, DivergenceKind.UNNAMED] = sum(reasons.values())
    for one in status.local_writes:
        yield c.LOCAL_WRITES, (one.replica, one.table), one.rows
    for replica, cause in product(found.topics, DivergenceKind):
        yield c.DIFFERING_ROWS, (replica, cause), differing[replica, cause]


def _counts(found: LiveFacts) -> Iterable[ConflictCount]:
    """The conflicts, also those of which there are none yet, unless that were too many."""
    kinds = [kind for kind in ConflictKind if kind is not ConflictKind.REFUSED]
    every = product(kinds, found.functions.items(), found.topics)
    none: list[ConflictCount] = []
    if len(kinds) * len(found.functions) * len(found.topics) <= ZEROED_MAX:
        none = [ConflictCount(kind, rule, table, name, 0) for kind, (table, rule), name in every]
    return (*none, *found.status.conflicts.counts)


def _agreement(found: LiveFacts, one: AgreementSummary) -> Iterator[Sample]:
    of = one.name, one.consumer
    yield from _state(a.AGREEMENT_STATE, of, AgreementStatus, one.state)
    yield a.AGREEMENT_LEVEL, of, one.level
    yield a.LAG_EPOCHS, of, one.lag_epochs
    yield from _known(a.LAG_SECONDS, of, one.lag_s)
    yield from _known(a.LAG_CHANGES, (*of, "acked"), one.lag_changes)
    yield from _known(a.LAG_CHANGES, (*of, "sent"), one.unsent_changes)
    yield from _known(a.TIME_TO_LEVEL, of, found.time_to_level_s.get(one.name))
    acked_ms = state_of(found.checkpoint.state, one.name).acked_ms
    yield from _known(a.ACKED, of, acked_ms / 1_000 or None)
    for reason in HeldReason:
        held = one.delayed if one.delayed and one.delayed.reason is reason else None
        yield a.DELAYED_EPOCHS, (*of, reason), held.hub_epochs if held else 0
    yield a.PAUSED_TABLES, of, len(one.paused)
    yield a.HOLD_LEFT, of, math.inf if one.hold_left_s is None else one.hold_left_s
    for origin in one.origins:
        yield a.ORIGIN_LAG_SECONDS, (*of, origin.origin), origin.lag_s
        yield a.ORIGIN_LAG_CHANGES, (*of, origin.origin, "acked"), origin.changes
        yield a.ORIGIN_LAG_CHANGES, (*of, origin.origin, "sent"), origin.unsent
    for delay in one.delays:
        complete_s = delay.complete_to.timestamp() if delay.complete_to else None
        yield from _known(a.ORIGIN_COMPLETE_TO, (*of, delay.origin), complete_s)
        yield a.ORIGIN_DELAY_WORST, (*of, delay.origin), delay.worst_today_s
    if one.comparison is not None:
        yield a.COMPARED_ROWS, of, one.comparison.rows
        yield a.COMPARED_DIFFERING, of, one.comparison.differing * one.comparison.finds_other_rows
        yield a.COMPARED_AT, of, one.comparison.ended_at.timestamp()
    yield from _resync(of, one.resync)


def _resync(of: tuple[str, str], one: ConsumerResync | None) -> Iterator[Sample]:
    is_under_way = one is not None and one.state == AgreementStatus.RESYNC
    sent, total = ((one.synchronized or 0), (one.total or 0)) if one else (0, 0)
    yield a.RESYNC_ROWS, (*of, "sent"), sent
    yield a.RESYNC_ROWS, (*of, "total"), total
    yield a.RESYNC_TABLES, of, (one.tables_left or 0) if one else 0
    yield a.RESYNC_RATIO, of, (sent / total if total else 0.0) if is_under_way else 1.0


def _replica(found: LiveFacts, one: ReplicaSummary) -> Iterator[Sample]:
    of = (one.name or str(one.rid),)
    yield from _state(c.REPLICA_STATE, of, ReplicaStatus, one.state)
    yield c.REPLICA_PAUSED, of, one.paused
    yield c.REPLICA_UNREADABLE, of, one.unreadable is not None
    for verdict in Verdict:
        yield c.CHANGES, (*of, verdict), one.changes.get(verdict, 0)
    for reason in Reason:
        yield c.QUARANTINED, (*of, reason), one.quarantined.get(reason, 0)
    yield c.KEPT_RECORDS, of, one.kept_records
    yield c.KEPT_BYTES, of, one.kept_bytes
    yield c.KEPT_RATIO, of, one.kept_ratio
    yield c.LATE, of, one.quarantined.get(Reason.LATE, 0)
    yield c.DUPLICATES, of, one.duplicates
    yield c.PENDING, (*of, "pending"), one.pending
    yield c.PENDING, (*of, "waiting"), one.waiting
    yield c.PENDING_OLDEST, of, one.oldest_pending_age_s or 0
    yield c.REFUSED_ROWS, of, len(found.checkpoint.state.refusals.get(one.rid, ()))
    yield c.LACKING_COLUMNS, of, sum(lack.replica == one.name for lack in found.status.waited)
    yield c.HANDLING, of, one.conflict_handling
    yield c.REPLICA_EPOCH, of, one.epoch
    yield c.MRE, of, one.mre
    yield from _known(c.MRE_AGE, of, one.mre_age_s)
    yield from _known(c.RUV_AGE, of, one.ruv_age_s)
    yield from _known(c.CLOCK_AHEAD, of, one.clock_ahead_s)
    yield from _known(c.RECOVERY_POINT, of, one.seen_age_s)
    yield from _known(c.LAST_SEEN, of, one.seen_at.timestamp() if one.seen_at else None)


def _storage(found: LiveFacts) -> Iterator[Sample]:
    for name, version in found.checkpoint.versions.items():
        yield c.TABLE_VERSION, (name,), version
    if found.files is not None:
        for name, files in found.files.tables.items():
            yield c.TABLE_FILES, (name,), files.files
            yield c.TABLE_BYTES, (name,), files.bytes
            yield from _known(c.CHECKPOINT_TIME, (name,), files.checkpoint_s)
        yield c.FREE_BYTES, (), found.files.free_bytes
        yield c.DISK_BYTES, (), found.files.disk_bytes
    yield c.PURGE_EPOCH, (), found.checkpoint.state.purge_epoch
    yield c.PURGE_HORIZON, (), found.purge_horizon
    hold = found.status.history.hold
    of_hold = (hold.by.value, hold.name) if hold else ("age", "")
    yield c.PURGE_HELD, of_hold, (hold.age_s or 0) if hold else 0
    for option, expires_s in found.certificates.items():
        yield c.CERTIFICATE_EXPIRY, (option,), expires_s


def _state(
    metric: Metric, of: tuple[str, ...], statuses: Iterable[StrEnum], state: str
) -> Iterator[Sample]:
    """1 for the state that holds, whose detail is left out; 0 for the others."""
    now = state.partition(":")[0]
    for one in statuses:
        yield metric, (*of, one.value), one.value == now


def _known(metric: Metric, of: tuple[str, ...], value: float | None) -> Iterator[Sample]:
    if value is not None:
        yield metric, of, value
