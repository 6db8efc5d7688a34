"""Claims about `pin`, `unpin` and `pins`."""

from pathlib import Path

import pytest

from checkpoints.tables import TableName
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.replay.conftest import History


def test_a_pin_is_listed_until_it_is_unpinned(history: History, slackwater: Slackwater) -> None:
    """Also the same one again, while no hub takes commands."""
    made = slackwater("pin", "before", "--epoch", history.csn_of("w2"), "--json")
    slackwater("pin", "now")
    gone = slackwater("unpin", "before", "--json")
    again = slackwater("pin", "before", "--epoch", history.csn_of("w2"))

    listed = slackwater("pins", "--json")

    newest = max(history.rows(TableName.CHANGELOG)["hub_epoch"].to_pylist())
    epoch = made.facts["hub_epoch"]
    assert (made.code, gone.code, again.code) == (0, 0, 0)
    assert made.facts == gone.facts
    assert f"hub epoch {epoch}" in again.out
    assert [one["pin"] for one in listed.facts] == ["before", "now"]
    assert [one["hub_epoch"] for one in listed.facts] == [epoch, newest]
    assert "before" in slackwater("pins").out


def test_no_pins_are_said_so(slackwater: Slackwater) -> None:
    """An empty table would look like a mistake."""
    assert "no hub epoch is pinned" in slackwater("pins").out


def test_a_pin_has_no_effect_on_what_the_hub_decides(slackwater: Slackwater) -> None:
    """Replay and audit pass over it."""
    slackwater("pin", "here", "--epoch", "1")

    assert slackwater("verify").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("pin", "a b"), "is no name of a pin"),
        (("pin", "a", "--epoch", "yesterday"), "no hub epoch (17)"),
        (("pin", "a", "--epoch", "999999"), "999999"),
        (("unpin", "a"), "there are none"),
    ],
)
def test_what_cannot_be_pinned_is_refused(
    slackwater: Slackwater, config_file: Path, arguments: tuple[str, ...], message: str
) -> None:
    """With exit code 2, and what is wrong."""
    answer = slackwater(*arguments)

    assert answer.code == 2
    assert message in answer.err
    assert config_file.exists()


def test_a_name_is_given_once(slackwater: Slackwater) -> None:
    """The message says which hub epoch has it, and what to do."""
    slackwater("pin", "a", "--epoch", "1")

    taken, unknown = slackwater("pin", "a"), slackwater("unpin", "b")

    assert taken.code == unknown.code == 2
    assert "pins hub epoch 1 already" in taken.err
    assert "slackwater unpin a" in taken.err
    assert "the pins are a" in unknown.err
