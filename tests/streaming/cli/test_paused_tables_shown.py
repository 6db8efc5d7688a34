"""`pause --table` and `resume --table`: what they ask of the hub, and what `level` says then."""

from pathlib import Path

import pytest

from checkpoints.reading.reader import open_state
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import CONFIG, Slackwater

SECOND = '[[tables]]\nname = "u"\nkey = ["id"]\ncolumns = { id = "int64" }\n'
KNOWN = ruv(r1=3)


@pytest.fixture(autouse=True)
def _two_tables(config_file: Path) -> None:
    config_file.write_text(CONFIG + SECOND, encoding="utf-8")


def commit(state: WrittenState, *paused: str) -> None:
    """Hub epoch 3, which both have; these tables are paused in to-b."""
    agreements = [agreement("to-a", 1, 3, KNOWN), agreement("to-b", 2, 3, KNOWN)]
    tables = {"to-b": frozenset(paused)} if paused else {}
    replicas = [replica(rid, covers=3) for rid in (1, 2)]
    batch = 1 + len(paused)
    state.commit(batch, 3, KNOWN, replicas, agreements, paused_tables=tables)


def asked(state: WrittenState) -> list[tuple[str, str]]:
    """The commands that wait for the hub."""
    return [(c["command"], c["argument"]) for c in open_state(state.root).commands()]


def test_a_table_is_paused_and_resumed(slackwater: Slackwater, state: WrittenState) -> None:
    """One writer decides."""
    commit(state)
    paused = slackwater("pause", "to-b", "--table", "u")
    commit(state, "u")
    resumed = slackwater("resume", "to-b", "--table", "u", "--json")

    assert (paused.code, resumed.code) == (0, 0)
    assert "pause_tables to-b u: command 1" in paused.out
    assert resumed.facts["tables"] == ["u"]
    assert asked(state) == [
        ("pause_tables", '["to-b", ["u"]]'),
        ("resume_tables", '["to-b", ["u"]]'),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("pause", "to-b", "--table", "z"), 2, "z is not sent by to-b: use one of t, u"),
        (("pause", "to-b", "--table", "t", "--table", "u"), 1, "nothing would be left"),
        (("resume", "to-b", "--table", "u"), 2, "u is not paused in to-b: no table is"),
    ],
)
def test_a_wrong_table_is_refused(
    slackwater: Slackwater,
    state: WrittenState,
    arguments: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    """The hub would count the command and do nothing."""
    commit(state)

    answer = slackwater(*arguments)

    assert (answer.code, asked(state)) == (code, [])
    assert said in " ".join(answer.err.split())


def test_a_table_that_is_paused_is_not_paused_again(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """It is told how the pause ends."""
    commit(state, "u")

    answer = slackwater("pause", "to-b", "--table", "u")

    assert (answer.code, asked(state)) == (1, [])
    assert "`slackwater resume to-b --table u` ends it" in " ".join(answer.err.split())


def test_a_paused_table_is_a_lack_with_its_remedy(
    slackwater: Slackwater, state: WrittenState
) -> None:
    """Its consumer has every hub epoch, and lacks rows."""
    commit(state, "u")

    level, status = slackwater("level", "--json").facts, slackwater("status", "--json").facts

    one = level["agreements"][1]
    assert (one["has_all"], one["level"], one["paused"]) == (False, False, ["u"])
    (problem,) = [one for one in status["problems"] if "paused in agreement" in one["what"]]
    assert problem["what"] == "b is sent nothing of u: paused in agreement to-b"
    assert "`slackwater resume to-b --table u`" in problem["remedy"]
    assert status["agreements"][1]["paused"] == ["u"]
