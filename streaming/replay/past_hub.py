"""A hub as it was before a batch: the hub's own values and decision, on tables that stay.

Rows are looked up in the record. That is right as long as the record holds the row as replay has
it; `differing` holds every row of which it does not.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint
from checkpoints.commit.protocol import Ledger
from checkpoints.reading.past import PastStore
from streaming.core.batch.batch_judge import UNKNOWN_ROW
from streaming.core.intake.eviction import evict
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.statuses import AwayReason
from streaming.core.state.hub_state import HubState
from streaming.core.state.membership import LastTopology, adopted
from streaming.core.state.restored import SentPosition, raised
from streaming.hub.batch.hub import Hub, resume
from streaming.hub.batch.publishing import DecidedBatch
from streaming.hub.batch.settings import Effects
from streaming.hub.configured import topology_before
from streaming.replay.configured import ConfigThen
from streaming.replay.pages import RecordedPages


class RowPair(NamedTuple):
    """A row as the record has it, and as replay has it, images included."""

    recorded: RowState
    replayed: RowState


@dataclass(slots=True)
class PastHub(Hub):
    """A hub that decides recorded batches anew, and publishes and writes nothing.

    `differing`: the rows that are not as the record has them.
    """

    differing: dict[RowKey, RowPair] = field(default_factory=dict)

    def look_up(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """Look up rows that the window does not hold, with images."""
        mine = {key: self.differing[key].replayed for key in keys if key in self.differing}
        others = [key for key in keys if key not in mine]
        return {**(super(PastHub, self).look_up(others) if others else {}), **mine}

    def look_up_images(self, rows: Mapping[RowKey, RowState]) -> dict[RowKey, str | None]:
        """Look up the images of row versions that the window knows."""
        mine = {key: self.differing[key].replayed.image for key in rows if key in self.differing}
        others = {key: row for key, row in rows.items() if key not in mine}
        return {**(super(PastHub, self).look_up_images(others) if others else {}), **mine}

    def rows(self, keys: Collection[RowKey]) -> dict[RowKey, RowState]:
        """These rows as they stand, with images; one that nobody wrote is unknown."""
        found = self.standing.with_images(keys)
        return {key: found.get(key, UNKNOWN_ROW) for key in keys}

    def start_with(
        self, config: ConfigThen, position: SentPosition, documents: Callable[[], Iterable[str]]
    ) -> None:
        """Go on as a process that starts with this configuration does.

        `documents`: the configurations so far, the oldest first. `position`: from which it planned
        its first batch. One of a higher generation is that of a hub whose state was restored.
        """
        state, settings = self.state, config.settings
        if position.generation > state.generation:
            sent = SentPosition(position.generation - 1, position.hub_epoch - 2)
            state = raised(state, [sent])
        state = state.without_ranges().waiting_anew()
        later = settings.topology
        old = topology_before(self.settings.topology, later, state.agreements, documents)
        before = LastTopology(old, self.ledger.last.at_ms)
        self.settings, self.outlets = settings, _effects(config)
        rids = settings.topics.values()
        self.state = adopted(state, settings.topology, rids, before=before)
        self.ledger.last = replace(self.ledger.last, state=self.state)

    def send_as(self, log: pa.Table, after: Checkpoint) -> None:
        """Take from a recorded batch what came from outside of it.

        The pages that it sent; and of whom its topics may have held more than it read, for nobody
        is silent whose word is only unread.
        """
        source, topology = self.resyncs.source, self.settings.topology
        agreements = after.state.agreements
        self.resyncs = RecordedPages(source, topology, log=log, after=agreements)
        known = (one.consumer for one in agreements.values() if one.detail != AwayReason.SILENT)
        self.unread = frozenset(known)

    def take_over(self, decided: DecidedBatch, recorded: Checkpoint) -> None:
        """Go on behind a decided batch.

        What was sent is held as it is recorded, for what replicas reflected answers to that; and so
        is the number of the hub epoch, for that is what they reflected.
        """
        self.images.keep(decided.contended)
        after = decided.checkpoint.state
        evict(after.open, after.replicas, self.settings.pending_changes)
        for table, truncation in after.truncations.items():
            if truncation.hub_epoch > self.state.hub_epoch:
                self.window.truncate(table, truncation)
        self.window.merge(decided.rows)
        self.go_on(after, recorded)
        self.upkeep.bound(self.window, self.state, self.settings.window_rows)

    def go_on(self, after: HubState, recorded: Checkpoint) -> None:
        """Stand behind a batch: with what was sent as it is recorded."""
        self.state = replace(
            after,
            hub_epoch=recorded.state.hub_epoch,
            agreements=recorded.state.agreements,
            to_send=recorded.state.to_send,
            away_since=recorded.state.away_since,
            held_back=recorded.state.held_back,
            paused_tables=recorded.state.paused_tables,
            lacking=recorded.state.lacking,
        )
        self.ledger.last = replace(recorded, state=self.state)
        store = self.ledger.store
        if isinstance(store, PastStore):
            store.travel(recorded)
            self.upkeep.rows_epoch = store.rows_epoch


def hub_before(store: PastStore, commit: Checkpoint, config: ConfigThen) -> PastHub:
    """The hub as it was behind this commit, open transactions and window included."""
    store.travel(commit)
    start = replace(commit, rows_epoch=store.rows_epoch)
    hub = resume(Ledger(store, "replay", start), config.settings, _effects(config))
    then = commit.state  # a start changes what is noted of sending, and this hub goes on
    state = replace(hub.state, agreements=then.agreements, to_send=then.to_send)
    kept = hub.ledger, hub.settings, hub.outlets
    return PastHub(*kept, state, hub.window, hub.images, hub.upkeep, hub.resyncs, hub.purging)


_UNUSED: Any = None
"""Where a hub reaches out to topics, and to work beside its batches."""


def _effects(config: ConfigThen) -> Effects:
    return Effects(
        send=_UNUSED,
        flush=_UNUSED,
        originals=lambda _: {},
        revalidate=config.check,
        maintenance=_UNUSED,
        resyncs=_UNUSED,
    )
