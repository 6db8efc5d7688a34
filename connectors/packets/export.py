"""Packets of a replica: what its outbox holds and no packet does yet, as files for the hub."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from connectors import wire
from connectors.packets.format import PART_BYTES, cut, write_changes
from connectors.packets.header import ChangesHeader
from connectors.packets.outbox import Outbox
from streaming.core.model.change import Change
from streaming.core.model.errors import StateError, WireError


@dataclass(frozen=True, slots=True)
class Sender:
    """A replica as its packets name it, and the folder that they are written to."""

    folder: Path
    replica: str
    rid: int


def export(
    sender: Sender,
    outbox: Outbox,
    replicageneration: str | None,
    covers: int,
    part_bytes: int = PART_BYTES,
) -> list[Path]:
    """Write what is in the outbox and in no packet yet; a packet for each `part_bytes` of it.

    `covers`: the hub epoch up to which the replica has everything. A crash in between writes a
    packet again, perhaps with more behind it. StateError: the folder does not take it.
    """
    return list(_export(sender, outbox, replicageneration, covers, part_bytes))


def _export(
    sender: Sender, outbox: Outbox, replicageneration: str | None, covers: int, part_bytes: int
) -> Iterator[Path]:
    base, opno = outbox.exported
    for part in cut((value for _, value in outbox.records(base)), part_bytes):
        end, opno = base + len(part), max([opno, *map(_opno, part)])
        header = ChangesHeader(
            replicageneration,
            sender.replica,
            sender.rid,
            outbox.id,
            base,
            end,
            outbox.hash_of(base),
            opno,
            covers,
        )
        try:
            yield write_changes(sender.folder, header, part)
        except OSError as error:
            text = f"a packet cannot be written to {sender.folder}: {error.strerror}"
            raise StateError(f"{text}: make room, or give the folder to this user") from error
        outbox.mark_exported(end, opno)
        base = end


def _opno(record: bytes) -> int:
    """The opno of a change; 0 of any other record."""
    if b'"opno":' not in record:
        return 0
    try:
        _, found = wire.decode(record)
    except WireError:  # the hub says what is wrong with it
        return 0
    return (found.opno or 0) if isinstance(found, Change) else 0
