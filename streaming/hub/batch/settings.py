"""What a batch needs of its surroundings: the configuration, and where the hub reaches out."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint, Plan
from connectors.packets.header import UpdatesHeader
from streaming.core.intake.input_lost import TopicFacts
from streaming.core.intake.shares import BatchBounds
from streaming.core.intake.stopped import KEPT_BEHIND_STOP
from streaming.core.records.quarantine_budget import DEFAULT_LIMITS, QuarantineLimits
from streaming.core.state.topology import Topology
from streaming.hub.batch.phases import BatchPhases
from streaming.hub.purging import KEPT_A_WEEK, PurgeTasks, RetentionTimes
from streaming.hub.resync.pages import ResyncSource
from streaming.hub.upkeep import MaintenanceTasks, MaterializeEvery
from streaming.operator.release import Revalidate
from streaming.operator.undo import UndoneRows, undone_rows
from streaming.stages.log import Originals
from streaming.stages.publish import ChunkLimits


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """What a batch needs of the configuration besides the rules.

    `topics`: changes topic -> rid. `names`: rid -> name, the hub's own included. `retired_topics`:
    topics of replicas that are not configured any more; they are not read on, but earlier records
    of theirs are looked up. `updates_topics`: updates topic -> agreement.
    `is_carried_by_executors`: whether the records of a plan are. `publishes`: what a batch
    decides is sent; not so in a replay. `writes`: rid -> the tables that it may write, of those
    that may not write all. `quarantine`: how much of a replica's records it keeps. `retention`: for
    how long history is kept. `masked`: rid -> the tables that it was ever sent masked.
    """

    topology: Topology
    topics: Mapping[str, int]
    names: Mapping[int, str]
    hub_rid: int
    chunks: ChunkLimits
    bounds: BatchBounds
    pending_changes: int
    open_transactions: int
    window_rows: int
    kept_image_bytes: int
    materialize_every: MaterializeEvery
    resync_workers: int = 4
    is_carried_by_executors: Callable[[Plan], bool] = lambda _: False
    retired_topics: Mapping[str, int] = field(default_factory=dict)
    updates_topics: Mapping[str, str] = field(default_factory=dict)
    publishes: bool = True
    writes: Mapping[int, frozenset[str]] = field(default_factory=dict)
    quarantine: QuarantineLimits = DEFAULT_LIMITS
    retention: RetentionTimes = KEPT_A_WEEK
    masked: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @property
    def all_topics(self) -> dict[str, int]:
        """Topic -> rid, of all replicas that ever were configured."""
        return {**self.retired_topics, **self.topics}

    @property
    def known_topics(self) -> dict[int, str]:
        """Rid -> its topic, of all replicas that ever were configured."""
        return {rid: topic for topic, rid in self.all_topics.items()}

    @property
    def kept_behind_stop(self) -> int:
        """How many records a stopped replica's topic may hold unread; a batch must hold them."""
        return min(KEPT_BEHIND_STOP, self.bounds.records)


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """A batch that is committed and published, for those who only look.

    `log`: its rows of the changelog, images apart where the executors have them. `conflicts`: its
    rows of `conflicts`.
    """

    checkpoint: Checkpoint
    log: pa.Table
    conflicts: pa.Table


class BesideTasks(MaintenanceTasks, PurgeTasks, Protocol):
    """The work on the tables beside the batches."""


@dataclass(frozen=True, slots=True)
class Effects:
    """Where a hub reaches out: topics, old input, and the work beside the batches.

    `send(agreement, id, bytes)` hands a record over, `flush()` returns when all are delivered, with
    the agreements whose topics refused something.
    `look(topics)`: the topics as they are now. `renew()`: send by a new connection if an updates
    topic was made anew; whether one was. `resyncs`: reads what they send, beside the batches.
    `write_packet(header, records)`: writes a packet into its agreement's folder; whether it is
    there. `undone`: reads what an undo writes back. `phases`: where the batch is.
    `committed(batch)`: those who look are told of it, which must be quick.
    """

    send: Callable[[str, str, bytes], None]
    flush: Callable[[], frozenset[str]]
    originals: Originals
    revalidate: Revalidate
    maintenance: BesideTasks
    resyncs: ResyncSource
    look: Callable[[Collection[str]], Mapping[str, TopicFacts]] = lambda _: {}
    renew: Callable[[], bool] = lambda: False
    write_packet: Callable[[UpdatesHeader, Iterable[bytes]], bool] = lambda *_: True
    undone: UndoneRows = undone_rows
    phases: BatchPhases = field(default_factory=BatchPhases)
    committed: Callable[[CommittedBatch], None] = lambda _: None
