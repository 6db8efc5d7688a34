"""Claims about output on a terminal, which may be narrow."""

import fcntl
import os
import pty
import re
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from checkpoints.tables import TableName
from streaming.core.model.statuses import AgreementStatus
from streaming.core.tracking.progress import Piece, ResyncMode, WorkKind, begin
from streaming.core.tracking.resync import CoveredPosition, Resync
from streaming.terminal.output import write_table
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater

WIDE = 400
UNSET = {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}
BEGAN_S = 1_767_323_045  # 2026-01-02 03:04:05 UTC


def on_terminal(columns: int, *arguments: str) -> list[str]:
    """The lines that a command writes to a terminal of this width, without their colours."""
    return re.sub("\x1b\\[[0-9;]*m", "", raw_on_terminal(columns, *arguments)).splitlines()


def raw_on_terminal(columns: int, *arguments: str, **variables: str) -> str:
    """All that a command writes to a terminal of this width, with these variables set."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: text for name, text in os.environ.items() if name not in UNSET}
    command = [sys.executable, "-m", "streaming.cli.main", *arguments]
    process = subprocess.Popen(
        command, stdout=far, stdin=subprocess.DEVNULL, env=environment | variables
    )
    os.close(far)
    found = b""
    try:
        while part := os.read(near, 65_536):
            found += part
    except OSError:  # Linux: the other end is closed
        pass
    os.close(near)
    process.wait()
    return found.decode()


@pytest.fixture
def full(state: WrittenState) -> WrittenState:
    """A hub with a conflict, a record in quarantine and a resync that goes on."""
    now_ms = round(time.time() * 1000)
    known = ruv(r1=3, r2=2)
    replicas = [replica(n, covers=4, seen_ms=now_ms) for n in (1, 2)]
    pieces = [Piece("account", WorkKind.PAGE, 400)]
    accounting = begin(ResyncMode.INCREMENTAL, BEGAN_S, pieces)
    accounting = accounting.page_sent("account", 133, '{"id":"7"}', is_last=False)
    resync = Resync(4, CoveredPosition(4, known), BEGAN_S * 1000, accounting)
    in_resync = replace(
        agreement("to-b", 2, 4, known), status=AgreementStatus.RESYNC, resync=resync
    )
    agreements = [agreement("to-a", 1, 4, known), in_resync]
    state.commit(9, 5, known, replicas, agreements, at_ms=now_ms)
    state.append(
        TableName.CONFLICTS,
        {
            "batch": 9,
            "hub_epoch": 5,
            "place": 0,
            "id": "5-0",
            "kind": "insert_exists",
            "table": "account",
            "key": '{"id":"1"}',
            "mre": 3,
            "resolution": "open",
            "loser_csn": csn(2, 1),
            "loser_rid": 1,
            "loser_epoch": 7,
            "winner_csn": csn(2, 2),
            "winner_rid": 2,
            "winner_hub_epoch": 5,
            "at": datetime.fromtimestamp(BEGAN_S, UTC),
        },
    )
    kept = {"batch": 9, "id": "1-4", "action": "kept", "reason": "late", "rid": 1}
    state.append(TableName.QUARANTINE, {**kept, "csn": csn(3, 1), "detail": "late " * 30})
    return state


@pytest.mark.parametrize(
    ("arguments", "whole"),
    [
        (("conflicts", "list"), [csn(2, 1), csn(2, 2), "insert_exists", "2026-01-02", "03:04:05Z"]),
        (("quarantine", "list"), [csn(3, 1), "late"]),
        (("status",), [csn(3, 1), "in_sync", "33.25%", "insert_exists"]),
        (("lacks", "to-a"), [csn(3, 1)]),
        (("resync", "status"), ["incremental", "33.25%", "2026-01-02", "03:04:05Z"]),
    ],
)
@pytest.mark.parametrize("columns", [80, WIDE])
@pytest.mark.usefixtures("full")
def test_a_terminal_shows_csns_and_kinds_whole(
    arguments: tuple[str, ...], whole: list[str], columns: int
) -> None:
    """Half a CSN in one line and half in the next cannot be copied or searched."""
    lines = on_terminal(columns, *arguments)

    words = re.split(r"[\s,()]+", " ".join(lines))
    assert [text for text in whole if text not in words] == []
    assert [line for line in lines if len(line) > columns and "/" not in line] == []


@pytest.mark.usefixtures("full")
def test_a_narrow_terminal_gets_each_row_on_several_lines() -> None:
    """The table as such fits on a wide one only; a record of each row would fill pages."""
    narrow, wide = on_terminal(80, "conflicts", "list"), on_terminal(WIDE, "conflicts", "list")

    assert [line for line in wide if "insert_exists" in line and csn(2, 1) in line]
    (head,) = (line for line in narrow if "kind" in line)
    (first,) = (line for line in narrow if "insert_exists" in line)
    assert head.index("kind") == first.index("insert_exists")
    (second,) = (line for line in narrow if csn(2, 1) in line)
    assert narrow.index(second) == narrow.index(first) + 1
    assert second.startswith("  a ")


@pytest.mark.usefixtures("full")
def test_a_cell_that_is_wider_than_the_terminal_makes_records() -> None:
    """A text of a database is broken between words, under its name."""
    lines = on_terminal(80, "quarantine", "list")

    assert f"CSN            {csn(3, 1)}" in lines
    assert [line for line in lines if line.startswith("what is wrong  late late")]


def test_the_check_of_a_database_fits_on_a_narrow_page(
    slackwater: Slackwater, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complaint is read on the terminal of a server, and its key is copied from there."""
    database = tmp_path / "a.db"
    with closing(sqlite3.connect(database)) as client, client:
        client.execute("CREATE TABLE t (id NUMERIC PRIMARY KEY NOT NULL, email TEXT UNIQUE)")
        client.execute("CREATE TABLE o (t INT REFERENCES t (id) ON DELETE CASCADE)")
        client.execute("INSERT INTO t VALUES ('a b c', 'x')")
    monkeypatch.setenv("COLUMNS", "80")

    lines = slackwater("agent", "check", "--database", str(database)).out.splitlines()

    assert max(map(len, lines)) <= 80
    assert len(lines) > 10
    text = " ".join(lines)
    for part in ('AFTER DELETE ON "t" BEGIN DELETE FROM "o" WHERE "t" = OLD."id"; END', '"a b c"'):
        assert part in text


@pytest.mark.usefixtures("full")
def test_the_variable_columns_is_the_width_of_a_pipe(
    slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever pages the output says how wide the page is."""
    wide = slackwater("conflicts", "list").out.splitlines()
    monkeypatch.setenv("COLUMNS", "80")
    narrow = slackwater("conflicts", "list").out.splitlines()

    assert max(map(len, wide)) > 80
    assert max(map(len, narrow)) <= 80


@pytest.mark.parametrize("columns", [80, WIDE])
@pytest.mark.usefixtures("full")
def test_a_terminal_shows_statuses_in_colour(columns: int) -> None:
    """Green is in order, yellow on its way; who asks for none gets none."""
    shown, plain = (raw_on_terminal(columns, "status", **one) for one in ({}, {"NO_COLOR": "1"}))

    assert "\x1b[32min_sync" in shown
    assert "\x1b[33mresync 33.25%" in shown
    assert "\x1b[32m" not in plain
    assert "in_sync" in plain


@pytest.mark.usefixtures("full")
def test_a_pipe_gets_no_colours(slackwater: Slackwater) -> None:
    """Whoever greps for a status finds it."""
    assert "\x1b[" not in slackwater("status").out


def test_a_table_shows_what_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    """Anybody who writes a row could clear an operator's screen; and wide letters keep columns."""
    write_table(("k", "n"), [("\x1b[2J", 1), ("\x9b2J", 3), ("漢", 20), ("a\nb", None)])

    assert capsys.readouterr().out.splitlines() == [
        "k          n",
        "────────────",
        "\\x1b[2J    1",
        "\\x9b2J     3",
        "漢        20",
        "a          -",
        "b",
    ]
