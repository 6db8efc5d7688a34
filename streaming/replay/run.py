"""Judge a part of the history again, batch by batch, and compare each with what was recorded.

Per batch:
1. the records that it took, from the input columns of the tables (arrivals.py);
2. its plan, with the configuration and the commands of then (plans.py, configured.py);
3. the hub's own decision (streaming/hub/batch/pipeline.py), from the state that replay has come to,
   unless it surely held heartbeats alone (idle.py);
4. the comparison with the tables and the commit row (compare.py);
5. replay goes on from its own rows and replicas, and from what was sent as it is recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint, Plan, checkpoint_of
from checkpoints.commit.recorded import BatchMark, Read, RecordedRows, commit_of, recorded_rows
from checkpoints.reading.past import PastStore
from checkpoints.tables import TableName
from streaming.carriers.carrier import DriverCarrier
from streaming.core.model.errors import StateError
from streaming.core.replay.compare import Difference
from streaming.core.replay.span import Span
from streaming.core.replay.states import different_states
from streaming.core.replay.undo import UnaskedUndo
from streaming.core.state.restored import SentPosition
from streaming.hub.batch.pipeline import decide
from streaming.replay.arrivals import Arrivals
from streaming.replay.compare import different
from streaming.replay.configured import ConfigsThen, ConfigThen
from streaming.replay.differing import follow
from streaming.replay.idle import state_after_rest
from streaming.replay.past_hub import PastHub, hub_before
from streaming.replay.plans import plan_as_run
from streaming.replay.undone import BatchUndos


@dataclass(frozen=True, slots=True)
class ReplayedBatch:
    """A batch as it is recorded, and as it comes out; `config`: by which it was decided.

    `facts`: of the records that it took, among CHECKED's columns at least `rid` and `offset`.
    `unasked`: the undos of which not every row is asked for again.
    """

    recorded: RecordedRows
    after: Checkpoint
    config: ConfigThen
    plan: Plan
    facts: pa.Table
    tables: Mapping[TableName, pa.Table]
    replayed: Checkpoint
    differences: list[Difference]
    unasked: Sequence[UnaskedUndo] = ()

    @property
    def logs(self) -> tuple[pa.Table, pa.Table]:
        """Return its changelog as it is recorded, and as it comes out."""
        return self.recorded.tables[TableName.CHANGELOG], self.tables[TableName.CHANGELOG]


@dataclass(slots=True)
class Replay:
    """A run over the batches of a span; `hub`: where it has come to."""

    store: PastStore
    configs: ConfigsThen
    hub: PastHub
    arrivals: Arrivals
    process: str
    version: int

    def batches(self, read: Read, marks: list[BatchMark]) -> Iterator[ReplayedBatch]:
        """Decide the batches of these marks, one after another."""
        for rows in recorded_rows(read, marks):
            yield self._again(rows)

    def _again(self, rows: RecordedRows) -> ReplayedBatch:
        config = self._configured(rows)
        after, hub = checkpoint_of(rows.commit), self.hub
        plan = plan_as_run(self.store, rows, after, config.settings)
        rested = state_after_rest(hub.state, rows, plan, after)
        if rested is not None:
            hub.go_on(rested, after)
            facts = rows.tables[TableName.EVENTS].select(["rid", "offset"])
            return ReplayedBatch(rows, after, config, plan, facts, rows.tables, after, [])
        hub.send_as(rows.tables[TableName.CHANGELOG], after)
        undos = BatchUndos(
            rows.tables[TableName.CHANGELOG], config.settings.hub_rid, after.state.hub_epoch
        )
        hub.outlets = replace(hub.outlets, undone=undos.rows)
        facts = self.arrivals.of(rows, config.settings, config.check)
        decided = decide(hub, plan, DriverCarrier(facts))
        decided_tables = decided.tables.items()
        tables = {name: t for name, t in decided_tables if isinstance(t, pa.Table)}
        found = different(rows.tables, tables)
        found += different_states(after.state, decided.checkpoint.state)
        follow(hub, rows.tables[TableName.CHANGELOG], tables[TableName.CHANGELOG], found)
        hub.take_over(decided, after)
        of = rows, after, config, plan, facts, tables, decided.checkpoint, found
        return ReplayedBatch(*of, undos.unasked)

    def _configured(self, rows: RecordedRows) -> ConfigThen:
        """Take over the configuration of a batch; a process that starts takes it over too."""
        version, process = rows.plan["config_version"], rows.plan["hub"]
        config = self.configs.at(version)
        if (version, process) != (self.version, self.process):
            position = SentPosition(rows.plan["generation"], rows.plan["hub_epoch"])
            self.hub.start_with(config, position, partial(self.configs.documents, self.version))
            self.version, self.process = version, process
        return config


def replay_from(store: PastStore, configs: ConfigsThen, span: Span) -> Replay:
    """The run over a span, at its beginning; StateError if the state before it is gone."""
    row = commit_of(store, span.first - 1)
    if row is None:
        raise StateError(f"the commit of batch {span.first - 1} is gone: start later")
    commit = checkpoint_of(row)
    config = configs.at(commit.config_version or configs.first())
    hub = hub_before(store, commit, config)
    version = commit.config_version
    return Replay(store, configs, hub, Arrivals(store), row["hub"], version)
