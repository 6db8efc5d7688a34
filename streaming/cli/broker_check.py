"""What `doctor` asks the broker: whether it answers, and how each topic is."""

from collections.abc import Iterator

from connectors.kafka.topics import TopicRight, Topics
from streaming.cli.checked_item import CheckedItem
from streaming.config.config import Config
from streaming.core.model.errors import HubError

CONNECT_MS = 5_000
_RIGHTS = {
    "changes": (TopicRight.READ, TopicRight.DESCRIBE_CONFIGS),
    "updates": (TopicRight.WRITE, TopicRight.DESCRIBE_CONFIGS),
}


def broker_items(config: Config) -> Iterator[CheckedItem]:
    """The broker, then each topic."""
    kafka = config.kafka
    try:
        with Topics(kafka.bootstrap_servers, kafka.options, CONNECT_MS) as topics:
            yield CheckedItem("broker", is_ok=True, text=f"{kafka.bootstrap_servers} answers")
            yield from _topics(config, topics)
    except HubError as error:
        yield CheckedItem("broker", is_ok=False, text=str(error))


def _topics(config: Config, topics: Topics) -> Iterator[CheckedItem]:
    named = {config.changes_topic(one.name): "changes" for one in config.replicas}
    named |= {config.updates_topic(one.name): "updates" for one in config.agreements}
    there = set(topics.existing([*named]))
    for name, kind in named.items():
        if name not in there:
            missing = "is not there yet: a hub creates it when it starts"
            yield CheckedItem(f"topic {name}", is_ok=True, text=missing)
            continue
        faults = topics.complaints(name, config.limits.record_bytes)
        faults += topics.retention_complaints(name) if kind == "changes" else []
        lacking = [one.name for one in topics.lacking_rights(name, _RIGHTS[kind])]
        if lacking:
            faults.append(f"the hub's user lacks {', '.join(lacking)} on it: grant it by an ACL")
        for fault in faults:
            yield CheckedItem(f"topic {name}", is_ok=False, text=fault)
        if not faults:
            yield CheckedItem(f"topic {name}", is_ok=True, text="settings and rights are right")
