"""`export` and `import`, and what `status` and `level` say of packets."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.commit.last_poll import LastPoll, write_poll
from checkpoints.reading.reader import open_state
from streaming.core.matrix.packets import PacketFeed, Place
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.harness.packet_ends import PacketEnds
from tests.streaming.cli.conftest import CONFIG, Slackwater

PROBLEM = {"packet /x/changes-b.packet is not taken": "it is damaged: fetch it again"}


def now_ms() -> int:
    """The clock of a hub that runs."""
    return round(time.time() * 1000)


@pytest.fixture
def folder(tmp_path: Path, config_file: Path) -> Path:
    """The folder of the packets of b, which is configured."""
    made = tmp_path / "packets"
    made.mkdir()
    fed = 'consumer = "b"\npackets = "packets"\n'
    config_file.write_text(CONFIG.replace('consumer = "b"\n', fed), encoding="utf-8")
    return made


def commit(state: WrittenState, acked: int = 2) -> None:
    """Commit hub epoch 3, with a replica that is heard and one that is sent packets."""
    feed = PacketFeed(7, 1, now_ms() - 60_000, got=Place("box", 41))
    fed = replace(agreement("to-b", 2, acked, ruv(r1=1)), feed=feed)
    others = [agreement("to-a", 1, 3, ruv(r1=1)), fed]
    replicas = [replica(1, covers=3, seen_ms=now_ms()), replica(2, covers=acked, seen_ms=1)]
    state.commit(1, 3, ruv(r1=1), replicas, others, at_ms=now_ms())


@pytest.mark.usefixtures("folder")
def test_export_waits_for_the_hub(slackwater: Slackwater, state: WrittenState) -> None:
    """One writer decides what a packet holds."""
    commit(state)

    assert slackwater("export").code == slackwater("export", "b").code == 0
    commands = open_state(state.root).commands()
    assert [(one["command"], one["argument"]) for one in commands] == [("export", "to-b")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a",), "a is none that is sent packets: use one of b"),
        (("z",), "there is no replica 'z'"),
        (("b", "--sqlite", "x.db"), "give either REPLICA or --sqlite"),
        (("--as-of", "3"), "--as-of goes with --sqlite"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_an_export_that_means_nothing_is_refused(
    slackwater: Slackwater, state: WrittenState, arguments: tuple[str, ...], said: str
) -> None:
    """Its user would wait for a file that nobody writes."""
    commit(state)
    answer = slackwater("export", *arguments)

    assert answer.code != 0
    assert said in answer.err


def test_nobody_is_sent_packets_here(slackwater: Slackwater, state: WrittenState) -> None:
    """The answer names what to configure."""
    commit(state)

    assert "no replica is sent packets; `packets` of its agreement" in slackwater("export").err


def test_import_puts_packets_where_the_hub_looks(
    slackwater: Slackwater, folder: Path, tmp_path: Path
) -> None:
    """Whatever the file is called, and however often it is handed over."""
    elsewhere = tmp_path / "stick"
    elsewhere.mkdir()
    ends = PacketEnds(elsewhere, "b", 2, records=[b"{}", b"{}"])
    path = ends.export()
    renamed = path.rename(elsewhere / "copy of a packet")

    answer = slackwater("import", str(renamed))
    assert (answer.code, answer.err) == (0, "")
    renamed.rename(path)
    assert slackwater("import", str(elsewhere)).code == 0
    assert [one.name for one in folder.iterdir()] == [path.name]
    assert (folder / path.name).read_bytes() == path.read_bytes()


@pytest.mark.usefixtures("folder")
def test_import_refuses_what_no_hub_takes(slackwater: Slackwater, tmp_path: Path) -> None:
    """It says so at once, to whoever has the file at hand."""
    stick = tmp_path / "stick"
    stick.mkdir()
    assert "there is no packet of a replica" in slackwater("import", str(stick)).err

    path = PacketEnds(stick, "a", 1, records=[b"{}"]).export()
    assert "of which no agreement says `packets`" in slackwater("import", str(path)).err

    path.write_bytes(path.read_bytes()[:-1])
    assert "is not whole" in slackwater("import", str(path)).err


def test_doctor_looks_into_the_folders(slackwater: Slackwater, folder: Path) -> None:
    """A folder that is not mounted looks like a replica that is silent."""

    def line() -> tuple[bool, str]:
        found = slackwater("doctor", "--json").facts
        return next((one["is_ok"], one["text"]) for one in found if one["subject"] == "packets")

    assert line() == (True, f"{folder} can be read and written")
    folder.rmdir()
    is_ok, text = line()
    assert not is_ok
    assert "make it, or mount what it is on" in text


@pytest.mark.usefixtures("folder")
def test_one_that_answers_by_packets_is_behind_by_its_own_word(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its silence says nothing; what it has acknowledged does."""
    commit(state)
    write_poll(state.root, LastPoll("1-hub", now_ms(), {"changes.a": 0}, packets=PROBLEM))

    facts = slackwater("status", "--json").facts
    (fed,) = (one for one in facts["agreements"] if one["name"] == "to-b")
    assert (fed["lag_epochs"], fed["packets"]["number"], fed["packets"]["got"]) == (1, 7, 41)
    shown = slackwater("status").out
    assert "to-b: packet 7 was exported" in shown
    assert "problem: packet /x/changes-b.packet is not taken; it is damaged: fetch it" in shown
    assert [one["what"] for one in facts["problems"]] == list(PROBLEM)
