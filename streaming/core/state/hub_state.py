"""What the hub knows between two batches, rows apart."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streaming.core.matrix.rows import Row
from streaming.core.model.refusal import Lacking, Refusals
from streaming.core.model.ruv import Ruv, largest_of
from streaming.core.model.statuses import AgreementStatus
from streaming.core.model.truncation import Truncations
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.held_back import HeldBack
from streaming.core.state.open_transactions import OpenTransactions
from streaming.core.state.replica_state import ReplicaState
from streaming.core.tracking.ranges import RangeRealign

FIRST_GENERATION = 1
"""The generation of a hub whose state was never restored."""


@dataclass(frozen=True, slots=True)
class HubState:
    """The hub after a committed batch; `open` is copied before a batch works on it.

    `ruvs` and `purge_ruvs` are by data set. `to_send`: by agreement, what this very batch
    publishes; a hub that starts publishes it again. The tables of an agreement are configuration
    and stand in `Topology`, not here. `ranges`: the ranges of keys that were sent as a whole; each
    realigns its keys. `numbers`: the hub's own row of the matrix (core/matrix/rows.py).
    `purge_batch`: the oldest batch that is kept. `away_since`: agreement -> since when its consumer
    is not heard of, by the hub's clock; absent: it is heard. `held_back`: agreement -> what it is
    not sent yet because of when it sends; absent: nothing. `paused_tables`: agreement -> the tables
    of which an operator has it send nothing. `leaving`: rid that is retired for good and still in a
    RUV -> the hub epoch that all must have for it to leave. `left_epoch`: the largest such hub
    epoch of a rid that has left. `lacking`: the columns that databases lack. `tombstone_epoch`:
    tombstones up to it may be purged, so each row that is not there is judged as one that nobody
    deleted at that hub epoch.
    """

    generation: int
    replicageneration: str
    batch: int = 0
    hub_epoch: int = 0
    ruvs: Mapping[str, Ruv] = field(default_factory=dict)
    purge_ruvs: Mapping[str, Ruv] = field(default_factory=dict)
    purge_epoch: int = 0
    replicas: dict[int, ReplicaState] = field(default_factory=dict)
    agreements: dict[str, AgreementState] = field(default_factory=dict)
    to_send: Mapping[str, SendRange] = field(default_factory=dict)
    open: OpenTransactions = field(default_factory=OpenTransactions)
    refusals: Refusals = field(default_factory=dict)
    ranges: tuple[RangeRealign, ...] = ()
    truncations: Truncations = field(default_factory=dict)
    numbers: Row = field(default_factory=dict)
    purge_batch: int = 0
    away_since: Mapping[str, int] = field(default_factory=dict)
    held_back: Mapping[str, HeldBack] = field(default_factory=dict)
    paused_tables: Mapping[str, frozenset[str]] = field(default_factory=dict)
    leaving: Mapping[int, int] = field(default_factory=dict)
    left_epoch: int = 0
    lacking: Lacking = field(default_factory=dict)
    tombstone_epoch: int = 0

    def ruv_of(self, dataset: str) -> Ruv:
        """The RUV of a data set."""
        return self.ruvs.get(dataset) or Ruv(self.replicageneration)

    def purge_ruv_of(self, dataset: str) -> Ruv:
        """The largest purged CSNs of a data set."""
        return self.purge_ruvs.get(dataset) or Ruv(self.replicageneration)

    def without_ranges(self) -> "HubState":
        """The state when its last batch is published again: without ranges, which are read anew.

        A consumer that has them skips that batch, and gets them once more behind it. A packet with
        ranges is not written again, for its bytes would be others: the next one brings it all.
        """
        to_send, agreements = dict(self.to_send), dict(self.agreements)
        for name, one in self.to_send.items():
            agreement = self.agreements[name]
            if one.ranges and agreement.feed is not None:
                del to_send[name]
                feed = agreement.feed.not_again()
                agreements[name] = replace(agreement.unsent(one), feed=feed)
            elif one.ranges and agreement.resync is not None:
                back = agreement.resync.rolled_back(self.hub_epoch - 1)
                to_send[name] = replace(one, position=back.held, ranges=())
                resync = AgreementStatus.RESYNC
                agreements[name] = replace(agreement, resync=back, status=resync, detail="")
        return replace(self, to_send=to_send, agreements=agreements)

    def waiting_anew(self) -> "HubState":
        """The state of a hub that starts: while none was there nobody could be heard."""
        waiting = {name: replace(one, behind_ms=0) for name, one in self.agreements.items()}
        return replace(self, agreements=waiting)

    @property
    def exported(self) -> list[str]:
        """The agreements of which this very batch exports a packet."""
        return [
            name
            for name, one in self.agreements.items()
            if one.feed is not None and one.feed.batch == self.batch and self.batch
        ]

    @property
    def largest(self) -> dict[int, str]:
        """Rid -> its largest CSN in any data set; no CSN above it is in the changelog.

        The purge RUVs remember it of a rid that has left the RUVs.
        """
        return largest_of([*self.ruvs.values(), *self.purge_ruvs.values()])

    @property
    def to_leave(self) -> dict[int, int]:
        """Rid -> the hub epoch that all must have, of those retired for good that are in a RUV."""
        return {
            rid: self.leaving.get(rid, self.hub_epoch)
            for rid, one in self.replicas.items()
            if one.is_retired_for_good and any(rid in ruv.elements for ruv in self.ruvs.values())
        }

    @property
    def gone_epoch(self) -> int:
        """A consumer that lacks some hub epoch up to here needs a full copy: it may be gone."""
        return max(self.purge_epoch, self.left_epoch)

    @property
    def smallest_mre(self) -> int:
        """The smallest MRE of what may still come: of sessions in force and waiting changes.

        Without replicas that are fed by packets: theirs is days old, and nothing is kept in memory
        for them. What they write on is looked up. So it is with those whose agreement holds
        something back. Those that another hub serves have none here.
        """
        fed = {
            one.consumer
            for name, one in self.agreements.items()
            if one.feed is not None or name in self.held_back
        }
        fed |= {rid for rid, one in self.replicas.items() if one.is_elsewhere}
        sessions = [
            replica.mre
            for replica in self.replicas.values()
            if replica.sessions and not replica.is_stopped and replica.rid not in fed
        ]
        changes = self.open.changes.values()
        waiting = [one.mre for one in changes if not fed or one.change.rid not in fed]
        return min([*sessions, *waiting], default=self.hub_epoch)

    def open_transactions(self, at_least: int) -> dict[int, int]:
        """Rid -> its transactions that no record behind them frees, where there are so many.

        Those are the uncommitted ones, and those with a change above a hole in the opno. All others
        are kept together on disk, however many there are.
        """
        found = Counter[int]()
        for context, members in self.open.lists.members.items():
            found[context[1]] += context not in self.open.lists.committed or any(
                (self.open.changes[csn].change.opno or 0) > self.replicas[rid].opno
                for csn, (_, rid) in members.items()
            )
        return {rid: count for rid, count in found.items() if count >= at_least}

    def takes_page(self, agreement: AgreementState) -> bool:
        """Return whether a page that was planned with this state is still to be sent.

        `agreement`: as the batch has it now; only a resync that is the same still is.
        """
        known = self.agreements.get(agreement.name)
        is_same = (
            known is not None
            and known.resync is not None
            and known.resync.is_same(agreement.resync)
        )
        return agreement.goes_on_with_resync and is_same and agreement.scanned == self.hub_epoch

    def says_nothing_new(self, before: "HubState") -> bool:
        """Return whether the batch behind `before` sends nothing, and changed nothing.

        When replicas were heard does not count: the hub needs no commit of such a batch.
        """
        heard = {
            rid: replace(one, seen_ms=self.replicas[rid].seen_ms)
            for rid, one in before.replicas.items()
            if rid in self.replicas
        }
        return self == replace(before, batch=self.batch, replicas=heard, to_send={})
