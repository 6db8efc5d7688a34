"""A hub at work: what it keeps in memory between two batches, and which batch comes next."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from checkpoints import pending, refusals
from checkpoints.commit.epochs import Plan
from checkpoints.commit.protocol import Ledger
from checkpoints.reading import lookup
from checkpoints.reading.truncates import other_rows
from streaming.core.batch.exporting import packets_of
from streaming.core.batch.sending import wants_batch, wants_due_batch
from streaming.core.conflict.truncate import summary
from streaming.core.delivery.due import due_limit
from streaming.core.delivery.recovery_point import Delays
from streaming.core.intake.input_lost import TopicFacts, TopicLoss, losses
from streaming.core.intake.refused_rows import due
from streaming.core.intake.shares import WROTE_MS, BatchCosts, shares
from streaming.core.matrix.packets import Place
from streaming.core.model.change import RowKey
from streaming.core.model.command import Command
from streaming.core.model.row import RowState, without_tombstone
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Subscription
from streaming.hub.batch.delays import delays_at_start
from streaming.hub.batch.rest import NOTHING_HELD, HeldHeartbeats
from streaming.hub.batch.settings import BatchSettings, Effects
from streaming.hub.batch.throttle import Throttle
from streaming.hub.purging import Purging
from streaming.hub.resync.pages import Resyncs
from streaming.hub.standby.window import StandbyWindow, read_window
from streaming.hub.upkeep import Upkeep
from streaming.stages.standing import RowsAt
from streaming.stages.window import Window

_NOT_LOOKED_AT: Mapping[str, TopicFacts] = {}


@dataclass(slots=True)
class Hub:
    """A hub at work: its ledger, its state after the last commit, and the window in memory.

    `images`: of rows that were contended lately. `looked`: topic -> how far it was ever read, also
    where a stop keeps its offset back. `reconfigured`: the agreements of the state, or what is
    retired in it, differ from the last commit, so a batch is due that commits it. `unread`: the
    replicas whose topics may hold records that the batch does not read. `undelivered`: the
    agreements whose topics refused what the last batch sent them. `writable`: those that are away
    because of that, and whose topics may be written again. `held`: what was read behind the
    last commit and needs none. `costs`: of the batches before. `wrote_ms`: when each replica's last
    change was read; neither outlives the hub, for a plan once written names its offsets. `delays`:
    as of the last commit. `place_at(topic, offset)`: see `next_plan`. `throttle`: what was sent
    lately, by agreement; it does not outlive the hub.
    """

    ledger: Ledger
    settings: BatchSettings
    outlets: Effects
    state: HubState
    window: Window
    images: lookup.Images
    upkeep: Upkeep
    resyncs: Resyncs
    purging: Purging
    looked: dict[str, int] = field(default_factory=dict)
    reconfigured: bool = False
    unread: frozenset[int] = frozenset()
    undelivered: frozenset[str] = frozenset()
    writable: frozenset[str] = frozenset()
    held: HeldHeartbeats = NOTHING_HELD
    costs: BatchCosts = field(default_factory=BatchCosts)
    wrote_ms: dict[int, int] = field(default_factory=dict)
    place_at: Callable[[str, int], Place | None] = lambda _topic, _offset: None
    delays: Delays = field(default_factory=Delays)
    throttle: Throttle = field(default_factory=Throttle)

    @property
    def read_to(self) -> Mapping[str, int]:
        """Topic -> the first offset that is not read: behind the last commit, and what is held."""
        return {**self.ledger.last.offsets, **self.held.at_rest.offsets}

    def behind(self, ends: Mapping[str, int]) -> int:
        """How many records stand before these ends that are not read."""
        offsets = self.read_to
        return sum(max(0, end - offsets.get(topic, end)) for topic, end in ends.items())

    def waiting(self, ends: Mapping[str, int], paused: Collection[int]) -> int:
        """How many of them the next batches would read; `paused`: rids that are not read."""
        known, offsets = self.state.replicas, self.read_to
        return sum(
            max(0, ends.get(topic, 0) - offsets.get(topic, 0))
            for topic, rid in self.settings.topics.items()
            if rid not in paused and not (rid in known and known[rid].is_stopped)
        )

    def look_up(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """Look up rows that the window does not hold, with images."""
        store, rows_epoch = self.ledger.store, self.upkeep.rows_epoch
        return lookup.forgotten(store, keys, rows_epoch, self.window.edge, self.images)

    def look_up_others(self, table: str, known: Collection[str]) -> list[RowState]:
        """Look up what stands for the rows of a table whose keys are not known."""
        window, store, rows_epoch = self.window, self.ledger.store, self.upkeep.rows_epoch
        purged = self.state.tombstone_epoch

        def elsewhere(keys: Sequence[str]) -> Collection[str]:
            return {*known, *window.holds(table, keys)}

        older = other_rows(store, table, rows_epoch, window.edge, elsewhere, purged)
        recent = window.newest_of(table, known)
        return summary([*(without_tombstone(row, purged) for row in recent), *older])

    def look_up_images(self, rows: Mapping[RowKey, RowState]) -> dict[RowKey, str | None]:
        """Look up the images of row versions that the window knows."""
        return lookup.images(self.ledger.store, rows, self.upkeep.rows_epoch, self.images)

    @property
    def standing(self) -> RowsAt:
        """The rows as they stand behind the last batch."""
        return RowsAt(self.window, self.look_up, self.look_up_images)

    def next_plan(
        self,
        ends: Mapping[str, int],
        at_ms: int,
        commands: Sequence[Command],
        topics: Mapping[str, TopicFacts] = _NOT_LOOKED_AT,
    ) -> Plan:
        """The plan of the next batch, of topics that end here; absent ones stay where they are.

        `topics`: the topics as they are now, if that was looked at. A batch that the executors
        carry sends no page. Of the records that packets bring it names the place up to which it
        reads, where `place_at` knows it.
        """
        last = self.ledger.last
        plan = Plan(
            self.state.batch + 1,  # a hub that missed its own commit does not get this batch
            max(at_ms, last.at_ms),
            last.config_version,
            last.offsets,
            {**last.offsets, **self._read_to(ends, at_ms)},
            tuple(commands),
            self.ledger.store.versions(),
            last.topic_ids,
            undelivered=tuple(sorted(self.undelivered)),
            writable=tuple(sorted(self.writable)),
            purge=self.purging.planned(commands),
            throttled=self.throttle.held(at_ms),
        )
        plan = plan.without(self.losses(topics))
        plan = replace(plan, places=self._places(plan.offsets_to))
        if self.settings.is_carried_by_executors(plan):
            return plan
        pages = self.resyncs.due(self.state, plan.at_ms)
        times = self.settings.topology.times
        return replace(
            plan,
            pages=tuple(
                page
                for page in pages
                if page.agreement not in plan.throttled
                and times(page.agreement).is_open(plan.at_ms)
            ),
        )

    def _places(self, ends: Mapping[str, int]) -> dict[str, Place]:
        """Agreement -> the place of its consumer's last record before these ends, by packets."""
        topics = self.settings.known_topics
        fed = [one for one in self.settings.topology.subscriptions.values() if one.is_by_packets]
        found = {
            one.name: self.place_at(topic, ends.get(topic, 0))
            for one in fed
            if (topic := topics.get(one.consumer)) is not None
        }
        return {name: place for name, place in found.items() if place is not None}

    def losses(self, topics: Mapping[str, TopicFacts]) -> dict[str, TopicLoss]:
        """What is lost of the configured topics, if they are so now."""
        last, settings, read_to = self.ledger.last, self.settings, self.read_to
        read = {topic: read_to[topic] for topic in settings.topics}
        among = [*settings.topics, *settings.updates_topics]
        return losses(last.topic_ids, read, topics, among)

    def is_due(self, plan: Plan) -> bool:
        """Return whether the batch has something to read, do, send or record; if not, skip it."""
        has_read = self.held.beyond(plan).named or self.held.is_due(plan.at_ms)
        return bool(has_read) or self.has_to_do(plan)

    def may_rest(self, plan: Plan) -> bool:
        """Return whether the batch is only due to read one more record of some topics.

        What stands behind the last commit is read and looked at then before the batch is planned.
        """
        held = self.held
        is_one_each = all(end - at == 1 for at, end in held.beyond(plan).named.values())
        goes_on = held.is_in(plan) and not held.is_due(plan.at_ms)
        return is_one_each and goes_on and not self.has_to_do(plan)

    def has_to_do(self, plan: Plan) -> bool:
        """Return whether the batch has something to do, send or record, whatever it reads."""
        if plan.commands or plan.lost or plan.pages or plan.undelivered or plan.writable:
            return True
        if self.reconfigured or plan.purge is not None:
            return True
        topology = self.settings.topology.without(self.state.paused_tables)
        if due(self.state.refusals, topology, plan.at_ms, self.state.lacking):
            return True
        interval_ms, timeout_ms = topology.covers_interval_ms, topology.ack_timeout_ms
        return any(
            self._wants_batch(a, plan.at_ms, interval_ms)
            or (a.consumer not in self.unread and a.is_overdue(plan.at_ms, timeout_ms))
            for a in self.state.agreements.values()
            if a.feed is None
        ) or any(self._wants_export(one, plan) for one in topology.subscriptions.values())

    def _wants_batch(self, agreement: AgreementState, at_ms: int, interval_ms: int) -> bool:
        """Return whether a batch without input would publish something to its topic."""
        name, hub_epoch = agreement.name, self.state.hub_epoch
        times, held = self.settings.topology.times(name), self.state.held_back.get(name)
        is_throttled = self.throttle.holds(name, at_ms)
        limit = due_limit(agreement, times, held, at_ms, is_throttled=is_throttled)
        if limit is not None:
            return wants_due_batch(agreement, hub_epoch, at_ms, interval_ms, limit, held)
        return wants_batch(agreement, hub_epoch, at_ms, interval_ms, nudged=False)

    def _wants_export(self, subscription: Subscription, plan: Plan) -> bool:
        """Return whether a batch without input would export a packet."""
        agreement, hub_epoch = self.state.agreements[subscription.name], self.state.hub_epoch
        packets = packets_of(agreement, subscription, self.state.replicas, plan.places)
        return packets is not None and packets.wants_export(agreement, hub_epoch, plan.at_ms)

    def paused(self) -> dict[int, int]:
        """Rid -> its open transactions, of replicas that have too many for more to be read."""
        found = self.state.open_transactions(self.settings.open_transactions)
        return {rid: n for rid, n in found.items() if not self.state.replicas[rid].is_stopped}

    def _read_to(self, ends: Mapping[str, int], at_ms: int) -> dict[str, int]:
        """How far a batch reads; what it leaves is read later, from where it stopped.

        Nothing of replicas that are retired or paused, and of others their fair shares.
        Of a stopped one all that it left unread, when there is more of it than was looked at.
        """
        topics, offsets = self.settings.topics, self.ledger.last.offsets
        paused, room = self.paused(), self.settings.bounds.records
        found, waiting = dict[str, int](), dict[int, int]()
        for topic, end in ends.items():
            rid, first = topics.get(topic), offsets[topic]
            if rid is None:
                continue
            if self.state.replicas[rid].is_stopped:
                looked = max(first, self.looked.get(topic, 0))
                kept = min(end, looked + self.settings.kept_behind_stop)
                if looked < kept <= first + room:
                    found[topic], room = kept, room - (kept - first)
            elif rid not in paused and end > first:
                waiting[rid] = end - first
        bounds = replace(self.settings.bounds, records=room)
        writing = {rid for rid, wrote_ms in self.wrote_ms.items() if at_ms - wrote_ms < WROTE_MS}
        taken = shares(waiting, writing, self.costs, bounds)
        known = self.settings.known_topics
        return found | {known[rid]: offsets[known[rid]] + count for rid, count in taken.items()}

    def leaves(self, ends: Mapping[str, int], at_ms: int) -> bool:
        """Return whether the next batch leaves some of what may be read."""
        return any(end < ends[topic] for topic, end in self._read_to(ends, at_ms).items())

    def note_cost(self, plan: Plan, before: HubState, seconds: float) -> None:
        """Note what a batch that is committed took, and which replicas wrote changes."""
        topics, largest = self.settings.topics, before.largest
        named = plan.named.items()
        taken = {topics[topic]: end - first for topic, (first, end) in named if topic in topics}
        self.costs = self.costs.after(taken, seconds)
        wrote = [rid for rid, csn in self.state.largest.items() if csn != largest.get(rid)]
        self.wrote_ms |= dict.fromkeys(wrote, plan.at_ms + round(seconds * 1_000))

    def mark_looked(self, plan: Plan, before: HubState) -> None:
        """Note how far the topics were read by a batch that is committed.

        What follows a stop is looked at again when the replica is stopped otherwise now.
        """
        for topic, end in plan.offsets_to.items():
            rid = self.settings.topics.get(topic)
            is_same = rid is None or _stop_of(before, rid) == _stop_of(self.state, rid)
            self.looked[topic] = max(end, self.looked.get(topic, 0)) if is_same else 0


def _stop_of(state: HubState, rid: int) -> str | None:
    replica = state.replicas.get(rid)
    return replica.status_text if replica is not None and replica.is_stopped else None


def resume(
    ledger: Ledger, settings: BatchSettings, outlets: Effects, followed: StandbyWindow | None = None
) -> Hub:
    """The hub after the last commit: open transactions and window are read back.

    `followed`: the window that a standby has kept up.
    """
    last, store = ledger.last, ledger.store
    opened = pending.load(
        store, last.state.batch, last.state.largest, last.state.replicas, settings.pending_changes
    )
    kept = followed.up_to(store, last) if followed else None
    window = (kept or read_window(store, last, settings.window_rows)).window
    refused = refusals.load(store, last.state.batch)
    state = replace(last.state, open=opened, refusals=refused)
    state = state.without_ranges().waiting_anew()
    ledger.last = replace(last, state=state)
    images = lookup.Images(settings.kept_image_bytes)
    upkeep = Upkeep(ledger, outlets.maintenance, last.rows_epoch)
    resyncs = Resyncs(outlets.resyncs, settings.topology, settings.resync_workers)
    purging = Purging(ledger, outlets.maintenance)
    found = Hub(ledger, settings, outlets, state, window, images, upkeep, resyncs, purging)
    found.delays = delays_at_start(store, settings.topology, ledger.last)
    return found
