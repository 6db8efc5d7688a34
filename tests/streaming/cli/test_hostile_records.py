"""No command ends in a traceback by what a record in quarantine holds."""

import pytest

from checkpoints.tables import TableName
from streaming.core.intake.check import check
from tests.checkpoints.written_state import WrittenState, ruv
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
    b'{"v":1,"kind":"change","table":"\\u001b[2J","key":{"\\u001b]0;title\\u0007":"a\\nb"}}',
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
    state.commit(2, 0, ruv())
    for offset, value in enumerate(HOSTILE):
        found = check(value, 1, RULES.tables)
        assert found.reason is not None
        row = {
            "batch": 1,
            "id": f"1-{offset}",
            "action": "kept",
            "rid": 1,
            "offset": offset,
            "topic": "changes.a",
            "reason": found.reason.value,
            "detail": found.detail,
            "session": found.session,
            "csn": found.csn,
            "prim_csn": found.prim_csn,
            "table": found.table,
            "key": found.key,
            "content": found.content,
            "value": value,
        }
        state.append(TableName.QUARANTINE, row)


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
