"""How a hub comes up: it founds or opens the state, and finishes what a dead hub left."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from checkpoints.commit import Ledger, create_state, open_ledger
from checkpoints.config import commands, settings_document, store_configuration
from checkpoints.epochs import Checkpoint, plan_of
from checkpoints.faults import FaultHook
from checkpoints.store import StateStore
from connectors.kafka.last_updates import last_updates
from streaming.config.config import Config
from streaming.config.history import ConfigHistory
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.errors import SourceError, StateError
from streaming.core.model.membership import adopted, retired_of, sending_only
from streaming.core.model.state import HubState
from streaming.core.model.wording import as_count
from streaming.hub.configured import settings_of, with_retired
from streaming.hub.hub import Hub, resume
from streaming.hub.pipeline import process
from streaming.hub.publishing import publish
from streaming.hub.settings import BatchSettings, Effects
from streaming.hub.source import Source

LOG = logging.getLogger("slackwater")


class FoundTopics(NamedTuple):
    """The configured topics at the start, created where they were missing.

    ids: topic -> its id. first: changes topic -> the oldest offset that is retained. sent: updates
    topic -> the offset that its next record will get.
    """

    ids: Mapping[str, str]
    first: Mapping[str, int]
    sent: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Opening:
    """What a hub comes up with; `settings` are of the present configuration.

    `outlets(settings)`: where a hub with these settings reaches out.
    """

    config: Config
    settings: BatchSettings
    history: ConfigHistory
    topics: FoundTopics
    source: Source
    outlets: Callable[[BatchSettings], Effects]

    def open(self, store: StateStore, name: str, reach: FaultHook, at_ms: int) -> Hub:
        """Found or open the state, finish what a dead hub left, take over the configuration.

        SourceError if an updates topic holds what this hub did not write; StateError if the state
        is older than what was sent from it.
        """
        create_state(store, self._genesis(at_ms), name)
        ledger = open_ledger(store, name, reach)
        self._check_own_updates(ledger.last)
        self._check_put_back(ledger.last.state)
        hub = self._finished(ledger)
        version = store_configuration(store, self.config.document(), at_ms)
        self._adopt(hub, self.settings, self.topics.first, version)
        self._tell_retired(hub.state)
        return hub

    def _genesis(self, at_ms: int) -> Checkpoint:
        """The state before the first batch; its replicageneration names the initial load."""
        generation = format_csn(CsnParts(at_ms // 1000, 0, self.config.hub.rid, 0))
        return Checkpoint(HubState(1, generation), {}, {}, 0, at_ms=at_ms)

    def _finished(self, ledger: Ledger) -> Hub:
        """Finish the batch of a hub that died: from its plan, or only its publishing.

        It is judged under the configuration of its plan, which may be newer than the last commit.
        """
        unfinished, version = ledger.unfinished, ledger.last.config_version
        if unfinished is None:
            config = self._config_of(ledger.store, version)
            hub = resume(ledger, settings_of(config, judges=False), self.outlets(self.settings))
            publish(hub, sending_only(hub.state, self.settings.topology.subscriptions))
            return hub
        plan = plan_of(unfinished, {c.number: c for c in commands(ledger.store, 0)})
        config = self._config_of(ledger.store, plan.config_version)
        settings = with_retired(config, settings_of(config), self.history)
        hub = resume(ledger, settings, self.outlets(settings))
        self._adopt(hub, settings, plan.offsets_from, plan.config_version)
        LOG.info("finishing batch %d of a hub that died", plan.batch)
        if plan.pages:  # what it had prepared is gone: they are read anew
            ledger.drop_uncommitted(plan)
            plan = replace(plan, pages=())
        process(hub, plan, lambda p: self.source.planned(p, settings, config.limits))
        return hub

    def _check_own_updates(self, last: Checkpoint) -> None:
        """Refuse updates topics that another hub wrote: its consumers cannot follow two."""
        if last.state.batch and not last.topic_ids:  # an earlier version's state knows no topics
            return
        foreign = {t: end for t, end in self.topics.sent.items() if end and t not in last.topic_ids}
        if foreign:
            found = ", ".join(f"{t} ({as_count(end, 'record')})" for t, end in foreign.items())
            raise SourceError(
                f"updates that this hub did not write: {found}. Another hub sends there, or the"
                f" state in {self.config.hub.state} is not the one that belongs to these topics:"
                " name that state as hub.state, or give this hub topics of its own with"
                " hub.topic_prefix"
            )

    def _check_put_back(self, state: HubState) -> None:
        """Refuse a state that is behind what was sent: it was put back from a backup.

        What was sent is committed before. A hub that went on here would give hub epochs for the
        second time, and consumers would skip what they take for batches that they have.
        """
        kafka, position = self.config.kafka, (state.generation, state.hub_epoch)
        last = last_updates(kafka.bootstrap_servers, kafka.options, self.topics.sent)
        ahead = [f"{t} holds hub epoch {p.hub_epoch}" for t, p in last.items() if p > position]
        if ahead:
            raise StateError(
                f"the state in {self.config.hub.state} ends at hub epoch {state.hub_epoch}, but"
                f" {', '.join(ahead)}: an older state was put back, and a hub that goes on from it"
                " would send other batches under numbers that its consumers have; put the newest"
                " state back"
            )

    def _config_of(self, store: StateStore, version: int) -> Config:
        """The configuration that was stored as this version; before the first, the present one."""
        document = settings_document(store, version) if version else None
        return Config.from_document(document) if document else self.config

    def _adopt(
        self, hub: Hub, settings: BatchSettings, first: Mapping[str, int], version: int
    ) -> None:
        """Let the state know the replicas, agreements and topics of a configuration.

        A topic that it knows already keeps its id, by which a loss is found.
        """
        last = hub.ledger.last
        sending = self.settings.topology.subscriptions
        state = adopted(last.state, settings.topology, settings.topics.values(), sending)
        hub.reconfigured = last.state.batch > 0 and retired_of(state) != retired_of(last.state)
        hub.settings = settings
        hub.outlets = self.outlets(settings)
        hub.state = state
        hub.ledger.last = replace(
            last,
            state=state,
            offsets={**first, **last.offsets},
            topic_ids={**self.topics.ids, **last.topic_ids},
            config_version=version,
        )

    def _tell_retired(self, state: HubState) -> None:
        """Say what is in the state and not in the configuration."""
        rids, agreements = retired_of(state)
        names = [f"replica {self.history.names.get(rid, rid)}" for rid in sorted(rids)]
        names += [f"agreement {name}" for name in sorted(agreements)]
        if names:
            LOG.info("retired, for they are not configured any more: %s", ", ".join(names))
