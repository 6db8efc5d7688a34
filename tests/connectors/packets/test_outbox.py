"""A replica's outbox: what is published is there for whoever opens it next, at one place."""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.packets.export import Sender, export
from connectors.packets.format import packet_files, read_changes
from connectors.packets.outbox import Outbox, Scrubbed
from streaming.core.model.errors import StateError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the outbox is."""
    return tmp_path / "lisbon.outbox"


@pytest.fixture
def outbox(path: Path) -> Iterator[Outbox]:
    """A new outbox with three records."""
    with closing(Outbox.open(path, "lisbon", has_published=False)) as made:
        made.publish([b"one", b"two"])
        made.publish([b"three"])
        yield made


def test_what_is_published_is_read_from_any_offset(outbox: Outbox) -> None:
    """As from a topic: the offset of a record is the number of those before it."""
    assert list(outbox.read(0)) == [(0, b"one"), (1, b"two"), (2, b"three")]
    assert list(outbox.read(2)) == [(2, b"three")]
    assert (outbox.last(), outbox.end) == (b"three", 3)


def test_it_outlives_its_process(outbox: Outbox, path: Path) -> None:
    """Records, id and what was exported; nothing was closed in order."""
    outbox.mark_exported(2, 7)
    id_ = outbox.id
    outbox.close()

    with closing(Outbox.open(path, "lisbon", has_published=True)) as again:
        assert (again.id, again.end, again.exported, again.is_lost) == (id_, 3, (2, 7), False)


def test_what_the_hub_is_not_known_to_have_is_counted(outbox: Outbox, path: Path) -> None:
    """A hub that has more than is scrubbed has told so since, in the midst of a transaction."""
    outbox.scrub(Scrubbed(1))

    assert [outbox.unknown_at_hub(got) for got in (0, 1, 2, 3)] == [2, 2, 1, 0]
    assert outbox.size_bytes() == path.stat().st_size > 0


def test_what_the_hub_has_is_scrubbed_but_for_its_last_record(outbox: Outbox) -> None:
    """By the digest of that one the hub knows that the next packet continues what it has."""
    outbox.scrub(Scrubbed(2, "65e0f1c0000000020000", 1, 4, "s1", "65e0f1c0000000020000"))

    assert list(outbox.read(0)) == [(2, b"three")]
    assert outbox.hash_of(2) == hashlib.sha256(b"two").hexdigest()
    assert outbox.hash_of(1) is None
    assert outbox.scrubbed.session == "s1"
    outbox.scrub(Scrubbed(3))
    outbox.publish([b"four"])
    assert list(outbox.newest_first()) == [b"four"]
    assert outbox.end == 4


def test_one_made_in_place_of_another_is_lost_until_something_is_published(path: Path) -> None:
    """An agent that is started again meanwhile still knows it."""
    for _ in range(2):
        with closing(Outbox.open(path, "lisbon", has_published=True)) as made:
            assert made.is_lost
    with closing(Outbox.open(path, "lisbon", has_published=True)) as made:
        made.publish([b"hello"])
        assert not made.is_lost


def test_a_renewed_one_has_another_id_and_nothing_in_it(outbox: Outbox) -> None:
    """The hub refuses records of the old id at places that it has."""
    id_ = outbox.id

    outbox.renew()

    assert outbox.id != id_
    assert (outbox.end, outbox.exported, outbox.is_lost, outbox.last()) == (0, (0, 0), True, None)


@pytest.mark.usefixtures("outbox")
def test_two_agents_have_not_one_outbox(path: Path) -> None:
    """Both would write to the same places."""
    with pytest.raises(StateError, match=r"another agent has outbox .* open: stop it first"):
        Outbox.open(path, "lisbon", has_published=True)


def test_the_outbox_of_another_replica_is_refused(outbox: Outbox, path: Path) -> None:
    """Its records would be published under the name of this one."""
    outbox.close()

    with pytest.raises(StateError, match="is of replica lisbon, not of berlin"):
        Outbox.open(path, "berlin", has_published=False)


def test_a_newer_format_and_another_file_are_refused(outbox: Outbox, path: Path) -> None:
    """Each with what to do."""
    outbox.close()
    with closing(sqlite3.connect(path)) as client, client:
        client.execute("UPDATE outbox SET format = 2")
    with pytest.raises(StateError, match="of format 2: upgrade this program"):
        Outbox.open(path, "lisbon", has_published=False)

    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StateError, match="put it back from a copy, or move it away"):
        Outbox.open(path, "lisbon", has_published=False)


def test_packets_are_cut_at_their_size_and_follow_each_other(
    outbox: Outbox, tmp_path: Path
) -> None:
    """Base, end and digest join them; a second export finds nothing new."""
    sender = Sender(tmp_path, "lisbon", 2)

    export(sender, outbox, "5f00", 4, part_bytes=8)
    again = export(sender, outbox, "5f00", 4, part_bytes=8)

    packets = [read_changes(path) for path in packet_files(tmp_path)]
    assert [(one.header.base, one.header.end) for one in packets] == [(0, 2), (2, 3)]
    assert [one.header.hash for one in packets] == [None, hashlib.sha256(b"two").hexdigest()]
    assert again == []


def test_a_crash_behind_a_packet_writes_it_again_with_what_is_new(
    outbox: Outbox, tmp_path: Path
) -> None:
    """From the same place on, so the hub skips what it has."""
    sender = Sender(tmp_path, "lisbon", 2)
    export(sender, outbox, None, 0)
    outbox.mark_exported(0, 0)
    outbox.publish([b"four"])

    (path,) = export(sender, outbox, None, 0)

    assert list(read_changes(path).records()) == [b"one", b"two", b"three", b"four"]
    assert len(packet_files(tmp_path)) == 2


def test_a_folder_that_takes_no_packet_is_named(outbox: Outbox, tmp_path: Path) -> None:
    """What was not written is exported again."""
    with pytest.raises(StateError, match=r"cannot be written to .*gone"):
        export(Sender(tmp_path / "gone", "lisbon", 2), outbox, None, 0)

    assert outbox.exported == (0, 0)
