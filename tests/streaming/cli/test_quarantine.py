"""Claims about `quarantine` and the commands that it leaves for the hub."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from checkpoints.config import COMMANDS_MAX, next_commands
from checkpoints.reading.reader import open_state
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.cli.command import append_command, append_commands
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


def test_a_record_of_many_brackets_is_shown(slackwater: Slackwater, state: WrittenState) -> None:
    """The time to break its line must not grow with the square of their number, or it is hours."""
    value = b'{"kind":' * 200_000
    bad = {"batch": 1, "id": "1-91", "action": "kept", "reason": "json", "rid": 1, "offset": 91}
    state.append(TableName.QUARANTINE, {**bad, "value": value})

    answer = slackwater("quarantine", "show", "1-91")

    assert value.decode() in answer.out


@pytest.mark.parametrize("command", ["release", "drop"])
def test_a_command_waits_for_the_hub(
    slackwater: Slackwater, state: WrittenState, command: str
) -> None:
    """One writer decides; the command line only asks."""
    answer = slackwater("quarantine", command, "1-5", "1-6")

    assert answer.code == 0
    assert commands(state) == [(1, command, "1-5"), (2, command, "1-6")]
    assert "command 2" in answer.out


@pytest.mark.parametrize("command", ["release", "drop"])
@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (["--all"], ["1-5", "1-6", "1-10", "1-11", "1-12", "1-13"]),
        (["--reason", "late"], ["1-10"]),
        (["--replica", "a", "--reason", "json"], ["1-5"]),
        (["--replica", "b"], []),
    ],
)
def test_many_are_chosen_at_once(
    slackwater: Slackwater, state: WrittenState, command: str, options: list[str], chosen: list[str]
) -> None:
    """A producer gone wrong leaves thousands; nothing happens without --yes."""
    asked = slackwater("quarantine", command, *options)
    assert (asked.code, commands(state)) == (0, [])
    assert f"{len(chosen)} record" in asked.out
    assert "Nothing is done yet" in asked.out

    assert slackwater("quarantine", command, *options, "--yes").code == 0

    assert commands(state) == [(n, command, id_) for n, id_ in enumerate(chosen, 1)]


def test_what_was_written_anew_since_is_not_released_in_bulk(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """The older write would take the place of the newer one, everywhere."""
    kept = {"batch": 1, "action": "kept", "rid": 1, "table": "t", "value": b"{}"}
    state.append(
        TableName.QUARANTINE,
        kept | {"id": "1-30", "offset": 30, "reason": "skew", "csn": "9" * 20, "key": "again"},
        kept | {"id": "1-31", "offset": 31, "reason": "skew", "csn": "8" * 20, "key": "before"},
        kept | {"id": "1-32", "offset": 32, "reason": "skew", "csn": "7" * 20, "key": "by b"},
        kept | {"id": "1-33", "offset": 33, "reason": "late", "csn": "1" * 20, "key": "before"},
        kept | {"id": "1-34", "offset": 34, "reason": "late", "csn": "4" * 20, "key": "before"},
    )
    written = {"batch": 1, "kind": "change", "verdict": "accepted", "rid": 1, "table": "t"}
    state.append(
        TableName.CHANGELOG,
        written | {"offset": 40, "csn": "3" * 20, "key": "again", "op": "update"},
        written | {"offset": 29, "csn": "2" * 20, "key": "before", "op": "update"},
        written
        | {"batch": 2, "rid": 2, "offset": 1, "csn": "5" * 20, "key": "by b", "op": "insert"},
        written
        | {"offset": 41, "csn": "6" * 20, "key": "by b", "op": "update"}
        | {"verdict": "lost"},
    )

    answer = slackwater("quarantine", "release", "--reason", "skew", "--yes")
    late = slackwater("quarantine", "release", "--reason", "late", "--yes")
    named = slackwater("quarantine", "release", "1-30")

    assert (answer.code, late.code, named.code) == (0, 0, 0)
    assert [id_ for _, _, id_ in commands(state)] == ["1-6", "1-31", "1-10", "1-34", "1-30"]
    assert "2 records left out, because the row was written anew since: 1-30, 1-32;" in answer.err
    assert "1 record left out, because the row was written anew since: 1-33;" in late.err
    assert named.err == ""


def test_a_choice_must_be_made(slackwater: Slackwater, state: WrittenState) -> None:
    """Not all of them by a slip."""
    answer = slackwater("quarantine", "drop", "--yes")

    assert (answer.code, commands(state)) == (2, [])


def test_thousands_of_commands_are_one_commit(slackwater: Slackwater, state: WrittenState) -> None:
    """One commit each took minutes; an operator's command in between keeps its own number."""
    row = {"batch": 1, "action": "kept", "reason": "json", "rid": 1, "value": b"{"}
    many = [{**row, "id": f"1-{n}", "offset": n} for n in range(100, 3100)]
    state.append(TableName.QUARANTINE, *many)
    before = StateStore(state.root).refreshed(TableName.CONFIG).version()

    answer = slackwater("quarantine", "drop", "--reason", "json", "--yes")

    assert "drop 3001 records: commands 1 to 3001;" in answer.out
    assert StateStore(state.root).refreshed(TableName.CONFIG).version() == before + 1
    assert [number for number, _, _ in commands(state)] == list(range(1, 3002))


def test_a_batch_takes_so_many_commands_and_the_next_one_goes_on(state: WrittenState) -> None:
    """A plan holds its commands."""
    store, ids = StateStore(state.root), [f"1-{n}" for n in range(COMMANDS_MAX + 5)]
    append_commands(open_state(state.root), CommandName.DROP, ids, None, as_json=True)

    first = next_commands(store, 0)
    rest = next_commands(store, first[-1].number)

    assert [one.argument for one in (*first, *rest)] == ids
    assert (len(first), len(rest)) == (COMMANDS_MAX, 5)


def test_what_names_no_row_is_said_when_it_is_dropped(slackwater: Slackwater) -> None:
    """Nobody can set it right but a person: no record has its row."""
    answer = slackwater("quarantine", "drop", "1-5", "1-6")

    said = " ".join(answer.out.split())
    assert "2 records of a name no row that could be sent back: what they wrote stays" in said


@pytest.mark.parametrize(
    "key", ['{"id":{"blob":"AA=="}}', '{"id":{"text_bytes":"/w=="}}', '{"whole row":{"bytes":"9"}}']
)
def test_a_row_that_nothing_can_be_sent_back_for_is_not_dropped(
    slackwater: Slackwater, state: WrittenState, key: str
) -> None:
    """It would stand in one database, and nobody would say that the others lack it."""
    named = {"batch": 1, "action": "kept", "reason": "key", "rid": 1, "value": b"{}", "table": "t"}
    state.append(TableName.QUARANTINE, {**named, "id": "1-90", "offset": 90, "key": key})

    by_id = slackwater("quarantine", "drop", "1-5", "1-90")
    several = slackwater("quarantine", "drop", "--reason", "key", "--yes")

    assert (by_id.code, several.code) == (1, 0)
    for answer in (by_id, several):
        assert "1 record left out, because nothing can be sent back for a key" in answer.err
        assert "1-90; correct or delete the row in the database of a" in answer.err
    assert commands(state) == [(1, "drop", "1-5")]


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
    ("id_", "received", "code"),
    [("1-7", "was already dropped in batch 2", 1), ("9-9", "is not in quarantine", 2)],
)
def test_what_is_not_kept_cannot_be_released_or_dropped(
    slackwater: Slackwater, state: WrittenState, id_: str, received: str, code: int
) -> None:
    """The answer says what became of it."""
    for command in ("release", "drop"):
        answer = slackwater("quarantine", command, id_)

        assert (answer.code, received in answer.err) == (code, True)
    assert commands(state) == []


def test_two_operators_never_take_one_number(state: WrittenState) -> None:
    """The hub takes commands by number; a second 3 would be lost."""

    def ask(number: int) -> None:
        reader = open_state(state.root)
        if number % 3:
            append_command(reader, CommandName.DROP, f"1-{number}")
        else:
            ids = [f"1-{number}.{n}" for n in range(3)]
            append_commands(reader, CommandName.DROP, ids, None, as_json=False)

    with ThreadPoolExecutor(8) as operators:
        list(operators.map(ask, range(24)))

    assert sorted(number for number, _, _ in commands(state)) == list(range(1, 41))
