"""What a hub still needs of replicas and agreements that are not configured any more."""

from collections.abc import Mapping, Sequence

from checkpoints.epochs import Plan
from connectors.kafka.originals import read_records
from connectors.kafka.topics import Topics
from streaming.config.config import Config
from streaming.core.model.errors import SourceError
from streaming.hub.settings import BatchSettings
from streaming.hub.source import ranges


def check_readable(plan: Plan, ids: Mapping[str, str], config: Config) -> None:
    """SourceError if records are gone that an unfinished plan reads of a retired replica.

    `ids`: topic -> its id when the plan was made.
    """
    configured = {config.changes_topic(one.name) for one in config.replicas}
    named = ranges(plan.offsets_from, plan.offsets_to)
    topics = [topic for topic in named if topic not in configured]
    there = _existing(config, topics) if topics else {}
    for topic in topics:
        if topic not in there or there[topic] != ids.get(topic, there[topic]):
            first, end = named[topic]
            raise SourceError(
                f"batch {plan.batch} was planned and is not finished; it needs the records {first}"
                f" to {end - 1} of {topic}, a topic that was deleted after its replica was removed"
                " from the configuration: put these records back"
            )


def originals(
    config: Config, settings: BatchSettings, places: Sequence[tuple[int, int]]
) -> dict[tuple[int, int], bytes]:
    """(rid, offset) -> the bytes of that record; none of retired replicas whose topics are gone."""
    kafka, topics = config.kafka, settings.known_topics
    retired = [topics[rid] for rid in {rid for rid, _ in places} - {*settings.topics.values()}]
    if retired:
        gone = {*retired} - _existing(config, retired).keys()
        places = [place for place in places if topics[place[0]] not in gone]
    return read_records(kafka.bootstrap_servers, kafka.options, topics, places)


def _existing(config: Config, topics: Sequence[str]) -> dict[str, str]:
    """Topic -> its id, of those that are there."""
    with Topics(config.kafka.bootstrap_servers, config.kafka.options) as admin:
        there = admin.existing(topics)
        return admin.ids(there) if there else {}
