"""`doctor`: what a hub needs of its machine and its broker, each line in order or what to do."""

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from checkpoints.root import local_folder
from streaming.cli.exit_codes import ExitCode
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, now, reader_if_any
from streaming.cli.start.port_check import NO_HUB, NOT_ADMITTED, answer_at
from streaming.config.config import Config
from streaming.config.packet_folders import packet_faults
from streaming.config.rights import HUB, Role, needed_rights, parse_role
from streaming.config.sources.load import load
from streaming.core.access.rights import REMEDY, NeededRight, TopicRight, lacking, lacking_text
from streaming.core.access.secret_names import without_login
from streaming.core.model.errors import HubError
from streaming.core.text.wording import as_bytes, as_count
from streaming.facts.freshness import doubt_of, freshness
from streaming.facts.status.hub import hub_status
from streaming.facts.status.schemas import compared_schemas
from streaming.jvm.java import check_java, find_java
from streaming.terminal.output import write_json, write_sentence

if TYPE_CHECKING:
    from connectors.kafka.topics import Topics

CONNECT_MS = 5_000
FREE_SHARE = 0.1
"""The share of a disk from which on it counts as full."""
SKEW_S = 60.0
"""From which difference on two clocks count as wrong."""

OfRole = Annotated[
    str,
    typer.Option(
        "--role",
        metavar="ROLE",
        help="Whose rights the user of kafka.options has to have: hub, agent:REPLICA, level or"
        " observer.",
    ),
]


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """A subject, and how it is or what to do about it."""

    subject: str
    is_ok: bool
    text: str


def doctor(
    *, config: ConfigPath = DEFAULT_CONFIG, role: OfRole = Role.HUB.value, as_json: AsJson = False
) -> None:
    """Check Java, configuration, state, disk, clocks, broker and topics; exit 1 if one is wrong.

    Each is a line: in order, or what to do. Folders of packets have one too. It also names the hub
    that answers at the port, and lists a configuration that cannot be used with the rest.
    """
    found: list[CheckedItem] = []
    for one in checked_items(config, role):
        found.append(one)
        if not as_json:
            write_sentence(f"{'ok' if one.is_ok else 'no'}  {one.subject}: {one.text}")
    if as_json:
        write_json([asdict(one) for one in found])
    if not all(one.is_ok for one in found):
        raise typer.Exit(ExitCode.NO)


def checked_items(path: Path, role: str) -> Iterator[CheckedItem]:
    """Every line, in the order in which a hub needs them."""
    yield CheckedItem("versions", is_ok=True, text=_versions())
    yield _checked("java", _java)
    try:
        config = load(path)
    except HubError as error:
        yield CheckedItem("configuration", is_ok=False, text=str(error))
        return
    counts = as_count(len(config.replicas), "replica"), as_count(len(config.tables), "table")
    yield CheckedItem("configuration", is_ok=True, text=f"{path} is valid: {', '.join(counts)}")
    yield _checked("state", lambda: _state(config))
    yield _checked("disk", lambda: _disk(config))
    if config.by_packets:
        yield _checked("packets", lambda: _packets(config))
    yield _checked("clocks", lambda: _clocks(config))
    yield _checked("schemas", lambda: _schemas(config))
    yield _checked("port", lambda: _port(config))
    yield from _broker(config, role)


def _checked(subject: str, look: Callable[[], str]) -> CheckedItem:
    """What a look says, or the error with its remedy."""
    try:
        return CheckedItem(subject, is_ok=True, text=look())
    except (HubError, OSError) as error:
        return CheckedItem(subject, is_ok=False, text=str(error))


def _versions() -> str:
    packages = ", ".join(
        f"{name} {metadata.version(name)}"
        for name in ("slackwater", "pyspark", "delta-spark", "deltalake")
    )
    return f"{packages}, Python {platform.python_version()}"


def _java() -> str:
    check_java()
    return str(find_java())


def _state(config: Config) -> str:
    root = config.hub.state
    place = _existing(local_folder(root))
    if not os.access(place, os.W_OK):
        raise HubError(f"{place} cannot be written by this user: change its rights, or hub.state")
    reader = reader_if_any(root)
    if reader is None:
        return f"{root}: no hub has run there yet"
    hub = doubt_of(freshness(reader, now().timestamp())) or "a hub is running"
    return f"{root}: hub epoch {reader.commit.state.hub_epoch if reader.commit else 0}; {hub}"


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next(one for one in (path, *path.absolute().parents) if one.exists())


def _disk(config: Config) -> str:
    disk = shutil.disk_usage(_existing(local_folder(config.hub.state)))
    free = f"{as_bytes(disk.free)} of {as_bytes(disk.total)} are free"
    if disk.free < disk.total * FREE_SHARE:
        raise HubError(f"{free}: make room; a hub on a full disk ends")
    return free


def _packets(config: Config) -> str:
    if faults := "; ".join(packet_faults(config)):
        raise HubError(faults)
    folders = dict.fromkeys(str(one.packets) for one in config.by_packets.values())
    return f"{', '.join(folders)} can be read and written"


def _clocks(config: Config) -> str:
    """By the records that the hub has read: their times are their writers'."""
    reader = reader_if_any(config.hub.state)
    if reader is None:
        return "unknown: no hub has run yet"
    status = hub_status(config, reader, now().timestamp())
    ahead = {
        one.name: max(one.clock_ahead_s or 0.0, -(one.seen_age_s or 0.0)) for one in status.replicas
    }
    wrong = [f"{name} is {by_s:.0f} s ahead" for name, by_s in ahead.items() if by_s > SKEW_S]
    if wrong:
        raise HubError(f"{', '.join(wrong)}: correct the clocks (NTP)")
    return f"no replica is more than {SKEW_S:.0f} s ahead"


def _schemas(config: Config) -> str:
    """By what the agents published when they began, or when a schema was changed."""
    found = compared_schemas(config, reader_if_any(config.hub.state))
    matter = [one for one in found.differences if one.matters]
    if matter:
        count = as_count(len(matter), "difference")
        raise HubError(f"{count}, such as {matter[0].place}: `slackwater schema` says what to do")
    if not found.replicas:
        return "unknown: no agent has published one yet"
    known = as_count(len(found.replicas), "replica")
    others = f"; not yet published by {', '.join(found.unknown)}" if found.unknown else ""
    return f"no difference between {known} matters{others}"


def _port(config: Config) -> str:
    http = config.http
    if not http.port:
        return "off"
    at = f"{without_login(http.host)}:{http.port}"
    answer = answer_at(http)
    if answer is None:
        return f"{at} is free"
    if answer is NOT_ADMITTED:
        if http.token is not None:
            raise HubError(f"{at} asks for another token than http.token: another hub's, or an old")
        return f"{at} is the port of a hub, which answers only who has a certificate for it"
    if "error" in answer:
        return f"{at} is the port of a hub that says: {answer['error']}"
    if "state" not in answer:
        raise HubError(f"{at} {NO_HUB}: stop what listens there, or give another http.port")
    if answer["state"] != str(config.hub.state):
        raise HubError(
            f"{at} is the port of another hub, {answer.get('hub')} with its state in"
            f" {answer['state']}: give this one another http.port"
        )
    return f"{at} is the port of this hub, which runs"


def _broker(config: Config, role: str) -> Iterator[CheckedItem]:
    """The broker, the rights of a role, then each topic, which only the hub's user may look at."""
    from connectors.kafka.topics import Topics  # noqa: PLC0415  # it imports a client of Kafka

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


def _topics(config: Config, topics: "Topics", refused: list[NeededRight]) -> Iterator[CheckedItem]:
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
