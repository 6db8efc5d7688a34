"""Conflict functions of a user, as a configuration names them by import path."""

import os
import signal
from collections.abc import Sequence
from pathlib import Path

from streaming.core.conflict.winner import ConflictFacts, Image, Winner
from streaming.core.model.change import HUB_RID

MERGE = "tests.harness.user_functions:merge"
FAIL = "tests.harness.user_functions:fail"
FAIL_FOR_HUB = "tests.harness.user_functions:fail_for_hub"
STOP_BROKER = "tests.harness.user_functions:stop_broker"
BY_COUNTER = "tests.harness.user_functions:by_counter"

COUNTER_VARIABLE = "SLACKWATER_TEST_COUNTER"
"""The environment variable that names the counter file of `by_counter`."""

STOPPED_VARIABLE = "SLACKWATER_TEST_STOPPED"
"""The environment variable that names the process that `stop_broker` stops."""


def merge(row: Image | None, change: Image | None, _facts: ConflictFacts) -> Image | Winner:
    """Both values, one after the other; a delete wins."""
    if row is None or change is None:
        return Winner.CHANGE
    return {**row, **change, "v": " + ".join([str(row["v"]), str(change["v"])])}


def fail(_row: Image | None, _change: Image | None, facts: ConflictFacts) -> Winner:
    """Decide nothing."""
    raise ValueError(f"not {facts.key}")


def fail_for_hub(_row: Image | None, _change: Image | None, facts: ConflictFacts) -> Winner:
    """The row, unless the change is the hub's own."""
    if facts.author == HUB_RID:
        raise ValueError("not the hub's")
    return Winner.ROW


def by_counter(row: Image | None, change: Image | None, facts: ConflictFacts) -> Image | Winner:
    """Something else with every call, over processes too: no two runs agree."""
    file = Path(os.environ[COUNTER_VARIABLE])
    number = calls(file)
    file.write_text(str(number + 1))
    answers: Sequence[Winner | None] = (None, Winner.ROW, Winner.CHANGE, Winner.ROW, Winner.CHANGE)
    answer = answers[number % len(answers)]
    if number == 3:
        raise ValueError(f"call {number} of {facts.key}")
    return answer or {**(row or {}), **(change or {}), "v": f"merged by call {number}"}


def calls(file: Path) -> int:
    """How often `by_counter` was called."""
    return int(file.read_text()) if file.exists() else 0


def stop_broker(_row: Image | None, _change: Image | None, _facts: ConflictFacts) -> Winner:
    """The row, once a process is stopped (SIGSTOP); at the second call it is left alone."""
    pid = os.environ.pop(STOPPED_VARIABLE, None)
    if pid is not None:
        os.kill(int(pid), signal.SIGSTOP)
    return Winner.ROW
