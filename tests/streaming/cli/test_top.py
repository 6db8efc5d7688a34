"""Claims about `top`: the status on the whole screen, again and again."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time

import pytest

from checkpoints.commit.last_poll import LastPoll, write_poll
from checkpoints.tables import TableName
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import Slackwater

COLUMNS = 80


@pytest.fixture
def two(state: WrittenState) -> WrittenState:
    """A hub with two consumers, one of which lacks a hub epoch, and a record in quarantine."""
    now_ms = round(time.time() * 1000)
    known = ruv(r1=3, r2=2)
    agreements = [agreement("to-a", 1, 5, known), agreement("to-b", 2, 4, known)]
    replicas = [replica(n, covers=4, seen_ms=now_ms) for n in (1, 2)]
    totals = {"accepted": 11, "rejected": 2}
    state.commit(9, 5, known, replicas, agreements, at_ms=now_ms, totals=totals)
    write_poll(state.root, LastPoll(hub="one", at_ms=now_ms, ends={}, ended=False))
    kept = {"batch": 9, "id": "1-4", "action": "kept", "reason": "json", "rid": 1}
    state.append(TableName.QUARANTINE, kept)
    return state


def test_in_a_pipe_it_says_it_once(slackwater: Slackwater, two: WrittenState) -> None:
    """A script or a log gets plain text that ends."""
    assert two.root.exists()

    answer = slackwater("top")

    lines = answer.out.splitlines()
    assert answer.code == 0
    assert lines[0].startswith("centre: hub epoch 5, batch 9, committed ")
    assert "\x1b" not in answer.out
    rows = [line.split() for line in lines]
    assert ["a", "in_sync", "0.0", "s", "0", "0", "no"] in rows  # for the record in quarantine
    assert any(row[:2] == ["b", "in_sync"] and row[-2:] == ["1", "no"] for row in rows)
    assert lines[-1] == "conflicts 0, in quarantine 1"


def test_on_a_terminal_it_goes_on_until_it_is_interrupted(two: WrittenState) -> None:
    """It uses the whole screen, shows what is new without a key, and gives the screen back."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 30, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "streaming.cli.main", "top", "--every", "0.2"]
    process = subprocess.Popen(command, stdout=far, stdin=subprocess.DEVNULL)
    os.close(far)
    found = b""
    while b"hub epoch 5, batch 9" not in found:
        found += os.read(near, 65_536)
    known = ruv(r1=4, r2=2)
    agreements = [agreement("to-a", 1, 6, known), agreement("to-b", 2, 6, known)]
    totals = {"accepted": 12, "rejected": 2}
    now_ms = round(time.time() * 1000)
    two.commit(10, 6, known, [replica(1), replica(2)], agreements, at_ms=now_ms, totals=totals)

    while b"hub epoch 6, batch 10" not in found or "/s accepted" not in _plain(found):
        found += os.read(near, 65_536)
    process.send_signal(signal.SIGINT)
    code = _drained(process, near)

    assert code == 0
    assert b"\x1b[?1049h" in found  # the other screen of the terminal
    assert max(len(line.rstrip()) for line in _plain(found).splitlines()) <= COLUMNS


def _plain(found: bytes) -> str:
    """What stands on the screen, line by line; half a character may be on its way."""
    moved = re.sub(r"\x1b\[[0-9;?]*[HA]", "\n", found.decode(errors="ignore"))  # the cursor
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", moved)


def _drained(process: "subprocess.Popen[bytes]", near: int) -> int:
    """The exit code; what it still writes is read, so that it can end."""
    try:
        while os.read(near, 65_536):
            pass
    except OSError:  # Linux: the other end is closed
        pass
    os.close(near)
    return process.wait()
