"""How a hub comes up: it founds or opens the state, and finishes what a dead hub left."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from checkpoints.commit.epochs import Checkpoint, Plan
from checkpoints.commit.faults import FaultHook
from checkpoints.commit.finishing import was_begun
from checkpoints.commit.protocol import Ledger, create_state, format_of, open_ledger
from checkpoints.config import (
    commands_named,
    plan_with_commands,
    settings_document,
    store_configuration,
    stored_versions,
)
from checkpoints.store import StateStore
from connectors.kafka.looking import last_updates
from streaming.config.config import Config
from streaming.config.history import ConfigHistory
from streaming.config.rights import HUB, needed_rights
from streaming.core.model.command import CommandName
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.errors import SourceError, StateError
from streaming.core.state.hub_state import FIRST_GENERATION, HubState
from streaming.core.state.membership import LastTopology, adopted, retired_of, sending_only
from streaming.core.state.restored import is_behind, is_restored, raised, restored_text
from streaming.core.state.topology import Topology
from streaming.core.text.wording import as_count
from streaming.hub.batch.hub import Hub, resume
from streaming.hub.batch.lost_input import Read
from streaming.hub.batch.pipeline import process
from streaming.hub.batch.publishing import publish
from streaming.hub.batch.settings import BatchSettings, Effects
from streaming.hub.batch.source import Source
from streaming.hub.configured import settings_of, topology_before, topology_of, with_retired
from streaming.hub.standby.window import StandbyWindow
from streaming.hub.topics.found_topics import FoundTopics

LOG = logging.getLogger("slackwater")


@dataclass(frozen=True, slots=True)
class Opening:
    """What a hub comes up with; `settings` are of the present configuration.

    `outlets(settings)`: where a hub with these settings reaches out. `followed`: the window of a
    standby. `version`: under which the configuration is stored; 0: it may not be yet.
    """

    config: Config
    settings: BatchSettings
    history: ConfigHistory
    topics: FoundTopics
    source: Source
    outlets: Callable[[BatchSettings], Effects]
    followed: StandbyWindow | None = None
    version: int = 0

    def open(self, store: StateStore, name: str, reach: FaultHook, at_ms: int) -> Hub:
        """Found or open the state, finish what a dead hub left, take over the configuration.

        SourceError if an updates topic holds what this hub did not write; StateError if the state
        is older than what was sent from it, and no operator has said how to go on. A hub that is
        refused where no state is leaves none, for that would be in the way of `slackwater restore`.
        """
        genesis = self._genesis(at_ms)
        if format_of(store.root) is None:
            self._check_topics(genesis)
        create_state(store, genesis, name)
        ledger = open_ledger(store, name, reach)
        self._check_topics(ledger.last)
        is_raised = self._raise_restored(ledger)
        hub = self._finished(ledger, is_raised=is_raised)
        version = self.version or store_configuration(store, self.config.document(), at_ms)
        self._adopt(hub, self.settings, self.topics.first, version)
        self._log_retired(hub.state)
        return hub

    def _genesis(self, at_ms: int) -> Checkpoint:
        """The state before the first batch; its replicageneration names the initial load."""
        generation = format_csn(CsnParts(at_ms // 1000, 0, self.config.hub.rid, 0))
        return Checkpoint(HubState(FIRST_GENERATION, generation), {}, {}, 0, at_ms=at_ms)

    def _finished(self, ledger: Ledger, *, is_raised: bool) -> Hub:
        """Finish the batch of a hub that died: from its plan, or only its publishing.

        It is judged under the configuration of its plan, which may be newer than the last commit.
        `is_raised`: nothing is published again, for what was sent behind it would be hidden.
        """
        unfinished, version = ledger.unfinished, ledger.last.config_version
        if unfinished is None:
            config = self._config_of(ledger.store, version)
            settings = with_retired(config, settings_of(config, judges=False), self.history)
            outlets = self.outlets(self.settings)
            hub = resume(ledger, settings, outlets, self.followed)
            if not is_raised:
                publish(hub, sending_only(hub.state, self.settings.topology.subscriptions))
            return hub
        plan = plan_with_commands(ledger.store, unfinished)
        config = self._config_of(ledger.store, plan.config_version)
        settings = with_retired(config, settings_of(config), self.history)
        hub = resume(ledger, settings, self.outlets(settings), self.followed)
        self._adopt(hub, settings, plan.offsets_from, plan.config_version)
        LOG.info("finishing batch %d of a hub that died", plan.batch)
        if plan.pages:  # what it had prepared is gone: they are read anew
            ledger.drop_uncommitted(plan)
            plan = replace(plan, pages=())
        process(hub, plan, self._reading(hub, plan, settings, config))
        return hub

    def _reading(self, hub: Hub, plan: Plan, settings: BatchSettings, config: Config) -> Read:
        """How the records of an unfinished batch are read: with care if two hubs died of it."""
        if not was_begun(hub.ledger.store.root, plan):
            return lambda p: self.source.planned(p, settings, config.limits)
        hub.ledger.drop_uncommitted(plan)  # what can be read may be less than it was
        LOG.warning(
            "two hubs died of batch %d: its records are read one by one, and those that are too"
            " large or cannot be read are quarantined",
            plan.batch,
        )
        return lambda p: self.source.apart(p, settings, config.limits)

    def _check_topics(self, last: Checkpoint) -> None:
        """Refuse topics that a hub with this state cannot work with."""
        self.topics.check_known(last.topic_ids, needed_rights(self.config, HUB))
        self._check_own_updates(last)

    def _check_own_updates(self, last: Checkpoint) -> None:
        """Refuse updates topics that another hub wrote: its consumers cannot follow two."""
        foreign = {t: end for t, end in self.topics.sent.items() if end and t not in last.topic_ids}
        if foreign:
            found = ", ".join(f"{t} ({as_count(end, 'record')})" for t, end in foreign.items())
            raise SourceError(
                f"updates that this hub did not write: {found}. Another hub sends there, or the"
                f" state in {self.config.hub.state} is not the one that belongs to these topics:"
                " name that state as hub.state; or, if it is lost, `slackwater restore` makes it of"
                " a backup; or give this hub topics of its own with hub.topic_prefix"
            )

    def _raise_restored(self, ledger: Ledger) -> bool:
        """Go on from a state that was restored, if an operator said so; whether it was restored.

        Until the first batch is committed nothing of it holds, so a hub that dies does it again.
        """
        kafka, state = self.config.kafka, ledger.last.state
        last = last_updates(kafka.bootstrap_servers, kafka.options, self.topics.sent)
        if not is_restored(state, last.values()):
            return False
        orders = [
            one
            for one in commands_named(ledger.store, CommandName.RECOVER_HUB)
            if one.number > ledger.last.command_number
        ]
        if not orders and is_behind(state, last.values()):
            raise StateError(restored_text(self.config.hub.state, state, last))
        if not orders:
            return False
        self._check_input(ledger.last, is_lost=orders[-1].argument == "lose")
        if ledger.unfinished is not None:
            ledger.drop_uncommitted(plan_with_commands(ledger.store, ledger.unfinished))
        ledger.last = replace(ledger.last, state=raised(state, last.values()))
        LOG.warning(
            "going on from a state that was restored, as generation %d: every consumer gets a full"
            " copy",
            ledger.last.state.generation,
        )
        return True

    def _check_input(self, last: Checkpoint, *, is_lost: bool) -> None:
        """Refuse topics that begin above what the state has read, unless that may be lost.

        What stood there may be in every database, and would be deleted everywhere.
        """
        gone = [
            f"{topic} begins at offset {self.topics.first[topic]}, the state has read up to {at}"
            for topic, at in last.offsets.items()
            if self.topics.first.get(topic, 0) > at
        ]
        if gone and not is_lost:
            raise StateError(
                f"{'; '.join(gone)}: what stood between is in the databases only, and the full"
                " copies would delete it there. Put a newer state back, or give it up with"
                " `slackwater recover --lose`, and start the agent of a database that has it with"
                " --snapshot"
            )

    def _config_of(self, store: StateStore, version: int) -> Config:
        """The configuration that was stored as this version; before the first, the present one."""
        document = settings_document(store, version) if version else None
        return Config.from_document(document) if document else self.config

    def _topology_before(self, store: StateStore, last: Checkpoint, later: Topology) -> Topology:
        """The topology of the last commit, and every agreement that was there before it."""
        version = last.config_version
        old = topology_of(self._config_of(store, version), judges=False)
        return topology_before(
            old,
            later,
            last.state.agreements,
            lambda: [one.document for one in stored_versions(store.root) if one.version <= version],
        )

    def _adopt(
        self, hub: Hub, settings: BatchSettings, first: Mapping[str, int], version: int
    ) -> None:
        """Let the state know the replicas, agreements and topics of a configuration.

        A topic that it knows already keeps its id, by which a loss is found.
        """
        last = hub.ledger.last
        sending, rids = self.settings.topology.subscriptions, settings.topics.values()
        old = self._topology_before(hub.ledger.store, last, settings.topology)
        before = LastTopology(old, last.at_ms)
        state = adopted(last.state, settings.topology, rids, sending, before)
        is_other = state.agreements.keys() != last.state.agreements.keys()
        is_other |= retired_of(state) != retired_of(last.state) or version != last.config_version
        hub.reconfigured = last.state.batch > 0 and is_other
        hub.settings = settings
        hub.outlets = self.outlets(settings)
        hub.resyncs.follow_settings(settings.topology, settings.resync_workers)
        hub.state = state
        hub.ledger.last = replace(
            last,
            state=state,
            offsets={**first, **last.offsets},
            topic_ids={**self.topics.ids, **last.topic_ids},
            config_version=version,
        )

    def _log_retired(self, state: HubState) -> None:
        """Say what is in the state and not in the configuration."""
        rids, agreements = retired_of(state)
        names = [f"replica {self.history.names.get(rid, rid)}" for rid in sorted(rids)]
        names += [f"agreement {name}" for name in sorted(agreements)]
        if names:
            LOG.info("retired, for they are not configured any more: %s", ", ".join(names))
