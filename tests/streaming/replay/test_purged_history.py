"""Claims about questions to a history of which a part is purged."""

from pathlib import Path

import pytest

from checkpoints.tables import TableName
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.replay.conftest import History, history_of

UNDONE = """
given r1 r2; t is EPOCH

r1 writes i = w1
r2 writes j = w2
everything settles
r1 writes i = w3 in T
r1 deletes j as w4 in T
r1 writes k = w5 in T
r1 commits T
everything settles
r2 writes m = w6
everything settles
the operator undoes w3
everything settles
r2 writes i = w7
everything settles
"""


@pytest.fixture
def undone(tmp_path: Path) -> History:
    """A history with an undo."""
    return history_of(UNDONE, tmp_path)


@pytest.fixture
def config_file(undone: History, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its configuration, which the command finds."""
    path = undone.folder / "hub.toml"
    monkeypatch.setenv("SLACKWATER_CONFIG", str(path))
    return path


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_an_undo_whose_moment_is_purged_is_no_difference(
    command: str, undone: History, slackwater: Slackwater
) -> None:
    """An earlier version found that the hub should have refused it, so all that it wrote differed.

    What it wrote back is in the record, and is judged again from there.
    """
    moment, purged = undone.epoch_of("w3") - 1, undone.epoch_of("w6")
    undone.purge(purged)

    said = slackwater(command)
    facts = slackwater(command, "--json").facts

    assert said.code == 0, said.out
    ((one, *more)) = facts["not_asked"]
    assert not more
    assert (one["table"], one["to_epoch"], one["rows"], one["who"]) == ("t", moment, 3, "operator")
    assert f"hub epoch {moment} is before hub epoch {purged}, the oldest moment" in said.out
    assert "it is judged with what is recorded of it, 3 rows" in said.out


def test_what_is_left_of_a_history_is_sound(undone: History, slackwater: Slackwater) -> None:
    """An earlier version missed the last change before the purge of who wrote again behind it."""
    undone.purge(undone.epoch_of("w6"))

    assert slackwater("verify", "--json").facts["found"] == []


@pytest.mark.parametrize("command", ["replay", "verify"])
@pytest.mark.parametrize("begin", [(), ("--from", "3")])
def test_where_all_is_purged_the_oldest_moment_is_named(
    begin: tuple[str, ...], command: str, undone: History, slackwater: Slackwater
) -> None:
    """Exit 2: there is nothing to say yes or no to; an earlier version named no moment."""
    last = undone.epoch_of("w7")
    undone.purge(last)

    answer = slackwater(command, *begin)
    shown = slackwater("rows", "t", "--as-of", str(last), "--json")

    assert answer.code == 2
    assert f"`slackwater rows TABLE --as-of {last}` shows the rows" in answer.err
    assert f"what is judged from hub epoch {last + 1} on can be asked for" in answer.err
    assert len(shown.facts["rows"]) == 3


def test_what_an_undo_wrote_is_compared_as_long_as_its_moment_is_kept(
    undone: History, slackwater: Slackwater
) -> None:
    """Nothing that is recorded of it is believed then."""
    begin = str(undone.epoch_of("w6"))
    undone.purge(undone.epoch_of("w1"))
    before = slackwater("replay", "--from", begin, "--json")
    assert before.code == 0, before.err
    assert before.facts["not_asked"] == []
    log = undone.rows(TableName.CHANGELOG).to_pylist()
    made = next(row["csn"] for row in log if row["app"] and row["key"] == '{"k":"i"}')
    undone.tamper(TableName.CHANGELOG, made, "image", '{"k":"i","v":"w9"}')

    answer = slackwater("replay", "--from", begin)

    assert answer.code == 1
    assert "w9" in answer.out
