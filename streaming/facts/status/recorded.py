"""What a status says that is in the tables and not in a commit row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from checkpoints.maintenance.files import StateFiles, state_files
from checkpoints.maintenance.leases import Lease, fresh_leases
from checkpoints.reading.reader import OpenChanges, Reader
from checkpoints.times import time_of
from streaming.config.config import Config
from streaming.core.delivery.epoch_history import EpochHistory
from streaming.core.delivery.recovery_point import Delays
from streaming.core.records.record import Reason
from streaming.core.replay.pins import Pin
from streaming.core.retention.holder import KEPT_KEYS_MAX
from streaming.core.schema.difference import SchemaDifference
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.pending import Context
from streaming.facts.consumers.backlog import unacknowledged
from streaming.facts.consumers.compared import RecordedRounds, recorded_rounds
from streaming.facts.consumers.delays import delays_in_table
from streaming.facts.consumers.divergent import (
    DivergentRow,
    divergent_rows,
    times_differed,
    unnamed_counts,
)
from streaming.facts.consumers.resync import GivenOrder, resync_orders
from streaming.facts.names import names_ever, serving
from streaming.facts.status.local_writes import LocalTable, local_tables
from streaming.facts.status.schemas import schema_differences, unreplicated_columns


@dataclass(frozen=True, slots=True)
class RecordedFacts:
    """What the tables say of a state; a running hub has some of it in memory.

    `named`: how many records in quarantine are of uncarried rows, which `differing` lists as long
    as they differ. `unnamed`: replica -> reason -> those that name no row. `opened`: (rid, pending
    | waiting) -> its open changes. `crowded`: the replicas with so many open transactions that
    reading is paused. `names`: rid -> name, of all that ever were. `commands`: number -> name of an
    operator's commands that no batch had taken. `epochs`: the hub epochs that somebody has not
    acknowledged. `orders`: those of `resync_orders`. `differed`: `times_differed` when they were
    read; None: they were not yet. `delays`: behind the commit. `compared`: the last comparisons of
    each agreement's consumer with the hub. `local_writes`: the tables with rows that were written
    at one replica only. `files`: those of the tables. `pins`: those that stand. `leases`: of
    commands that read the state. `kept_keys`: how many keys records in quarantine name, one more at
    most than a purge can do with. `untaken_config`: the version that was applied and that the hub
    had not taken.
    """

    differed: int | None = None
    quarantine: Mapping[str, int] = field(default_factory=dict)
    named: int = 0
    conflicts: Mapping[str, int] = field(default_factory=dict)
    opened: Mapping[tuple[int, str], OpenChanges] = field(default_factory=dict)
    crowded: frozenset[int] = frozenset()
    names: Mapping[int, str] = field(default_factory=dict)
    commands: Mapping[int, str] = field(default_factory=dict)
    differing: tuple[DivergentRow, ...] = ()
    unnamed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unreplicated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    schema_differences: tuple[SchemaDifference, ...] = ()
    epochs: EpochHistory = field(default_factory=EpochHistory)
    orders: Mapping[str, GivenOrder] = field(default_factory=dict)
    delays: Delays = field(default_factory=Delays)
    compared: RecordedRounds = field(default_factory=RecordedRounds)
    local_writes: tuple[LocalTable, ...] = ()
    files: StateFiles | None = None
    pins: tuple[Pin, ...] = ()
    leases: tuple[Lease, ...] = ()
    kept_keys: int = 0
    untaken_config: int | None = None

    def is_known_of(self, reader: Reader) -> bool:
        """Return whether `differing` has each row that differs as of the reader's commit."""
        return self.differed == times_differed(reader)


def recorded_facts(
    config: Config,
    reader: Reader,
    epochs: EpochHistory | None = None,
    delays: Delays | None = None,
) -> RecordedFacts:
    """Read them all, as of the reader's commit, unless `epochs` and `delays` are at hand."""
    known = reader.commit.state.replicas if reader.commit else {}
    several = reader.open_transactions({rid: one.opno for rid, one in known.items()})
    most, served = config.limits.open_transactions, serving(config, reader)
    named = reader.quarantine_counts(named=True)
    opened, rounds = reader.open_changes(), recorded_rounds(reader)
    return RecordedFacts(
        differed=times_differed(reader),
        quarantine=reader.quarantine_counts(),
        named=sum(n for why, n in named.items() if Reason(why).is_uncarried),
        conflicts=reader.conflict_counts(),
        opened=opened,
        crowded=frozenset(rid for rid, count in several.items() if count >= most),
        names=names_ever(config, reader),
        commands=reader.untaken_commands(),
        untaken_config=reader.untaken_configuration(),
        differing=divergent_rows(served, reader),
        unnamed=unnamed_counts(served, reader),
        unreplicated=unreplicated_columns(config, reader),
        schema_differences=schema_differences(config, reader),
        epochs=unacknowledged(config, reader) if epochs is None else epochs,
        orders=resync_orders(reader),
        delays=delays_in_table(config, reader, opened) if delays is None else delays,
        compared=rounds,
        local_writes=local_tables(config, reader, rounds),
        files=state_files(reader),
        pins=tuple(reader.pins().values()),
        leases=tuple(fresh_leases(reader.root)),
        kept_keys=len(reader.kept_keys(KEPT_KEYS_MAX + 1)),
    )


def open_changes(opened: OpenTransactions) -> dict[tuple[int, str], OpenChanges]:
    """(rid, pending | waiting) -> the replica's changes in that state, as `pending` counts them.

    They are in the memory of a hub at work, which may evict some meanwhile: each dictionary is
    copied in one step before it is walked.
    """
    committed, evicted = opened.lists.committed.copy(), opened.evicted.copy()
    counts: dict[tuple[int, str], int] = {}
    oldest: dict[tuple[int, str], Context] = {}
    members = opened.lists.members.copy()
    for context, csns in members.items():
        where = context[1], "waiting" if context in committed else "pending"
        absent = evicted[context].absent if context in evicted else 0
        counts[where] = counts.get(where, 0) + len(csns) + absent
        oldest.setdefault(where, context)
    return {
        where: _open_changes(opened, count, oldest[where][0], members[oldest[where]])
        for where, count in counts.items()
    }


def _open_changes(
    opened: OpenTransactions, count: int, transaction: str, csns: Iterable[str]
) -> OpenChanges:
    """So many changes; when the first of their oldest transaction came that is in memory.

    A replica's reflection never goes back, so that transaction has the smallest MRE.
    """
    found = [one for csn in csns if (one := opened.changes.get(csn)) is not None]
    came = time_of(min(one.time_ms for one in found)) if found else None
    return OpenChanges(count, came, transaction, min((one.mre for one in found), default=None))
