"""What packets are missing, at the hub or at a replica, and the command that brings them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checkpoints.reading.reader import Reader
from connectors.packets.arrived import together
from connectors.packets.format import PacketError, packet_files, read_header
from connectors.packets.header import ChangesHeader, Header, PacketKind, UpdatesHeader
from connectors.packets.missing import (
    MissingEpochs,
    MissingParts,
    MissingPlaces,
    OtherOutbox,
    missing_changes,
    missing_updates,
)
from streaming.config.config import Config
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import ConfigError
from streaming.core.text.wording import as_numbered
from streaming.facts.consumers.ruvs import state_of
from streaming.facts.names import committed


@dataclass(frozen=True, slots=True)
class MissingPackets:
    """What is missing, where it is, and the command that sends it again."""

    what: str
    at: str
    command: str


def missing_at_hub(config: Config, reader: Reader) -> list[MissingPackets]:
    """What waits in the folders of the hub's agreements, and for what."""
    hub, found = committed(reader), list[MissingPackets]()
    for agreement in config.by_packets.values():
        feed = state_of(hub, agreement.name).feed
        assert agreement.packets is not None  # noqa: S101  # it is by packets
        headers = _changes(agreement.packets, agreement.consumer)
        missing = missing_changes(headers, feed.got if feed else None)
        found += (_of_changes(one, agreement.packets) for one in missing)
    return found


def _of_changes(one: MissingPlaces | OtherOutbox, folder: Path) -> MissingPackets:
    if isinstance(one, OtherOutbox):
        return MissingPackets(
            f"packet {one.name} is of outbox {one.outbox[:8]}, and the hub goes on with another one"
            f" of {one.replica}: if that outbox is over, it can be removed",
            "the hub",
            f"rm {folder / one.name}",
        )
    places = as_numbered("place", one.first, one.last)
    return MissingPackets(
        f"{places} of outbox {one.outbox[:8]} {_are_missing(one)}",
        one.replica,
        f"slackwater agent --replica {one.replica} --packets FOLDER --again ...",
    )


def missing_at_replica(folder: Path, replica: tuple[int, Position]) -> list[MissingPackets]:
    """What waits in a replica's folder, and for what; `replica`: its rid and position."""
    rid, position = replica
    headers = {
        path: header
        for path, header in _headers(folder, PacketKind.UPDATES)
        if isinstance(header, UpdatesHeader) and header.rid == rid
    }
    found = missing_updates(together(headers.items()), position)
    return [
        MissingPackets(
            _missing_text(one), "the hub", f"slackwater chepoch {one.agreement} --actual"
        )
        for one in found
    ]


def _missing_text(one: MissingEpochs | MissingParts) -> str:
    if isinstance(one, MissingEpochs):
        return f"{as_numbered('hub epoch', one.first, one.last)} {_are_missing(one)}"
    parts = ", ".join(map(str, one.parts))
    return f"part {parts} of packet {one.number} is missing, which is"


def _are_missing(one: MissingEpochs | MissingPlaces) -> str:
    return "is missing, which is" if one.first == one.last else "are missing, which are"


def _changes(folder: Path, replica: str) -> Iterator[ChangesHeader]:
    for _, header in _headers(folder, PacketKind.CHANGES):
        if isinstance(header, ChangesHeader) and header.replica == replica:
            yield header


def _headers(folder: Path, kind: PacketKind) -> Iterator[tuple[Path, Header]]:
    """The packets of a folder; what is damaged is not there (`lspacket` names it)."""
    try:
        files = packet_files(folder, kind)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be read ({error.strerror}): name a folder") from error
    for path in files:
        try:
            yield path, read_header(path)
        except (PacketError, FileNotFoundError):
            continue
