"""A packet file: written whole or not at all, and verified whole before a record of it is used.

The first line is the header (header.py); behind it stand the records, one per line, as one frame of
Zstandard. The same header and records give the same name and the same bytes, so a packet may be
written again after a crash, and copied any number of times.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, Generic, TypeVar, cast

import zstandard

from connectors.packets.header import (
    HEADER_BYTES,
    ChangesHeader,
    Content,
    Header,
    NewerVersionError,
    PacketKind,
    UpdatesHeader,
    header_text,
    parse_header,
)
from streaming.core.model.errors import HubError, WireError

PART_BYTES = 16 * 2**20
"""How much a file holds, uncompressed, at most; a single record above it has a file of its own."""

FILE_BYTES = 64 * 2**20
"""How much a reader takes from one file, uncompressed, whatever its header says."""

RECORD_BYTES = 32 * 2**20
"""How large a record may be; no larger one can be sent to a topic either."""

SUFFIX = ".packet"
AGAIN = "wait until it is copied, or fetch it again"

_LEVEL = 3
_WINDOW_BYTES = 8 * 2**20

HeaderT = TypeVar("HeaderT", bound=Header)


class PacketFault(StrEnum):
    """Why a file is refused."""

    NOT_A_PACKET = "not a packet"
    """it does not start with a header, or is no ordinary file"""
    NEWER = "newer version"
    """a newer version of the program wrote it"""
    NOT_WHOLE = "not whole"
    """it is shorter than its header says: still being copied, or cut off"""
    DAMAGED = "damaged"
    """its content is not what its header says"""
    TOO_LARGE = "too large"
    """it, or one of its records, is above the limit"""
    OTHER_WAY = "for the other side"
    """a replica was given what a replica wrote, or a hub what a hub wrote"""


class PacketError(HubError):
    """A file that cannot be used as a packet; `fault` says why, the text what to do about it."""

    def __init__(self, path: Path, fault: PacketFault, text: str) -> None:
        super().__init__(f"packet {path} is {fault}: {text}")
        self.path, self.fault = path, fault


@dataclass(frozen=True, slots=True)
class Packet(Generic[HeaderT]):
    """A file that was verified: its header, and its records with a line feed behind each."""

    path: Path
    header: HeaderT
    content: bytes

    def records(self) -> Iterator[bytes]:
        """Its records in order, without line feeds."""
        return (line[:-1] for line in BytesIO(self.content))


# -- writing ----------------------------------------------------------------------------------


def write_updates(
    folder: Path, header: UpdatesHeader, records: Iterable[bytes], part_bytes: int = PART_BYTES
) -> list[Path]:
    """Write a packet of the hub, in as many parts as it needs; one without records is one part.

    `part`, `parts` and `content` of the header are filled in. The files appear one after the other.
    OSError: the folder does not take them. WireError: a record contains a line feed.
    """
    with ExitStack() as stack:
        parts = list[tuple[Content, BinaryIO]]()
        for lines in cut(records, part_bytes, empty=True):
            body = stack.enter_context(_nameless(folder))
            parts.append((_compress(lines, body), body))
        return [
            _write(folder, replace(header, part=part, parts=len(parts), content=content), body)
            for part, (content, body) in enumerate(parts, 1)
        ]


def write_changes(folder: Path, header: ChangesHeader, records: Iterable[bytes]) -> Path:
    """Write records of a replica, those at the places from `header.base` + 1 on, as one file.

    `end` and `content` of the header are filled in. OSError: the folder does not take it.
    WireError: a record contains a line feed.
    """
    with _nameless(folder) as body:
        content = _compress(records, body)
        end = header.base + content.records
        return _write(folder, replace(header, end=end, content=content), body)


def cut(
    records: Iterable[bytes], part_bytes: int = PART_BYTES, *, empty: bool = False
) -> Iterator[list[bytes]]:
    """Cut records into what one file holds each, in order; `empty`: one part if there are none."""
    part, size = list[bytes](), 0
    for record in records:
        if part and size + len(record) + 1 > part_bytes:
            yield part
            part, size = [], 0
        part.append(record)
        size += len(record) + 1
        empty = False
    if part or empty:
        yield part


def _nameless(folder: Path) -> BinaryIO:
    """A file in the folder that has no name, or none for longer than a moment."""
    return cast("BinaryIO", TemporaryFile(dir=folder, prefix=".", suffix=".tmp"))


def _compress(records: Iterable[bytes], body: BinaryIO) -> Content:
    """Write the records into the body, compressed; what they are."""
    digest, count, size = hashlib.sha256(), 0, 0
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    with compressor.stream_writer(body, closefd=False) as frame:
        for record in records:
            if b"\n" in record:
                raise WireError(f"a record contains a line feed: {record[:100]!r}")
            line = record + b"\n"
            digest.update(line)
            frame.write(line)
            count, size = count + 1, size + len(line)
    return Content(count, size, body.tell(), digest.hexdigest())


def _write(folder: Path, header: Header, body: BinaryIO) -> Path:
    """Write a file under another name, and give it its own once the disk has it."""
    path = folder / header.name
    unfinished = folder / f".{header.name}.tmp"
    body.seek(0)
    with unfinished.open("wb") as file:
        file.write(f"{header_text(header)}\n".encode())
        shutil.copyfileobj(body, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_folder(folder)
    return path


def copy_packet(source: Path, folder: Path, header: Header) -> Path:
    """Copy a packet into a folder, under the name that its header gives it.

    One of that name is replaced. OSError: the folder does not take it.
    """
    path, unfinished = folder / header.name, folder / f".{header.name}.tmp"
    with source.open("rb") as read, unfinished.open("wb") as file:
        shutil.copyfileobj(read, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
    sync_folder(folder)
    return path


def sync_folder(folder: Path) -> None:
    """Return once the disk has the names of a folder as they are now."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


# -- reading ----------------------------------------------------------------------------------


def packet_files(folder: Path, kind: PacketKind | None = None) -> list[Path]:
    """The files of a folder that are named as packets of a kind, sorted; OSError if it is none.

    What is written or copied under another name (`.NAME.tmp`, rsync's `.NAME.XXXXXX`) is not among
    them.
    """
    kinds = PacketKind if kind is None else [kind]
    starts = tuple(f"{one}-" for one in kinds)
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.startswith(starts) and path.name.endswith(SUFFIX)
    )


def read_header(path: Path) -> Header:
    """The header alone, and nothing of the content; PacketError if the file is no whole packet."""
    with _opened(path) as file:
        return _header(path, file)


def read(path: Path, record_bytes: int = RECORD_BYTES) -> Packet[UpdatesHeader | ChangesHeader]:
    """A packet, verified whole; PacketError says why it is refused and what to do.

    At most FILE_BYTES and the header are held in memory. `record_bytes`: the largest record.
    """
    with _opened(path) as file:
        header = _header(path, file)
        content = _inflated(path, header.content, file)
    _check(path, header.content, content, record_bytes)
    return Packet(path, header, content)


def read_updates(path: Path, record_bytes: int = RECORD_BYTES) -> Packet[UpdatesHeader]:
    """A packet of the hub; PacketError as `read`."""
    found = read(path, record_bytes)
    if not isinstance(found.header, UpdatesHeader):
        raise PacketError(path, PacketFault.OTHER_WAY, "it is a replica's: give it to the hub")
    return Packet(path, found.header, found.content)


def read_changes(path: Path, record_bytes: int = RECORD_BYTES) -> Packet[ChangesHeader]:
    """A packet of a replica; PacketError as `read`."""
    found = read(path, record_bytes)
    if not isinstance(found.header, ChangesHeader):
        raise PacketError(path, PacketFault.OTHER_WAY, "it is the hub's: give it to the replica")
    return Packet(path, found.header, found.content)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """The file, if it is one: a link of that name is not followed, a pipe not waited for."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            text = "it is no file: copy the file itself here, or move this away"
            raise PacketError(path, PacketFault.NOT_A_PACKET, text)
        with os.fdopen(os.open(path, flags), "rb") as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        why = f"it cannot be read ({error.strerror}): make it readable, or fetch it again"
        raise PacketError(path, PacketFault.NOT_A_PACKET, why) from error


def _header(path: Path, file: BinaryIO) -> Header:
    line = file.readline(HEADER_BYTES + 1)
    if not line:
        raise PacketError(path, PacketFault.NOT_WHOLE, f"it is empty: {AGAIN}")
    if not line.startswith(b"{"):
        text = "it starts with no header: fetch it again, or move it away"
        raise PacketError(path, PacketFault.NOT_A_PACKET, text)
    if not line.endswith(b"\n"):
        if len(line) > HEADER_BYTES:
            text = f"its first line is longer than {HEADER_BYTES} bytes: move it away"
            raise PacketError(path, PacketFault.NOT_A_PACKET, text)
        raise PacketError(path, PacketFault.NOT_WHOLE, f"its header has no end: {AGAIN}")
    try:
        header = parse_header(line[:-1])
    except NewerVersionError as error:
        raise PacketError(path, PacketFault.NEWER, str(error)) from error
    except WireError as error:
        text = f"its header: {error}; fetch it again, or move it away"
        raise PacketError(path, PacketFault.DAMAGED, text) from error
    size, due = os.fstat(file.fileno()).st_size, len(line) + header.content.compressed
    if size < due:
        raise PacketError(path, PacketFault.NOT_WHOLE, f"it has {size} of {due} bytes: {AGAIN}")
    if size > due:
        text = f"it has {size} bytes, its header says {due}: fetch it again"
        raise PacketError(path, PacketFault.DAMAGED, text)
    return header


def _inflated(path: Path, said: Content, file: BinaryIO) -> bytes:
    """The records, and no byte more than the header says, before anything is known of them."""
    if said.bytes > FILE_BYTES:
        text = (
            f"its header says {said.bytes} bytes, a file holds at most {FILE_BYTES}: move it away"
        )
        raise PacketError(path, PacketFault.TOO_LARGE, text)
    inflater = zstandard.ZstdDecompressor(max_window_size=_WINDOW_BYTES)
    try:
        with inflater.stream_reader(file, closefd=False) as frame:
            return frame.read(said.bytes + 1)
    except (zstandard.ZstdError, MemoryError) as error:
        text = f"its content cannot be decompressed ({error}): fetch it again"
        raise PacketError(path, PacketFault.DAMAGED, text) from error


def _check(path: Path, said: Content, content: bytes, record_bytes: int) -> None:
    found = Content(
        content.count(b"\n"), len(content), said.compressed, hashlib.sha256(content).hexdigest()
    )
    if found != said:
        shown = f"{found.records} records of {found.bytes} bytes, digest {found.sha256[:8]}"
        due = f"{said.records} of {said.bytes}, {said.sha256[:8]}"
        text = f"it holds {shown}, its header says {due}: fetch it again"
        raise PacketError(path, PacketFault.DAMAGED, text)
    if content and not content.endswith(b"\n"):
        raise PacketError(path, PacketFault.DAMAGED, "its last record has no end: fetch it again")
    largest = max((len(line) - 1 for line in BytesIO(content)), default=0)
    if largest > record_bytes:
        text = f"it holds a record of {largest} bytes, at most {record_bytes} are taken"
        raise PacketError(path, PacketFault.TOO_LARGE, f"{text}: raise limits.record_bytes")
