"""Claims about `quarantine` and the commands that it leaves for the hub."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from checkpoints.reader import open_state
from checkpoints.tables import TableName
from streaming.cli.command import append_command
from streaming.core.model.command import CommandName
from tests.checkpoints.written_state import WrittenState, ruv
from tests.streaming.cli.conftest import Slackwater


@pytest.fixture(autouse=True)
def quarantine(state: WrittenState) -> None:
    """A broken record, one that was dropped, and one of each reason that stays."""
    state.commit(2, 0, ruv())

    def row(offset: int, reason: str, **more: object) -> dict[str, object]:
        values = {"batch": 1, "id": f"1-{offset}", "action": "kept", "reason": reason, "rid": 1}
        return values | {"offset": offset, "detail": f"wrong {offset}", "value": b"{}"} | more

    state.append(
        TableName.QUARANTINE,
        row(5, "json", value=b'{"v": "\xff'),
        row(6, "skew", value='{"tür":1}'.encode()),
        row(7, "table"),
        *(row(10 + n, r) for n, r in enumerate(("late", "reused", "purged", "ended"))),
        row(7, "table", batch=2, action="dropped", value=None),
    )


def commands(state: WrittenState) -> list[tuple[int, str, str]]:
    """What a hub will find."""
    found = open_state(state.root).commands()
    return [(row["number"], row["command"], row["argument"]) for row in found]


def test_what_is_kept_is_listed(slackwater: Slackwater) -> None:
    """What was dropped is out of the way, and still there."""
    kept = slackwater("quarantine", "list", "--json").facts
    everything = slackwater("quarantine", "list", "--all", "--json").facts

    assert [row["id"] for row in kept] == ["1-5", "1-6", "1-10", "1-11", "1-12", "1-13"]
    assert {row["id"]: row["action"] for row in everything}["1-7"] == "dropped"
    assert "6 of 6 records" in slackwater("quarantine", "list").out


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--reason", "skew"], ["1-6"]),
        (["--replica", "a", "--limit", "1"], ["1-13"]),
        (["--replica", "b"], []),
    ],
)
def test_a_list_can_be_narrowed(slackwater: Slackwater, options: list[str], ids: list[str]) -> None:
    """One reason, one replica, the newest."""
    found = slackwater("quarantine", "list", "--json", *options).facts

    assert [row["id"] for row in found] == ids


def test_the_original_bytes_are_shown(slackwater: Slackwater) -> None:
    """Bytes that are no text are told as what they are."""
    text = slackwater("quarantine", "show", "1-6", "--json").facts
    broken = slackwater("quarantine", "show", "1-5", "--json").facts

    assert (text["value"], text["value_base64"]) == ('{"tür":1}', "eyJ0w7xyIjoxfQ==")
    assert (broken["value"], broken["value_base64"]) == (None, "eyJ2IjogIv8=")
    assert '{"tür":1}' in slackwater("quarantine", "show", "1-6").out
    assert "\\xff" in slackwater("quarantine", "show", "1-5").out


@pytest.mark.parametrize("command", ["release", "drop"])
def test_a_command_waits_for_the_hub(
    slackwater: Slackwater, state: WrittenState, command: str
) -> None:
    """One writer decides; the command line only asks."""
    answer = slackwater("quarantine", command, "1-5", "1-6")

    assert answer.code == 0
    assert commands(state) == [(1, command, "1-5"), (2, command, "1-6")]
    assert "command 2" in answer.out


def test_the_same_command_is_not_given_twice(slackwater: Slackwater, state: WrittenState) -> None:
    """Impatience must not release a record twice."""
    first = slackwater("quarantine", "release", "1-5", "--json").facts
    second = slackwater("quarantine", "release", "1-5", "--json").facts

    assert first == second == {"command": "release", "numbers": {"1-5": 1}}
    assert len(commands(state)) == 1


@pytest.mark.parametrize("id_", ["1-10", "1-11", "1-12", "1-13"])
def test_late_reused_purged_and_ended_changes_can_be_released(
    slackwater: Slackwater, state: WrittenState, id_: str
) -> None:
    """Their rows were set right; who wants them all the same gets them as the hub's."""
    answer = slackwater("quarantine", "release", id_)

    assert answer.code == 0
    assert commands(state) == [(1, "release", id_)]


@pytest.mark.parametrize(
    ("id_", "received"),
    [("1-7", "was already dropped in batch 2"), ("9-9", "is not in quarantine")],
)
def test_what_is_not_kept_cannot_be_released_or_dropped(
    slackwater: Slackwater, state: WrittenState, id_: str, received: str
) -> None:
    """The answer says what became of it."""
    for command in ("release", "drop"):
        answer = slackwater("quarantine", command, id_)

        assert (answer.code, received in answer.err) == (1, True)
    assert commands(state) == []


def test_two_operators_never_take_one_number(state: WrittenState) -> None:
    """The hub takes commands by number; a second 3 would be lost."""
    at = datetime(2024, 2, 29, tzinfo=UTC)

    def ask(number: int) -> int:
        return append_command(open_state(state.root), CommandName.DROP, f"1-{number}", at)

    with ThreadPoolExecutor(8) as operators:
        given = list(operators.map(ask, range(24)))

    assert sorted(given) == list(range(1, 25))
    assert sorted(number for number, _, _ in commands(state)) == list(range(1, 25))
