"""Claims about `import --diagnose`: silent if nothing is missing, else who can send it again."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.packets.format import write_changes, write_updates
from connectors.sqlite.install.install import install
from streaming.core.matrix.packets import PacketFeed, Place
from streaming.core.model.table import ColumnType, Table
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.harness.packet_headers import CHANGES, OUTBOX, UPDATES
from tests.streaming.cli.conftest import Slackwater


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder of packets."""
    made = tmp_path / "packets"
    made.mkdir()
    return made


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A replica that has everything up to hub epoch 40."""
    file = tmp_path / "lisbon.db"
    with closing(sqlite3.connect(file, isolation_level=None)) as client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        table = Table("t", ("id",), {"id": ColumnType.INT64})
        install(client, 2, [table], rows_are_shared=True)
        client.execute("UPDATE _slackwater_position SET session = 's1', last = 40, generation = 1")
    return file


def test_a_replica_names_the_hub_and_the_command(
    slackwater: Slackwater, folder: Path, database: Path
) -> None:
    """Packets pile up in its folder: one before them was lost."""
    ask = ("import", "--diagnose", str(folder), "--database", str(database))
    write_updates(folder, replace(UPDATES, first_prev=44, last_hub_epoch=50), [b'{"v":1}'])

    missing = slackwater(*ask)

    assert missing.code == 1
    assert " ".join(missing.out.split()) == (
        "hub epochs 41 to 44 are missing, which are at the hub;"
        " there: slackwater chepoch to-lisbon --actual"
    )
    write_updates(folder, UPDATES, [b'{"v":1}'])
    assert (slackwater(*ask).code, slackwater(*ask).out) == (0, "")


@pytest.mark.parametrize(
    ("base", "what"),
    [
        (18, f"place 18 of outbox {OUTBOX[:8]} is missing, which is"),
        (20, f"places 18 to 20 of outbox {OUTBOX[:8]} are missing, which are"),
    ],
)
def test_the_hub_names_the_replica_and_the_command(
    slackwater: Slackwater,
    folder: Path,
    state: WrittenState,
    config_file: Path,
    base: int,
    what: str,
) -> None:
    """What lies beyond the hole waits in the folder of its agreement."""
    text = config_file.read_text(encoding="utf-8").replace(
        'consumer = "b"', f'consumer = "b"\npackets = "{folder}"'
    )
    config_file.write_text(text, encoding="utf-8")
    feed = PacketFeed(got=Place(OUTBOX, 17))
    fed = replace(agreement("to-b", 2, 1, ruv(r1=1)), feed=feed)
    state.commit(1, 1, ruv(r1=1), [replica(1), replica(2)], [fed])
    nothing = slackwater("import", "--diagnose")
    assert (nothing.code, nothing.out) == (0, "")
    write_changes(folder, replace(CHANGES, replica="b", base=base, end=base), [b'{"v":1}'])

    missing = slackwater("import", "--diagnose", "--json")

    assert missing.code == 1
    assert missing.facts == [
        {
            "what": what,
            "at": "b",
            "command": "slackwater agent --replica b --packets FOLDER --again ...",
        }
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--diagnose", "."], "the hub's folders are configured"),
        (["--diagnose", "--database", "x.db"], "name the folder of the replica's packets"),
        ([".", "--database", "x.db"], "--database goes with --diagnose"),
    ],
)
@pytest.mark.usefixtures("state")
def test_what_cannot_be_diagnosed(slackwater: Slackwater, arguments: list[str], said: str) -> None:
    """Exit 2, with what to give."""
    answer = slackwater("import", *arguments)

    assert answer.code == 2
    assert said in answer.err
