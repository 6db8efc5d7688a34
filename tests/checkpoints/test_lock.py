"""The lock of a state, between real processes."""

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkpoints.commit.lock import FILE, StateLock, only_hub, read_lock
from streaming.core.model.errors import StateError

_HOLDER = """
import sys
from pathlib import Path
from checkpoints.commit.lock import only_hub

with only_hub(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_second_hub_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    """An operator who started it twice sees at once which process to stop."""
    state = tmp_path / "state"
    with (
        only_hub(state),
        pytest.raises(StateError, match=rf"process id {os.getpid()} on .*{re.escape(str(state))}"),
        only_hub(state),
    ):
        pass


def test_the_lock_of_a_killed_hub_is_free_at_once(tmp_path: Path) -> None:
    """A restart after a crash must not wait, nor need a file removed by hand."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(StateError, match=f"process id {holder.pid}"), only_hub(tmp_path):
            pass
        holder.kill()

    with only_hub(tmp_path):
        pass


def test_who_looks_learns_whether_a_hub_holds_it_and_keeps_it_from_none(tmp_path: Path) -> None:
    """Status is asked every second, also by the hub itself, and at the moment when a hub starts."""
    before = read_lock(tmp_path)
    with only_hub(tmp_path):
        held = read_lock(tmp_path)
        with pytest.raises(StateError), only_hub(tmp_path):
            pass
    free = read_lock(tmp_path)

    assert before == StateLock()
    assert (held.is_held, free.is_held) == (True, False)
    assert f"process id {os.getpid()} " in held.owner == free.owner


def test_a_look_delays_a_hub_and_does_not_refuse_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both may come at the same moment."""
    with only_hub(tmp_path):
        pass
    look = (tmp_path / FILE).open(encoding="utf-8")
    fcntl.flock(look, fcntl.LOCK_SH)
    monkeypatch.setattr("time.sleep", lambda _: look.close())

    with only_hub(tmp_path):
        assert look.closed


def test_the_lock_of_another_machine_says_nothing(tmp_path: Path) -> None:
    """A shared file system may not tell one machine of the other's locks."""
    (tmp_path / FILE).write_text("the hub with process id 7 on elsewhere\n", encoding="utf-8")

    assert read_lock(tmp_path).is_held is None
