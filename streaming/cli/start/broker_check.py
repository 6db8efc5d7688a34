"""What `doctor` asks the broker: whether it answers, what this user may do, how each topic is."""

from collections.abc import Iterator

from connectors.kafka.topics import Topics
from streaming.cli.start.checked_item import CheckedItem
from streaming.config.config import Config
from streaming.config.rights import HUB, needed_rights, parse_role
from streaming.core.access.rights import REMEDY, NeededRight, TopicRight, lacking, lacking_text
from streaming.core.model.errors import HubError

CONNECT_MS = 5_000


def broker_items(config: Config, role: str) -> Iterator[CheckedItem]:
    """The broker, the rights of a role, then each topic, which only the hub's user may look at."""
    kafka = config.kafka
    try:
        of = parse_role(config, role)
        with Topics(kafka.bootstrap_servers, kafka.options, CONNECT_MS) as topics:
            yield CheckedItem("broker", is_ok=True, text=f"{kafka.bootstrap_servers} answers")
            needed = needed_rights(config, of)
            refused = lacking(needed, topics.allowed(list({one.topic for one in needed})))
            yield _rights(refused, role, topics.principal)
            if of == HUB:
                yield from _topics(config, topics, refused)
    except HubError as error:
        yield CheckedItem("broker", is_ok=False, text=str(error))


def _rights(refused: list[NeededRight], role: str, principal: str) -> CheckedItem:
    if refused:
        text = f"{lacking_text(refused, principal)}: {REMEDY}"
        return CheckedItem("rights", is_ok=False, text=text)
    user = principal or "this user"
    return CheckedItem("rights", is_ok=True, text=f"{user} has all that role {role} needs")


def _topics(config: Config, topics: Topics, refused: list[NeededRight]) -> Iterator[CheckedItem]:
    """Each topic whose settings may be read."""
    hidden = {one.topic for one in refused if one.right is TopicRight.DESCRIBE_CONFIGS}
    changes = [config.changes_topic(one.name) for one in config.replicas]
    updates = [config.updates_topic(one.name) for one in config.agreements]
    named = [name for name in (*changes, *updates) if name not in hidden]
    there = set(topics.existing(named))
    for name in named:
        if name not in there:
            missing = "is not there yet: a hub creates it when it starts"
            yield CheckedItem(f"topic {name}", is_ok=True, text=missing)
            continue
        faults = topics.complaints(name, config.limits.record_bytes)
        if name in changes:
            faults += topics.input_complaints(name)
        for fault in faults:
            yield CheckedItem(f"topic {name}", is_ok=False, text=fault)
        if not faults:
            yield CheckedItem(f"topic {name}", is_ok=True, text="its settings are right")
