"""What a hub at work shows of itself to any thread, without stopping for it."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.commit.epochs import Checkpoint
from checkpoints.reading.reader import Reader, open_state
from connectors.kafka.certificates import expiries
from streaming.config.config import Config
from streaming.core.conflict.judge import Verdict
from streaming.core.delivery.epoch_history import EpochHistory, EpochSpan
from streaming.core.delivery.recovery_point import Delays
from streaming.core.state.hub_state import HubState
from streaming.facts.consumers.backlog import acknowledged_by_all, unacknowledged
from streaming.facts.freshness import as_read
from streaming.facts.history.conflicts import conflicts
from streaming.facts.live import CONFLICTS_MAX, BacklogDrain, LiveFacts
from streaming.facts.readiness import BatchUnderWay, HubStage, Readiness, readiness
from streaming.facts.status.conflict_counters import conflict_kinds
from streaming.facts.status.hub import HubStatus, hub_status
from streaming.facts.status.recorded import RecordedFacts, open_changes, recorded_facts
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.phases import BatchPhases, BatchTimes
from streaming.hub.batch.settings import CommittedBatch
from streaming.stages.groups import grouped
from streaming.stages.log import CHANGE

DRAIN_EVERY_S = 5.0
"""How often the backlog of each agreement is noted, for the rate at which it shrinks."""


@dataclass(slots=True)
class HubView:
    """Looks at a hub from outside its batches; whoever looks never waits for one.

    A batch replaces values as a whole and changes none of them. `hub` None: it is starting.
    `query`: whether Spark's query reads; False: no topic is there. `away_s`: since when the hub
    waits for Kafka, in seconds since 1970. `recorded`: what the tables say, refreshed while
    somebody looks. `hubs_seen`: how many hubs work on the state. `looked_at`: set
    when somebody has looked. `shown_epoch`: the last hub epoch; `watchers` are called with each new
    one's checkpoint and conflicts.
    """

    config: Config
    phases: BatchPhases = field(default_factory=BatchPhases)
    stage: HubStage = HubStage.STARTING
    hub: Hub | None = None
    query: bool = False
    away_s: float | None = None
    away_why: str = ""
    paused: frozenset[int] = frozenset()
    certificates: Mapping[str, float] = field(default_factory=dict)
    recorded: RecordedFacts = field(default_factory=RecordedFacts)
    epochs: EpochHistory = field(default_factory=EpochHistory)
    slow_batches: int = 0
    hubs_seen: Callable[[], int] = lambda: 1
    looked_at: threading.Event = field(default_factory=threading.Event)
    shown_epoch: int = 0
    watchers: list[Callable[[Checkpoint, pa.Table], None]] = field(default_factory=list)
    _drains: dict[str, BacklogDrain] = field(default_factory=dict)
    _drained_s: float = 0.0
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _knows_older: bool = False
    _topics: Mapping[str, str] = field(init=False)
    _functions: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        """Count batches that take longer than the trigger allows."""
        self.phases.observers.append(self._timed)
        self.configured(self.config)

    def configured(self, config: Config) -> None:
        """Look at a hub that works by this configuration."""
        self.config = config
        self._topics = {one.name: config.changes_topic(one.name) for one in config.replicas}
        self._functions = {n: t.function.rule for n, t in config.table_map().items()}

    # -- the hub says ---------------------------------------------------------------------------

    def opened(self, hub: Hub) -> None:
        """Look at a hub from now on that is about to read."""
        self.shown_epoch = hub.ledger.last.state.hub_epoch
        self.epochs = EpochHistory(self.shown_epoch)
        self.hub = hub
        self.stage = HubStage.RUNNING

    def committed(self, batch: CommittedBatch) -> None:
        """Note a committed batch; called by the hub, within its batch."""
        checkpoint = batch.checkpoint
        state = checkpoint.state
        if state.hub_epoch > self.shown_epoch:
            self.shown_epoch = state.hub_epoch
            span = EpochSpan(state.hub_epoch, checkpoint.at_ms, accepted_changes(batch.log))
            acked = acknowledged_by_all(self.config, self._reader(checkpoint))
            with self._turn:
                self.epochs = self.epochs.added(span, acked)
            for watcher in self.watchers:
                watcher(checkpoint, batch.conflicts)
        now_s = time.monotonic()
        if now_s - self._drained_s >= DRAIN_EVERY_S:
            self._drained_s = now_s
            self._note_backlogs(state, now_s)

    def _timed(self, times: BatchTimes) -> None:
        self.slow_batches += times.seconds * 1_000 > self.config.hub.trigger_ms

    def _note_backlogs(self, state: HubState, now_s: float) -> None:
        for name, changes in self._backlogs(state).items():
            self._drains.setdefault(name, BacklogDrain()).add(now_s, changes)

    def _backlogs(self, state: HubState) -> Mapping[str, int]:
        """Agreement -> the changes that its consumer has not acknowledged."""
        found = {}
        for one in self.config.agreements:
            known = state.agreements.get(one.name)
            if known is not None and known.session is not None:
                tables = self.config.tables_of(one)
                behind = self.epochs.behind(known.acked_covers, tables, known.consumer)
                found[one.name] = behind.changes if behind else 0
        return found

    # -- others look ----------------------------------------------------------------------------

    def refresh(self) -> bool:
        """Read what only the tables know, beside the batches; whether the hub has some yet."""
        if self.hub is None:
            return False
        reader = open_state(self.config.hub.state)
        epochs = EpochHistory() if self._knows_older else unacknowledged(self.config, reader)
        if not self._knows_older:
            with self._turn:
                self.epochs = self.epochs.preceded_by(epochs)
            self._knows_older = True
        self.recorded = recorded_facts(self.config, reader, epochs, self.hub.delays)
        self.certificates = expiries(self.config.kafka.options)
        return True

    def facts(self, now_s: float) -> LiveFacts | None:
        """The hub as it is now; None: it is starting."""
        self.looked_at.set()
        hub = self.hub
        if hub is None:
            return None
        checkpoint = as_read(self._reader(hub.ledger.last)).commit or hub.ledger.last
        status = self._status(checkpoint, now_s)
        return LiveFacts(
            status=status,
            readiness=self._readiness(status),
            checkpoint=checkpoint,
            topics=self._topics,
            functions=self._functions,
            slow_batches=self.slow_batches,
            window_rows=len(hub.window),
            rows_epoch=hub.upkeep.rows_epoch,
            hubs_seen=self.hubs_seen(),
            polled_s=None if status.polled_age_s is None else now_s - status.polled_age_s,
            files=self.recorded.files,
            purge_horizon=acknowledged_by_all(self.config, self._reader(checkpoint)),
            time_to_level_s=self._time_to_level_s(checkpoint.state),
            certificates=self.certificates,
        )

    def is_waiting(self) -> bool:
        """Return whether the hub waits for Kafka, with nothing else to do."""
        return self.away_s is not None

    def hub_epoch(self) -> int:
        """The last committed hub epoch; 0: none."""
        return self.shown_epoch

    def recorded_status(self, now_s: float) -> HubStatus:
        """The status as the command line reads it from the tables; HubError if there is none."""
        return hub_status(self.config, open_state(self.config.hub.state), now_s)

    def recorded_conflicts(self) -> list[dict[str, Any]]:
        """The last conflicts, as the command line lists them; HubError if there is no state."""
        return conflicts(open_state(self.config.hub.state), {}, newest=CONFLICTS_MAX)

    def readiness(self, now_s: float) -> Readiness:
        """Whether the hub does its work; it waits neither for a batch nor for Kafka."""
        hub = self.hub
        return self._readiness(None if hub is None else self._status(hub.ledger.last, now_s))

    def _readiness(self, status: HubStatus | None) -> Readiness:
        away = None
        if self.away_s is not None:
            seconds = time.time() - self.away_s
            away = self.config.kafka.bootstrap_servers, seconds, self.away_why
        return readiness(
            self.stage, reads=self.query, status=status, under_way=self.under_way(), away=away
        )

    def under_way(self) -> BatchUnderWay | None:
        """The batch in progress."""
        running, now_s = self.phases.running, time.monotonic()
        if running is None:
            return None
        of_phase_s = now_s - running.phase_began_s
        return BatchUnderWay(running.batch, running.phase, now_s - running.began_s, of_phase_s)

    def _status(self, checkpoint: Checkpoint, now_s: float) -> HubStatus:
        counts = conflict_kinds(checkpoint.totals)
        recorded = replace(
            self.recorded,
            conflicts=counts,
            opened=open_changes(checkpoint.state.open),
            crowded=self.paused,
            epochs=self.epochs,
            delays=self.hub.delays if self.hub else Delays(),
        )
        return hub_status(self.config, self._reader(checkpoint), now_s, recorded)

    def _reader(self, checkpoint: Checkpoint) -> Reader:
        running, hub = self.phases.running, self.hub
        name = hub.ledger.hub if hub else ""
        planned = running.batch if running and running.batch > checkpoint.state.batch else None
        return Reader(self.config.hub.state, checkpoint, planned, name)

    def _time_to_level_s(self, state: HubState) -> dict[str, float]:
        now_s = time.monotonic()
        return {
            name: self._drains.get(name, BacklogDrain()).time_to_level_s(now_s, changes)
            for name, changes in self._backlogs(state).items()
        }


def accepted_changes(log: pa.Table) -> dict[tuple[int, str], int]:
    """(rid, table) -> how many changes a batch accepted; `log`: its rows of the changelog."""
    is_accepted = pc.and_(
        pc.equal(log["kind"], CHANGE), pc.equal(log["verdict"], Verdict.ACCEPTED.value)
    )
    rows = log.select(["rid", "table"]).filter(is_accepted)
    found = grouped(rows, ["rid", "table"]).aggregate([([], "count_all")]).to_pylist()
    return {(row["rid"], row["table"]): row["count_all"] for row in found}
