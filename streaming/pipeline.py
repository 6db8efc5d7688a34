"""The whole flow of a batch: plan, read, take in, judge, log, commit, publish."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from checkpoints import commit, lookup, pending
from checkpoints.commit import Ledger, Outcome
from checkpoints.epochs import Checkpoint, Command, Plan
from checkpoints.faults import Point
from checkpoints.tables import TableName
from connectors import wire
from streaming.core.hub import next_epoch, settled
from streaming.core.intake import Intake
from streaming.core.rules import Rules
from streaming.core.sending import Mark, View, wants_batch
from streaming.core.state import HubState, is_stopped
from streaming.core.window import Window, rebuilt
from streaming.stages import intake as intake_stage
from streaming.stages import judge as judge_stage
from streaming.stages import log as log_stage
from streaming.stages import publish as publish_stage
from streaming.stages import release as release_stage
from streaming.stages.facts import facts_of

LEVEL = "level"
"""The operator's command to move every lagging covers at once."""

Read = Callable[[Plan], pa.Table]
"""The validated records of a plan's offsets, as `stages/validate.py` delivers them."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a batch needs of the configuration besides the rules."""

    rules: Rules
    topics: Mapping[str, int]
    hub_rid: int
    chunks: publish_stage.Chunks
    window_rows: int
    materialize_every_epochs: int


@dataclass(frozen=True, slots=True)
class Outlets:
    """Where a hub reaches out: the updates topics, old input, and the materializer of `rows`.

    `send(agreement, id, bytes)` hands a record over, `flush()` returns when all are delivered.
    `materialize(after, to)` brings `rows` from one hub epoch up to another.
    """

    send: Callable[[str, str, bytes], None]
    flush: Callable[[], None]
    originals: log_stage.Originals
    revalidate: release_stage.Revalidate
    materialize: Callable[[int, int], None]


@dataclass(slots=True)
class Hub:
    """A hub at work: its ledger, its state behind the last commit, and the window in memory."""

    ledger: Ledger
    settings: Settings
    outlets: Outlets
    state: HubState
    window: Window
    rows_epoch: int
    verdicts: judge_stage.Verdicts | None = field(default=None, repr=False)
    log: pa.Table | None = field(default=None, repr=False)

    def process(self, plan: Plan, read: Read) -> None:
        """Run one planned batch to its end, then bring `rows` up to date when it is time."""
        commit.run(self.ledger, plan, lambda p: decide(self, p, read(p)), lambda o: tell(self, o))
        self._take_over()
        self._materialize()

    def next_plan(
        self, offsets_to: Mapping[str, int], at_ms: int, commands: Sequence[Command]
    ) -> Plan:
        """The plan of the next batch, up to these offsets; absent topics stay where they are."""
        last = self.ledger.last
        return Plan(
            last.state.batch + 1,
            max(at_ms, last.at_ms),
            last.config_version,
            last.offsets,
            {**last.offsets, **self._unstopped(offsets_to)},
            tuple(commands),
            self.ledger.store.versions(),
        )

    def is_due(self, plan: Plan) -> bool:
        """Claim that the batch has input, a command, or something to send: else it is left out."""
        if plan.offsets_from != plan.offsets_to or plan.commands:
            return True
        interval_ms = self.settings.rules.covers_interval_ms
        return any(
            wants_batch(a, self.state.hub_epoch, plan.at_ms, interval_ms, nudged=False)
            for a in self.state.agreements.values()
        )

    def _unstopped(self, offsets: Mapping[str, int]) -> dict[str, int]:
        """Leave out the topics of replicas that stopped: they are read from there later."""
        replicas, topics = self.state.replicas, self.settings.topics
        return {t: n for t, n in offsets.items() if not is_stopped(replicas[topics[t]].state)}

    def _take_over(self) -> None:
        """Make the committed batch the state in memory."""
        self.state = self.ledger.last.state
        if self.verdicts is not None:
            self.window.merge(self.state.hub_epoch, self.verdicts.rows)
        self.verdicts = self.log = None

    def _materialize(self) -> None:
        """Bring `rows` up to date when it is time; let the window forget what all have seen."""
        behind = self.state.hub_epoch - self.rows_epoch
        full = len(self.window) > self.settings.window_rows
        if behind >= self.settings.materialize_every_epochs or (full and behind):
            self.outlets.materialize(self.rows_epoch, self.state.hub_epoch)
            self.ledger.at(Point.AFTER_ROWS)
            self.rows_epoch = self.state.hub_epoch
        edge = self.rows_epoch if full else min(self.rows_epoch, smallest_mre(self.state))
        if edge > self.window.edge:
            self.window.advance(edge)


def resume(ledger: Ledger, settings: Settings, outlets: Outlets) -> Hub:
    """The hub behind the last commit: open transactions and window are read back."""
    last, store = ledger.last, ledger.store
    opened = pending.load(store, last.state.batch, last.state.ruv)
    told = lookup.replay_rows(store, last.rows_epoch, last.state.hub_epoch)
    state = replace(last.state, open=opened)
    ledger.last = replace(last, state=state)
    window = rebuilt(last.rows_epoch, told.items())
    return Hub(ledger, settings, outlets, state, window, last.rows_epoch)


def decide(hub: Hub, plan: Plan, records: pa.Table) -> Outcome:
    """What a batch means, from its records and the state before it; nothing is written."""
    store, settings, state = hub.ledger.store, hub.settings, hub.state
    facts = facts_of(records)
    old = intake_stage.repeated_or_old(facts, state.ruv.max_csns())
    intake = Intake(state, settings.rules, lookup.contents(store, old, plan.batch))
    released = release_stage.act(
        store,
        plan.commands,
        intake,
        hub.outlets.revalidate,
        hub_rid=settings.hub_rid,
        batch=plan.batch,
        at_ms=plan.at_ms,
    )
    for change in released.changes:
        intake.take_own(change)
    eligible = intake_stage.take(intake, facts, wire.decode)
    hub_epoch = next_epoch(intake, judged=eligible.num_rows > 0)
    hub.verdicts = judge_stage.judge(
        eligible,
        intake,
        hub_epoch,
        hub.window,
        look_up=lambda keys: lookup.rows(store, keys),
        images=lambda rows: lookup.images(store, rows, hub.rows_epoch),
    )
    hub.log = log_stage.changelog(eligible, hub.verdicts, plan.batch, hub_epoch)
    view = View(
        state.hub_epoch,
        hub_epoch,
        state.ruv,
        plan.at_ms,
        any(command.command == LEVEL for command in plan.commands),
        lambda covered: lookup.marks(store, covered, state.hub_epoch),
    )
    after = settled(intake, hub_epoch, hub.log.num_rows, _has_items(hub, intake), view)
    return Outcome(
        _tables(hub, plan, intake, facts.table, released.rows, hub_epoch),
        _checkpoint(hub, plan, after, intake, eligible.num_rows),
    )


def _has_items(hub: Hub, intake: Intake) -> dict[str, bool]:
    """Which agreements the batch's own hub epoch holds something for."""
    tables = {name: s.tables for name, s in hub.settings.rules.subscriptions.items()}
    log = hub.log
    return {
        name: log is not None
        and bool(publish_stage.for_consumer(log, a.consumer, tables[name], a.sent_ruv).any())
        for name, a in intake.agreements.items()
    }


def _tables(
    hub: Hub, plan: Plan, intake: Intake, records: pa.Table, released: pa.Table, hub_epoch: int
) -> dict[TableName, pa.Table]:
    """The rows that the batch adds to each table."""
    if hub.log is None or hub.verdicts is None:
        return {}
    names = {rid: topic for topic, rid in hub.settings.topics.items()}
    told = records.filter(pc.is_valid(records["value"])).select(["rid", "offset", "value"])
    values = {(row["rid"], row["offset"]): row["value"] for row in told.to_pylist()}
    judged = list(hub.verdicts.judged.values())
    batch = plan.batch
    quarantined = log_stage.quarantine(
        intake.quarantined, values, hub.outlets.originals, names, batch
    )
    return {
        TableName.CHANGELOG: hub.log,
        TableName.CONFLICTS: log_stage.conflicts(hub.log, judged, hub.settings.rules),
        TableName.QUARANTINE: pa.concat_tables([quarantined, released]),
        TableName.PENDING: pending.moves(hub.state.open, intake.open, intake.ended, batch),
        TableName.EVENTS: log_stage.events(intake, values, names, batch, hub_epoch, wire.kind_of),
    }


def _checkpoint(hub: Hub, plan: Plan, after: HubState, intake: Intake, judged: int) -> Checkpoint:
    """The state after the batch with the positions around it."""
    last = hub.ledger.last
    rejected = sum(
        j.conflict is not None for j in (hub.verdicts.judged if hub.verdicts else {}).values()
    )
    counts = {
        "judged": judged,
        "rejected": rejected,
        "accepted": judged - rejected,
        "entries": hub.log.num_rows if hub.log is not None else 0,
        "quarantined": len(intake.quarantined),
        **intake.counts,
    }
    names = {*counts, *last.totals}
    stops = {
        topic: replica.stop_offset
        for topic, rid in hub.settings.topics.items()
        if (replica := after.replicas[rid]).stop_offset is not None
    }
    return replace(
        last,
        state=after,
        offsets={**plan.offsets_to, **stops},
        command_number=max((c.number for c in plan.commands), default=last.command_number),
        rows_epoch=hub.rows_epoch,
        at_ms=plan.at_ms,
        counts=counts,
        totals={name: last.totals.get(name, 0) + counts.get(name, 0) for name in sorted(names)},
        versions=hub.ledger.store.versions(),
    )


def tell(hub: Hub, outcome: Outcome) -> None:
    """Publish what the committed batch sends to each agreement, one after the other."""
    publish(hub, outcome.checkpoint.state)


def publish(hub: Hub, state: HubState) -> None:
    """Send to each agreement the range that the state names; again with the same ids."""
    at = hub.ledger.at
    for name, agreement in state.agreements.items():
        if not agreement.send_to:
            continue
        tables = hub.settings.rules.subscriptions[name].tables
        log = _logged(hub, state, agreement.send_after)
        ruvs = {m.hub_epoch: m.ruv for m in _marks(hub, state, agreement.send_after)}
        chunks = publish_stage.records(
            log,
            agreement,
            tables,
            {**ruvs, state.hub_epoch: state.ruv},
            state.generation,
            hub.settings.chunks,
        )
        for number, (record_id, value) in enumerate(chunks):
            if number:
                at(Point.BETWEEN_CHUNKS)
            hub.outlets.send(name, record_id, value)
        hub.outlets.flush()
        at(Point.BETWEEN_AGREEMENTS)


def _logged(hub: Hub, state: HubState, after: int) -> pa.Table:
    """The changelog above a hub epoch: of the batch itself from memory, else from Delta."""
    if hub.log is not None and after >= hub.state.hub_epoch:
        return hub.log
    where = (ds.field("hub_epoch") > after) & (ds.field("hub_epoch") <= state.hub_epoch)
    rows = hub.ledger.store.read(TableName.CHANGELOG, where)
    return rows.sort_by([("hub_epoch", "ascending"), ("place", "ascending")])


def _marks(hub: Hub, state: HubState, after: int) -> Sequence[Mark]:
    if hub.log is not None and after >= hub.state.hub_epoch:
        return ()
    return lookup.marks(hub.ledger.store, after, state.hub_epoch)


def smallest_mre(state: HubState) -> int:
    """The smallest MRE of what may still come: of every session in force and waiting change."""
    sessions = [
        replica.sessions[-1].mre
        for replica in state.replicas.values()
        if replica.sessions and not is_stopped(replica.state)
    ]
    waiting = [arrived.mre for arrived in state.open.changes.values()]
    return min([*sessions, *waiting], default=state.hub_epoch)
