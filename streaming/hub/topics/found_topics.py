"""The configured topics as a hub finds them when it starts, and whether it may use them."""

import logging
from collections.abc import Collection, Mapping
from typing import NamedTuple

from connectors.kafka.topics import Topics
from streaming.config.config import Config
from streaming.config.rights import HUB, needed_rights
from streaming.core.access.rights import REMEDY, NeededRight, TopicRight, lacking, lacking_text
from streaming.core.model.errors import SourceError
from streaming.hub.batch.settings import BatchSettings

LOG = logging.getLogger("slackwater")


class FoundTopics(NamedTuple):
    """The configured topics at the start, created where they were missing.

    ids: topic -> its id. first: changes topic -> the oldest offset that is retained. sent: updates
    topic -> the offset that its next record will get. A changes topic that Kafka hides is in none.
    """

    ids: Mapping[str, str]
    first: Mapping[str, int]
    sent: Mapping[str, int]

    def check_known(self, known: Collection[str], needed: Collection[NeededRight]) -> None:
        """SourceError if a topic that may not be read is none of these, which a hub knew before."""
        hidden = {one.topic for one in needed} - {*self.ids, *known}
        if hidden:
            refused = [one for one in needed if one.topic in hidden]
            raise SourceError(f"{lacking_text(refused, '')}: {REMEDY}")


def topics_of(config: Config, settings: BatchSettings) -> FoundTopics:
    """The topics of a configuration; SourceError as `find_topics`."""
    kafka, needed = config.kafka, needed_rights(config, HUB)
    with Topics(kafka.bootstrap_servers, kafka.options) as admin:
        record_bytes = config.limits.record_bytes
        return find_topics(admin, needed, settings.topics, settings.updates_topics, record_bytes)


def find_topics(
    admin: Topics,
    needed: Collection[NeededRight],
    changes: Collection[str],
    updates: Collection[str],
    record_bytes: int,
) -> FoundTopics:
    """The topics, created and validated; SourceError names every right that the hub lacks.

    What only one replica lacks is no reason to stop the others: a changes topic that may not be
    read makes it unreadable, an updates topic that may not be written unwritable.
    """
    hidden = check_rights(admin, needed, changes, updates)
    seen = [topic for topic in changes if topic not in hidden]
    admin.ensure([*seen, *updates], record_bytes, changes)
    ids = admin.ids([*seen, *updates])
    return FoundTopics(ids, admin.first_offsets(seen), admin.end_offsets([*updates]))


def check_rights(
    admin: Topics,
    needed: Collection[NeededRight],
    changes: Collection[str],
    updates: Collection[str],
) -> Collection[str]:
    """The changes topics that Kafka hides; SourceError if no hub can work with what it grants."""
    allowed = admin.allowed([*changes, *updates])
    refused = lacking(needed, allowed)
    hidden = {topic for topic in changes if topic in allowed and not allowed[topic]}
    is_mute = bool(updates) and all(
        NeededRight(topic, TopicRight.WRITE) in refused for topic in updates
    )
    text = f"{lacking_text(refused, admin.principal)}: {REMEDY}"
    if is_mute or not all(_is_of_one_replica(one, changes, hidden) for one in refused):
        raise SourceError(text)
    if refused:
        LOG.warning("%s", text)
    return hidden


def _is_of_one_replica(one: NeededRight, changes: Collection[str], hidden: Collection[str]) -> bool:
    """Return whether a right that is lacking stops one replica and no other."""
    if one.topic in changes:
        return one.right in (TopicRight.READ, TopicRight.WRITE) or one.topic in hidden
    return one.right is TopicRight.WRITE
