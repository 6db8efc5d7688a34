"""The lock of a state, between real processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkpoints.lock import only_hub
from streaming.core.model.errors import StateError

_HOLDER = """
import sys
from pathlib import Path
from checkpoints.lock import only_hub

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
