"""The bay: what continues the position is given, what waits stays, what is done with goes."""

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from connectors.packets.arrived import Arrival, ArrivedPacket, together
from connectors.packets.bay import Bay
from connectors.packets.format import packet_files, write_changes, write_updates
from connectors.packets.header import Content, Got, UpdatesHeader
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import Ruv
from tests.harness.packet_headers import CHANGES, OUTBOX, UPDATES

RECORDS = Content(records=1)
IN_S1 = Position("s1", last=40, generation=1, ruv=Ruv("5f00"))


@pytest.mark.parametrize(
    ("arrival", "change"),
    [
        (Arrival.NEXT, {}),
        (Arrival.NEXT, {"first_prev": 39}),
        (Arrival.WAITS, {"first_prev": 41}),
        (Arrival.APPLIED, {"first_prev": 30, "last_hub_epoch": 40}),
        (Arrival.APPLIED, {"first_prev": None, "last_hub_epoch": None, "content": Content()}),
        (Arrival.NEXT, {"first_prev": None, "last_hub_epoch": None}),  # `stopped`
        (Arrival.INCOMPLETE, {"parts": 2}),
        (Arrival.INCOMPLETE, {"parts": 2, "first_prev": 41}),
        (Arrival.OUTDATED, {"generation": 0}),
        (Arrival.OUTDATED, {"session": "s0"}),
        (Arrival.OUTDATED, {"session": None}),
        (Arrival.OUTDATED, {"session": None, "generation": 2}),
        (Arrival.NEXT, {"session": "s0", "generation": 2}),
    ],
)
def test_a_packet_is_judged_by_the_consumers_rule(
    arrival: Arrival, change: dict[str, object]
) -> None:
    """As the record would be that it begins with, but for a gap, behind which it waits."""
    header = replace(UPDATES, **{"content": RECORDS, **change})  # type: ignore[arg-type]

    assert ArrivedPacket(header, {1: Path("a")}).at(IN_S1) is arrival


def test_a_generation_for_which_a_hello_was_sent_leads_to_no_second_one() -> None:
    """However many packets of it are under way."""
    header = replace(UPDATES, content=RECORDS, session="s0", generation=2)
    position = replace(IN_S1, seen_generation=2)

    assert ArrivedPacket(header, {1: Path("a")}).at(position) is Arrival.OUTDATED


def test_parts_are_one_packet_in_hub_order() -> None:
    """A part that is there twice counts once; another session's is none of it."""
    parts = [replace(UPDATES, part=part, parts=2) for part in (2, 1, 1)]
    later = replace(UPDATES, number=11, first_prev=44, last_hub_epoch=50)
    other = replace(UPDATES, session="s2")
    files = [(Path(f"{place}"), one) for place, one in enumerate([later, *parts, other])]

    found = together(files)

    assert [(one.header.session, len(one.files), one.is_whole) for one in found] == [
        ("s1", 2, True),
        ("s2", 1, True),
        ("s1", 1, True),
    ]
    assert found[0].paths == [Path("2"), Path("1")]


@dataclass(slots=True)
class Consumer:
    """A bay, and the position to which its packets lead."""

    bay: Bay
    position: Position
    told: int = 1_000

    def polls(self) -> list[bytes]:
        """What the bay gives at once."""
        self.bay.scanned_s = None
        return [record for _, record in self.bay.poll(0)]


@pytest.fixture
def consumer(tmp_path: Path) -> Consumer:
    """The consumer of an empty folder."""
    made: Consumer
    bay = Bay(tmp_path, UPDATES.rid, lambda: made.position, lambda _: None, lambda: made.told)
    made = Consumer(bay, IN_S1)
    return made


def arrives(folder: Path, header: UpdatesHeader, text: str = "record") -> Path:
    """A packet of one record comes."""
    (path,) = write_updates(folder, header, [text.encode()])
    return path


def test_what_waits_is_given_behind_what_it_follows(
    consumer: Consumer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once that it waits; files are removed once the position has passed them."""
    caplog.set_level(logging.INFO)
    arrives(tmp_path, replace(UPDATES, first_prev=44, last_hub_epoch=50), "second")
    assert [consumer.polls(), consumer.polls()] == [[], []]
    assert caplog.text.count("1 packet waits") == 1

    arrives(tmp_path, replace(UPDATES, number=11), "first")
    assert consumer.polls() == [b"first"]
    consumer.position = replace(IN_S1, last=44)
    assert consumer.polls() == [b"second"]
    consumer.position = replace(IN_S1, last=50)
    assert consumer.polls() == []
    assert packet_files(tmp_path) == []


def test_a_packet_stays_until_the_outbox_tells_that_it_is_applied(
    consumer: Consumer, tmp_path: Path
) -> None:
    """A database that is put back meanwhile gets it again, though nothing says that it lacks it."""
    consumer.told = 43
    path = arrives(tmp_path, UPDATES)
    assert consumer.polls() == [b"record"]
    consumer.position = replace(IN_S1, last=44)
    assert consumer.polls() == []
    assert path.exists()

    consumer.position = IN_S1
    consumer.bay.tried.clear()  # as in the agent that starts with the restored database
    assert consumer.polls() == [b"record"]
    consumer.position, consumer.told = replace(IN_S1, last=44), 44
    assert consumer.polls() == []
    assert not path.exists()


def test_a_packet_that_does_not_move_the_position_is_given_once(
    consumer: Consumer, tmp_path: Path
) -> None:
    """It holds what this agent cannot read; it stays for a newer one."""
    path = arrives(tmp_path, UPDATES)

    assert [consumer.polls(), consumer.polls()] == [[b"record"], []]
    assert path.exists()


def test_nothing_is_given_before_all_parts_are_sound(
    consumer: Consumer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged part is named once, and looked at again when it is another file."""
    first, second = write_updates(tmp_path, UPDATES, [b"x" * 50, b"y" * 50], part_bytes=60)
    sound = second.read_bytes()
    second.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    assert [consumer.polls(), consumer.polls()] == [[], []]
    assert caplog.text.count(f"packet {second} is damaged") == 1

    second.unlink()
    assert consumer.polls() == []
    second.write_bytes(sound)
    assert [consumer.polls(), consumer.polls()] == [[b"x" * 50], [b"y" * 50]]
    assert first.exists()


def test_what_is_for_others_stays_where_it_is(
    consumer: Consumer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Packets of replicas, of another replica's agreement, and of other data, which is named."""
    write_changes(tmp_path, CHANGES, [b"record"])
    arrives(tmp_path, replace(UPDATES, rid=5, agreement="to-rome"))
    arrives(tmp_path, replace(UPDATES, replicageneration="6000", number=14))
    (tmp_path / "updates-x.packet").mkdir()

    assert [consumer.polls(), consumer.polls()] == [[], []]
    assert len(packet_files(tmp_path)) == 4
    assert caplog.text.count("is of another replicageneration, 6000") == 1
    assert caplog.text.count("it is no file") == 1


def test_the_newest_packet_says_what_the_hub_has(consumer: Consumer, tmp_path: Path) -> None:
    """They come in any order, and what is removed was read."""
    for number, place in ((13, 30), (12, 20)):
        header = replace(UPDATES, number=number, got=Got(OUTBOX, place), session="s0")
        arrives(tmp_path, header)
        assert consumer.polls() == []

    assert packet_files(tmp_path) == []
    assert consumer.bay.got == Got(OUTBOX, 30)


def test_a_folder_that_is_gone_is_named(consumer: Consumer, tmp_path: Path) -> None:
    """A mount that went away is no empty folder."""
    consumer.bay.folder = tmp_path / "gone"

    with pytest.raises(StateError, match="gone cannot be read: No such file"):
        consumer.polls()
