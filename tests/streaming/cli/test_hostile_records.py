"""No command ends in a traceback by what a record in quarantine holds."""

from pathlib import Path

import pytest

from tests.checkpoints.written_state import WrittenState
from tests.fuzz.readers import failure
from tests.harness.quarantined_records import PATHS, answers_of_the_port, keep
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.core.intake.speaker import RULES

HOSTILE = (
    b"[" * 500_000,
    b'{"kind":' * 500_000,
    b'{"kind":[],"key":{"k":"a"},"table":"t"}',
    b'{"kind":{"a":1}}',
    b'{"kind":7}',
    b'{"v":1,"kind":"change","table":[["t"]],"key":[[[]]],"session":{"a":[]}}',
    b'{"v":1,"kind":"change","csn":{"x":"y"},"table":"t","key":"' + b"x" * 100_000 + b'"}',
    b'{"v":1,"kind":"hello","session":"\\ud800","table":"t","key":{"k":"\\ud800"}}',
    b'{"v":1,"kind":"change","table":"\\u001b[2J\\u202egnp","key":{"\\u001b]0;title\\u0007":"a\\nb"}}',
    b'{"v":' + b"9" * 5_000 + b',"epoch":' + b"1" * 400 + b"e" + b"9" * 400 + b"}",
    b"NaN",
    b"null",
    b"\xef\xbb\xbf{}",
    b"\xff\xfe\x00{",
    b"\x00" * 64,
    b"",
)
"""What a replica may put into its topic; none of it is a record."""


@pytest.fixture(autouse=True)
def quarantine(state: WrittenState) -> None:
    """Each of them in quarantine, as the hub writes it."""
    keep(state, HOSTILE, RULES.tables)


@pytest.mark.parametrize(
    "command",
    [
        ["status"],
        ["level"],
        ["conflicts", "list", "--kind", "uncarried"],
        ["conflicts", "list"],
        ["quarantine", "list", "--all"],
        *(["quarantine", "show", f"1-{offset}"] for offset in range(len(HOSTILE))),
        ["quarantine", "release", "--reason", "json", "--yes"],
        ["quarantine", "drop", "1-0"],
        ["rows", "t"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_a_command_answers(slackwater: Slackwater, command: list[str], form: list[str]) -> None:
    """Whoever looks for the cause must not need another tool for it."""
    found = slackwater(*command, *form)

    assert found.code in (0, 1)
    assert "Traceback" not in found.err
    assert "\x1b" not in found.out
    assert form or "\N{RIGHT-TO-LEFT OVERRIDE}" not in found.out


def test_the_port_answers(config_file: Path) -> None:
    """A supervisor and a page ask it, and 500 tells them nothing."""
    assert answers_of_the_port(config_file) == dict.fromkeys(PATHS, 200) | {"/readyz": 503}


def test_mutated_records_are_read_too() -> None:
    """`make fuzz-check` asks the same of a million."""
    assert failure(seed=7, count=500) is None
