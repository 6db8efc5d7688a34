"""A packet file: the same again for the same input, and no byte of another file is ever used."""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from connectors.packets import format as packet_format
from connectors.packets.format import (
    FILE_BYTES,
    Packet,
    PacketError,
    PacketFault,
    packet_files,
    read,
    read_changes,
    read_header,
    read_updates,
    write_changes,
    write_updates,
)
from connectors.packets.header import Content, Header, PacketKind, header_text
from streaming.core.model.errors import WireError
from tests.harness.examples import examples
from tests.harness.packet_headers import CHANGES, HASH, UPDATES

RECORDS = [b'{"n":%d,"text":"%s"}' % (number, b"x" * number) for number in range(40)]
lines = st.lists(st.binary(min_size=1, max_size=40).filter(lambda one: b"\n" not in one))


@examples(30)
@given(records=lines)
def test_records_are_read_as_they_were_written(
    records: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In order, each byte, whatever a record holds but a line feed."""
    folder = tmp_path_factory.mktemp("packets")

    path = write_changes(folder, CHANGES, records)

    found = read_changes(path)
    assert list(found.records()) == records
    assert found.header.end - found.header.base == found.header.content.records == len(records)
    assert read_header(path) == found.header


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    """A hub that died between writing and removing writes again what may be under way already."""
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        write_updates(folder, UPDATES, RECORDS, part_bytes=300)
    write_updates(folders[1], UPDATES, RECORDS, part_bytes=300)

    first, second = (
        {path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders
    )
    assert first == second
    assert len(first) > 2


def test_a_large_packet_is_cut_into_parts(tmp_path: Path) -> None:
    """Mail, sticks and FTP have limits; a record above the limit travels alone."""
    large = b"x" * 1_000

    paths = write_updates(tmp_path, UPDATES, [*RECORDS, large, b"last"], part_bytes=500)

    parts = [read_updates(path) for path in paths]
    assert [part.header.part for part in parts] == list(range(1, len(paths) + 1))
    assert {part.header.parts for part in parts} == {len(paths)}
    assert [record for part in parts for record in part.records()] == [*RECORDS, large, b"last"]
    assert sorted(packet_files(tmp_path)) == paths
    assert [part.header.content.bytes for part in parts if part.header.content.bytes > 500] == [
        1_001
    ]


def test_a_packet_may_be_without_records(tmp_path: Path) -> None:
    """An export with nothing to send still tells the replica up to where the hub has its own."""
    (path,) = write_updates(tmp_path, UPDATES, [])

    found = read_updates(path)
    assert (found.content, found.header.got) == (b"", UPDATES.got)


def test_the_tools_of_any_machine_read_it(tmp_path: Path) -> None:
    """`head -1 FILE` shows the header; the rest is a plain frame of Zstandard."""
    (path,) = write_updates(tmp_path, UPDATES, RECORDS)

    head = subprocess.run(["head", "-1", path], capture_output=True, check=True).stdout
    body = path.read_bytes().partition(b"\n")[2]
    assert json.loads(head)["agreement"] == "to-lisbon"
    content = zstandard.ZstdDecompressor().decompressobj().decompress(body)
    assert content == b"".join(record + b"\n" for record in RECORDS)


def test_a_line_feed_within_a_record_is_refused(tmp_path: Path) -> None:
    """It would be two records at the other side; nothing is left in the folder."""
    with pytest.raises(WireError, match="contains a line feed"):
        write_changes(tmp_path, CHANGES, [b"one\ntwo"])

    assert list(tmp_path.iterdir()) == []


def written(folder: Path) -> Path:
    """A packet in the folder."""
    return write_changes(folder, CHANGES, RECORDS)


def forged(folder: Path, content: bytes, **said: object) -> Path:
    """A file with this content, whose header says something else of it."""
    body = zstandard.ZstdCompressor(write_checksum=True).compress(content)
    true = Content(content.count(b"\n"), len(content), len(body), HASH)
    header = replace(UPDATES, content=replace(true, **said))  # type: ignore[arg-type]
    path = folder / header.name
    path.write_bytes(f"{header_text(header)}\n".encode() + body)
    return path


BOMB = b"\n" * (FILE_BYTES + 1)


def put(folder: Path, content: bytes) -> Path:
    """A file of this content under the name of a packet."""
    path = folder / CHANGES.name
    path.write_bytes(content)
    return path


def folder_at(folder: Path) -> Path:
    """A folder under the name of a packet."""
    (folder / UPDATES.name).mkdir()
    return folder / UPDATES.name


def pipe_at(folder: Path) -> Path:
    """A pipe under the name of a packet, which nobody writes to."""
    os.mkfifo(folder / UPDATES.name)
    return folder / UPDATES.name


def link_at(folder: Path) -> Path:
    """A link to a packet."""
    target = written(folder)
    (folder / UPDATES.name).symlink_to(target)
    return folder / UPDATES.name


FAULTS: dict[str, tuple[Callable[[Path], Path], PacketFault, str]] = {
    "empty": (lambda of: put(of, b""), PacketFault.NOT_WHOLE, "wait until it is copied"),
    "no packet": (lambda of: put(of, b"\x89PNG"), PacketFault.NOT_A_PACKET, "no header"),
    "no end of the header": (lambda of: put(of, b'{"v":1'), PacketFault.NOT_WHOLE, "no end"),
    "half a character": (
        lambda of: put(of, b'{"v":1,"kind":"\\ud800"}\n'),
        PacketFault.DAMAGED,
        "member kind",
    ),
    "a header without end": (
        lambda of: put(of, b"{" + b" " * 2**21),
        PacketFault.NOT_A_PACKET,
        "longer than",
    ),
    "another object": (lambda of: put(of, b"{}\n"), PacketFault.DAMAGED, "member v is missing"),
    "newer": (lambda of: put(of, b'{"v":2}\n'), PacketFault.NEWER, "upgrade this side"),
    "cut off": (
        lambda of: put(of, written(of).read_bytes()[:-1]),
        PacketFault.NOT_WHOLE,
        "wait until it is copied, or fetch it again",
    ),
    "something behind it": (
        lambda of: put(of, written(of).read_bytes() + b"x"),
        PacketFault.DAMAGED,
        "fetch it again",
    ),
    "other content": (lambda of: forged(of, b"a\nb\n"), PacketFault.DAMAGED, "fetch it again"),
    "fewer records than said": (
        lambda of: forged(of, b"a\nb\n", records=3),
        PacketFault.DAMAGED,
        "2 records of 4 bytes",
    ),
    "more bytes than said": (
        lambda of: forged(of, b"a\nb\n", bytes=3, records=1),
        PacketFault.DAMAGED,
        "fetch it again",
    ),
    "a bomb that says so": (lambda of: forged(of, BOMB), PacketFault.TOO_LARGE, "at most"),
    "a bomb that does not": (
        lambda of: forged(of, BOMB, records=1, bytes=2),
        PacketFault.DAMAGED,
        "3 records of 3 bytes",
    ),
    "a folder": (folder_at, PacketFault.NOT_A_PACKET, "no file"),
    "a pipe": (pipe_at, PacketFault.NOT_A_PACKET, "no file"),
    "a link": (link_at, PacketFault.NOT_A_PACKET, "copy the file itself"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_file_that_is_no_packet_is_refused_with_the_reason(name: str, tmp_path: Path) -> None:
    """By its name, with what to do; a bomb costs no more than what its header may say."""
    make, fault, advice = FAULTS[name]
    path = make(tmp_path)

    with pytest.raises(PacketError, match=advice) as refused:
        read(path)

    assert refused.value.fault is fault
    assert str(path) in str(refused.value)


def test_a_record_above_the_limit_is_refused(tmp_path: Path) -> None:
    """Its topic would not take it, in the midst of the packet."""
    path = written(tmp_path)

    with pytest.raises(PacketError, match=r"limits\.record_bytes") as refused:
        read(path, record_bytes=50)

    assert refused.value.fault is PacketFault.TOO_LARGE


def test_a_packet_of_the_other_way_is_no_packet_of_this_one(tmp_path: Path) -> None:
    """A folder that both sides share holds both."""
    (updates,), changes = write_updates(tmp_path, UPDATES, RECORDS), written(tmp_path)

    with pytest.raises(PacketError, match="give it to the hub"):
        read_updates(changes)
    with pytest.raises(PacketError, match="give it to the replica"):
        read_changes(updates)


def test_what_is_not_named_as_a_packet_is_not_looked_at(tmp_path: Path) -> None:
    """What is being copied stands there under another name, and so does what is none of ours."""
    updates = write_updates(tmp_path, UPDATES, RECORDS, part_bytes=300)
    changes = written(tmp_path)
    for name in (f".{CHANGES.name}.tmp", f".{CHANGES.name}.x7Qz1", "README", "lisbon.outbox"):
        (tmp_path / name).write_bytes(b"x")

    assert packet_files(tmp_path) == [changes, *updates]
    assert packet_files(tmp_path, PacketKind.UPDATES) == updates
    assert packet_files(tmp_path, PacketKind.CHANGES) == [changes]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a packet."""
    (path,) = write_updates(tmp_path_factory.mktemp("sound"), UPDATES, RECORDS)
    return path.read_bytes()


def read_bytes(path: Path, content: bytes) -> Packet[Header] | PacketError:
    """What a reader makes of these bytes."""
    path.write_bytes(content)
    try:
        return packet_format.read(path)
    except PacketError as error:
        return error


@examples(300, share=1)
@given(data=st.data())
def test_a_damaged_packet_is_refused_or_says_what_it_said(
    data: st.DataObject, sound: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever happened to its bytes: cut, changed, doubled; it never crashes who reads it.

    Zstandard has bits without a meaning; a file in which one is changed holds the same.
    """
    place = data.draw(st.integers(0, len(sound) - 1))
    length = data.draw(st.integers(0, 8))
    other = data.draw(st.binary(max_size=8))
    damaged = sound[:place] + other + sound[place + length :]

    found = read_bytes(tmp_path_factory.getbasetemp() / UPDATES.name, damaged)

    if isinstance(found, Packet):
        assert list(found.records()) == RECORDS
        assert replace(found.header, content=UPDATES.content) == UPDATES
    else:
        assert found.fault is not PacketFault.NEWER or b'"v":1' not in damaged
