"""Claims about shell completion."""

import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "streaming.cli.main"]


def completed(*words: str) -> set[str]:
    """What bash offers for the last of these words."""
    asked = {
        "_SLACKWATER_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["slackwater", *words]),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        COMMAND, env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_commands_are_completed() -> None:
    """Nobody remembers all of them at night."""
    assert completed("re") == {
        *("reinit", "recover", "recoverpacket", "replay", "restore", "resume", "resync"),
        "retire",
    }


def test_a_command_inside_another_is_completed() -> None:
    """The ones that act on records are inside the one that lists them."""
    assert completed("quarantine", "rel") == {"release"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(shell: str) -> None:
    """Where `--install-completion` may not write, it is put into place by hand."""
    named = os.environ | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [*COMMAND, "--show-completion", shell],
        env=named,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "_SLACKWATER_COMPLETE" in done.stdout
