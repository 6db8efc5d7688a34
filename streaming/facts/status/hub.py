"""The state of the hub as of its last commit: replicas, agreements, quarantine, conflicts."""

from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from checkpoints.commit.last_poll import read_poll
from checkpoints.reading.reader import Reader
from checkpoints.times import time_of
from streaming.config.config import Config
from streaming.core.counts.counter_keys import of_hub
from streaming.core.model.ruv import Ruv
from streaming.core.schema.difference import SchemaDifference
from streaming.core.state.hub_state import HubState
from streaming.facts.consumers.cleaning import LeavingRid, leaving_rids
from streaming.facts.consumers.divergent import DivergentRow
from streaming.facts.consumers.lacking import WaitedColumn
from streaming.facts.consumers.ruvs import ruv_document
from streaming.facts.consumers.unsettled import unread_records, unsettled
from streaming.facts.freshness import HubPresence, as_read, doubt_of, freshness
from streaming.facts.names import names_of, serving
from streaming.facts.status.agreements import AgreementSummary, agreement_summaries
from streaming.facts.status.conflict_counters import (
    ConflictCount,
    ConflictCounters,
    conflict_counters,
    conflict_counts,
)
from streaming.facts.status.liveness import UnheardReplica, unheard_replicas
from streaming.facts.status.local_writes import LocalTable
from streaming.facts.status.purge_holder import PurgeHold, purge_hold
from streaming.facts.status.recorded import RecordedFacts, recorded_facts
from streaming.facts.status.replicas import (
    PendingSummary,
    ReplicaSummary,
    pending_summary,
    replica_summaries,
    unreadable_replicas,
)


@dataclass(frozen=True, slots=True)
class QuarantineSummary:
    """How many records are kept, over all and by reason; `undecided`: of these an operator decides.

    The others are of uncarried rows: what differs is the rows, as long as they are not written
    again.
    """

    kept: int
    by_reason: dict[str, int]
    undecided: int


@dataclass(frozen=True, slots=True)
class ConflictSummary:
    """How many conflicts are recorded, over all, by kind, and by kind, function, table, loser."""

    total: int
    by_kind: dict[str, int]
    counts: tuple[ConflictCount, ...]


@dataclass(frozen=True, slots=True)
class TableSize:
    """The data files of a table's newest version."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class KeptHistory:
    """What is purged: the changelog up to a hub epoch, the rest before a batch; 0: nothing is.

    `tables`: table -> its data files and their bytes. `hold`: who keeps it from being purged
    further; None: nobody, what there is is too new.
    """

    purge_epoch: int
    purge_batch: int
    tables: dict[str, TableSize]
    hold: PurgeHold | None = None


@dataclass(frozen=True, slots=True)
class HubStatus:
    """The hub; ages in seconds, None where no batch is committed yet.

    `state`: where its state is. `polled_age_s`: since a running hub last reached Kafka. `stale`:
    why the facts may no longer hold. `presence`: whether a hub works on the state. `unread`:
    replica -> the records in its topic that the hub had not read at its last poll. `differing`:
    rows that a replica may hold otherwise than the hub. `waited`: the columns that databases lack,
    and how many rows wait for each. `unnamed`: replica -> reason -> its records
    in quarantine that name no row, so that it may have written what nobody got. `unreplicated`:
    replica -> the columns that stay in its database, as table.column. `schema_differences`: those
    that matter, between the schemas that the agents published. `local_writes`: the tables with rows
    that were written at one replica only. `untaken_config`: the version
    that was applied and that the hub has not taken. `process`: the one that wrote last.
    `planned_batch`: one that is planned and not committed. `packets`: what does not come through by
    packets -> what to do. `unknown_topics`: changes topics under the prefix that are of no replica,
    and that are not read. `leaving`: the rids that are to leave the RUV. `history`: what is kept of
    it. `counts`: of the last batch; `totals`:
    since the state was made.
    """

    hub: str
    state: str
    process: str
    committed_at: datetime | None
    age_s: float | None
    polled_age_s: float | None
    stale: str | None
    presence: HubPresence
    batch: int
    planned_batch: int | None
    hub_epoch: int
    generation: int | None
    config_version: int | None
    untaken_config: int | None
    ruvs: dict[str, Ruv]
    replicas: tuple[ReplicaSummary, ...]
    pending: PendingSummary
    agreements: tuple[AgreementSummary, ...]
    unheard: tuple[UnheardReplica, ...]
    unread: dict[str, int]
    packets: dict[str, str]
    unknown_topics: tuple[str, ...]
    leaving: tuple[LeavingRid, ...]
    quarantine: QuarantineSummary
    differing: tuple[DivergentRow, ...]
    waited: tuple[WaitedColumn, ...]
    unnamed: dict[str, dict[str, int]]
    unreplicated: dict[str, tuple[str, ...]]
    schema_differences: tuple[SchemaDifference, ...]
    local_writes: tuple[LocalTable, ...]
    conflicts: ConflictSummary
    counters: tuple[ConflictCounters, ...]
    history: KeptHistory
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
    reader = as_read(reader)
    commit = reader.commit
    state = commit.state if commit else None
    quarantine, conflicts = dict(recorded.quarantine), dict(recorded.conflicts)
    kept = sum(quarantine.values())
    replicas = replica_summaries(config, reader, recorded, now_s)
    counts, totals = (commit.counts, commit.totals) if commit else ({}, {})
    names = {**recorded.names, **names_of(config)}
    age, poll = freshness(reader, now_s), read_poll(reader.root)
    served = serving(config, reader)
    silent, stale = unheard_replicas(served, reader, age.as_of_s(now_s)), doubt_of(age)
    refused = unreadable_replicas(served, reader)
    open_ = unsettled(
        served,
        reader,
        is_known=recorded.is_known_of(reader) and stale is None and not (silent or refused),
        unread=unread_records(served, reader, poll.ends) if poll else {},
        opened=recorded.opened,
        differing=recorded.differing,
        unnamed=recorded.unnamed,
        commands=recorded.commands,
    )
    return HubStatus(
        hub=config.hub.name,
        state=str(config.hub.state),
        process=reader.hub,
        committed_at=time_of(commit.at_ms) if commit else None,
        age_s=round(now_s - commit.at_ms / 1000, 3) if commit else None,
        polled_age_s=age.polled_age_s,
        stale=stale,
        presence=age.presence,
        batch=reader.batch,
        planned_batch=reader.planned,
        hub_epoch=state.hub_epoch if state else 0,
        generation=state.generation if state else None,
        config_version=commit.config_version if commit else None,
        untaken_config=_untaken(recorded.untaken_config, reader.config_version),
        ruvs=dict(state.ruvs) if state else {},
        replicas=replicas,
        pending=pending_summary(replicas),
        agreements=agreement_summaries(config, reader, recorded, open_, now_s),
        unheard=silent,
        unread=dict(open_.unread),
        packets=dict(poll.packets) if poll else {},
        unknown_topics=poll.unknown if poll else (),
        leaving=leaving_rids(state, names, round(now_s * 1_000), config.retention.max_away_ms)
        if state
        else (),
        quarantine=QuarantineSummary(kept, quarantine, kept - recorded.named),
        differing=recorded.differing,
        waited=tuple(open_.waited),
        unnamed={name: dict(of) for name, of in recorded.unnamed.items()},
        unreplicated=dict(recorded.unreplicated),
        schema_differences=recorded.schema_differences,
        local_writes=recorded.local_writes,
        conflicts=ConflictSummary(
            sum(conflicts.values()), conflicts, conflict_counts(totals, names)
        ),
        counters=conflict_counters(totals, names_of(config)),
        history=_history(config, state, recorded, now_s),
        counts=of_hub(counts),
        totals=of_hub(totals),
    )


def _history(
    config: Config, state: HubState | None, recorded: RecordedFacts, now_s: float
) -> KeptHistory:
    files = recorded.files.tables if recorded.files else {}
    tables = {name.value: TableSize(one.files, one.bytes) for name, one in files.items()}
    if state is None:
        return KeptHistory(0, 0, tables)
    hold = purge_hold(config, state, recorded, now_s)
    return KeptHistory(state.purge_epoch, state.purge_batch, tables, hold)


def _untaken(applied: int | None, version: int) -> int | None:
    """The version that was applied, unless the hub has taken it since that was read."""
    return applied if applied is not None and applied > version else None
