"""Claims about `lspacket` and about an agent that works on packets."""

import json
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.packets.format import packet_files, read_changes, write_changes, write_updates
from connectors.sqlite.install.install import install
from streaming.core.model.table import ColumnType, Table
from tests.harness.hub_process import wait_until
from tests.harness.packet_headers import CHANGES, UPDATES
from tests.streaming.cli.conftest import CONFIG, Slackwater

NEXT = replace(UPDATES, number=13, first_prev=44, last_hub_epoch=50)
"""It follows UPDATES."""

TABLE = Table("t", ("id",), {"id": ColumnType.INT64})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two packets of the hub, one after the other, and one of a replica."""
    made = tmp_path / "packets"
    made.mkdir()
    for header in (UPDATES, NEXT):
        write_updates(made, header, [b'{"v":1}', b'{"v":1}'])
    write_changes(made, CHANGES, [b'{"v":1}'])
    return made


def test_a_star_marks_the_first_of_each_chain(slackwater: Slackwater, folder: Path) -> None:
    """By what the folder tells, the other depends on one that waits."""
    answer = slackwater("lspacket", str(folder))

    lines = [line.split() for line in answer.out.splitlines() if "packet" in line]
    stars = [line[1].split("-")[0:3] for line in lines if line[0] == "*"]
    assert answer.code == 0
    assert [one[0] for one in stars] == ["changes", "updates"]
    assert "berlin 912 to 950 (hub epochs 41 to 44)" in answer.out
    assert "place 18 " in answer.out
    packets = slackwater("lspacket", str(folder), "--json").facts["packets"]
    assert [one["is_next"] for one in packets] == [True, True, False]


def test_the_position_of_a_database_says_more(
    slackwater: Slackwater, folder: Path, tmp_path: Path
) -> None:
    """One that has applied the first packet can apply the second."""
    database = tmp_path / "lisbon.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        install(client, 2, [TABLE], rows_are_shared=True)
        client.execute("UPDATE _slackwater_position SET session = 's1', last = 44, generation = 1")

    answer = slackwater("lspacket", str(folder), "--database", str(database), "--json")

    assert [(one["state"], one["is_next"]) for one in answer.facts["packets"]] == [
        (None, False),
        ("applied", False),
        ("next", True),
    ]


def test_a_file_that_is_none_is_listed_with_its_reason(
    slackwater: Slackwater, folder: Path
) -> None:
    """Exit 1; the others are listed all the same."""
    first = packet_files(folder)[0]
    first.write_bytes(first.read_bytes()[:-3])

    answer = slackwater("lspacket", str(folder))

    assert answer.code == 1
    assert f"packet {first} is not whole" in answer.out.replace("\n", " ")
    assert "hub epochs 45 to 50" in answer.out
    refused = slackwater("lspacket", str(folder), "--json").facts["refused"]
    assert len(refused) == 1


def test_a_dump_is_the_header_and_the_records(slackwater: Slackwater, folder: Path) -> None:
    """Lines of JSON, for `jq`."""
    (path,) = packet_files(folder)[:1]

    lines = slackwater("lspacket", str(path), "--dump").out.splitlines()

    assert [json.loads(line)["v"] for line in lines] == [1, 1]
    assert json.loads(lines[0])["replica"] == "lisbon"


def test_a_folder_that_is_not_there_cannot_be_listed(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    """Another exit code than that of a damaged packet."""
    answer = slackwater("lspacket", str(tmp_path / "none"))

    assert answer.code not in (0, 1)
    assert "name a folder" in answer.err


@pytest.mark.parametrize("option", [["--again"], ["--outbox", "f"]])
@pytest.mark.usefixtures("config_file")
def test_options_of_packets_need_a_folder(slackwater: Slackwater, option: list[str]) -> None:
    """Ignored in silence, the user would believe them to be in force."""
    answer = slackwater("agent", "--replica", "a", "--database", "a.db", *option)

    assert answer.code == 2
    assert "--outbox and --again go with --packets FOLDER" in answer.err


@pytest.mark.parametrize(
    ("replica", "more", "said"),
    [
        ("a", [], "a is fed by packets, as `packets` of its agreement says: give --packets"),
        ("b", ["--packets", "."], "no agreement says `packets` for b"),
    ],
)
def test_an_agent_that_is_started_the_other_way_is_refused(
    slackwater: Slackwater, config_file: Path, replica: str, more: list[str], said: str
) -> None:
    """Its writes would go where nobody looks, and nothing would tell."""
    config = CONFIG.replace('consumer = "a"', 'consumer = "a"\npackets = "at_the_hub"')
    config_file.write_text(config, encoding="utf-8")

    answer = slackwater("agent", "--replica", replica, "--database", "a.db", *more)

    assert answer.code == 2
    assert said in answer.err


def test_an_agent_without_kafka_exports_what_is_left_when_it_is_stopped(tmp_path: Path) -> None:
    """Its configuration has no [kafka]; SIGTERM ends it in order, the last change on its way."""
    config = CONFIG.replace('[kafka]\nbootstrap_servers = "localhost:9092"\n', "")
    config = config.replace('consumer = "a"', 'consumer = "a"\npackets = "at_the_hub"')
    (tmp_path / "hub.toml").write_text(config, encoding="utf-8")
    packets, database = tmp_path / "packets", tmp_path / "a.db"
    packets.mkdir()
    with closing(sqlite3.connect(database)) as client, client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    agent = subprocess.Popen(
        [
            *(sys.executable, "-m", "streaming.cli.main", "agent", "--config"),
            *(str(tmp_path / "hub.toml"), "--replica", "a", "--database", str(database)),
            *("--packets", str(packets), "--every", "3600"),
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: agent.poll() is not None or packet_files(packets) != [], lambda: "a packet")
    with closing(sqlite3.connect(database, timeout=60)) as client, client:
        client.execute("INSERT INTO t VALUES (5)")

    agent.send_signal(signal.SIGTERM)
    _, errors = agent.communicate(timeout=60)

    assert agent.returncode == 0, errors
    found = [read_changes(path) for path in packet_files(packets)]
    assert [one.header.replica for one in found] == ["a", "a"]
    last = [record for record in found[-1].records() if b'"kind":"change"' in record]
    assert [json.loads(one)["key"] for one in last] == [{"id": "5"}]
    assert (packets / "a.outbox").exists()
