"""Where a replica starts anew whose database is emptied: behind all that its topics hold."""

import threading
from contextlib import closing
from dataclasses import dataclass

from connectors.agent.access import KafkaAccess
from connectors.agent.found import KnownOwn
from connectors.agent.outage import Outage
from connectors.agent.own_topic import OwnTopic, compare
from connectors.agent.settings import AgentSettings
from connectors.agent.topics import ChangesTopic, TopicReader
from connectors.kafka.options import LiveOptions


@dataclass(frozen=True, slots=True)
class NewStart:
    """Where a replica starts anew: the ends of its two topics, and what its own one holds."""

    past: OwnTopic
    changes_end: int
    updates_end: int


def new_start(
    settings: AgentSettings, compared_up_to: tuple[int, OwnTopic], known: KnownOwn
) -> NewStart:
    """Read both topics to their ends; `compared_up_to`: see ReplicaStore.

    `known`: what the hub knows of the replica, which its topic may hold no more.
    """
    outage = Outage(threading.Event(), KafkaAccess(settings, LiveOptions(settings.options)))
    offset, past = compared_up_to
    with outage.logged:
        changes = ChangesTopic(outage).read(offset)
        end = compare(past, changes, offset, settings.rid, lambda _: None)
        updates_end = 0
        if settings.updates_topic:
            with closing(TopicReader(outage, settings.updates_topic, 0)) as updates:
                updates_end = updates.end()
    past.csn, past.opno = max(past.csn, known.csn), max(past.opno, known.opno)
    return NewStart(past, end, updates_end)
