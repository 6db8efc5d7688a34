"""Claims about `config diff` and `config apply`, and what a start makes of what was applied."""

from pathlib import Path

import pytest

from checkpoints.config import (
    StoredConfig,
    apply_configuration,
    store_configuration,
    stored_versions,
)
from checkpoints.store import StateStore
from streaming.config.sources.load import load
from streaming.core.model.errors import ConfigError
from streaming.hub.config_at_start import ConfigAtStart
from tests.checkpoints.written_state import WrittenState
from tests.streaming.cli.conftest import Slackwater


@pytest.fixture
def run_once(config_file: Path, state: WrittenState) -> Path:
    """The file with which a hub has run last, as version 3, and before with another."""
    store, document = StateStore(state.root), load(config_file).document()
    for one in (document, document.replace('"trigger_ms":100', '"trigger_ms":7'), document):
        store_configuration(store, one, at_ms=1)
    return config_file


def rewrite(path: Path, old: str, new: str) -> None:
    """Put a text in place of another in the file."""
    path.write_text(path.read_text("utf-8").replace(old, new), encoding="utf-8")


def test_the_file_of_the_last_run_is_equal(slackwater: Slackwater, run_once: Path) -> None:
    """Exit 0, by the last version and not by an earlier one."""
    answer = slackwater("config", "diff")

    assert answer.code == 0
    assert answer.out == f"{run_once} is configuration 3, with which the hub has run last\n"


def test_each_difference_is_a_line(slackwater: Slackwater, run_once: Path) -> None:
    """Exit 1: what it is, from when on it would hold, and what it causes."""
    rewrite(run_once, 'key = ["id"]', 'key = ["id"]\nfunction = "MAX(id)"')
    rewrite(run_once, 'name = "centre"', 'name = "centre"\ntrigger_ms = 50')

    answer = slackwater("config", "diff")

    assert answer.code == 1
    assert answer.out.splitlines() == [
        "changed hub.trigger_ms: 100 → 50 (holds from: next hub epoch)",
        (
            "changed tables[t].function: EPOCH → MAX(id) (holds from: next hub epoch); decides what"
            " is judged from then on; what was judged stays as it is"
        ),
        "2 differences from configuration 3, with which the hub has run last",
    ]


def test_what_a_hub_refuses_is_said(slackwater: Slackwater, run_once: Path) -> None:
    """Exit 4, with what to set; a warning is none."""
    rewrite(run_once, "rid = 2", "rid = 3")
    rewrite(run_once, '[[agreements]]\nname = "to-a"\nconsumer = "a"\n', "")

    answer = slackwater("config", "diff", "--json")

    assert answer.code == 4
    assert answer.facts["version"] == 3
    assert [(one["kind"], one["path"], one["holds"]) for one in answer.facts["differences"]] == [
        ("changed", "replicas[b].rid", "never"),
        ("removed", "agreements[to-a]", "next hub epoch"),
    ]
    assert "a rid is never changed: set rid = 2" in answer.facts["refused"][0]
    assert "agreement to-a is in the state" in answer.facts["warnings"][0]


@pytest.mark.usefixtures("state")
def test_where_no_hub_has_run_there_is_nothing_to_compare(slackwater: Slackwater) -> None:
    """Exit 2, as for every question that cannot be asked."""
    answer = slackwater("config", "diff")

    assert answer.code == 2
    assert "no hub has run with the state in" in answer.err


def versions(state: WrittenState) -> list[StoredConfig]:
    """What is stored."""
    return stored_versions(state.root)


def test_apply_shows_first_and_stores_with_yes(
    slackwater: Slackwater, run_once: Path, state: WrittenState
) -> None:
    """The next version, which is known as one that was applied."""
    rewrite(run_once, 'key = ["id"]', 'key = ["id"]\nfunction = "MAX(id)"')

    shown = slackwater("config", "apply")
    assert (shown.code, len(versions(state))) == (1, 3)
    assert "changed tables[t].function: EPOCH → MAX(id)" in shown.out
    assert shown.out.endswith("nothing is applied: --yes does it\n")

    answer = slackwater("config", "apply", "--yes")
    assert answer.code == 0
    assert "configuration 4 is applied: a running hub takes it with its next batch" in answer.out
    assert versions(state)[-1] == StoredConfig(4, load(run_once).document(), is_applied=True)
    assert slackwater("config", "diff").code == 0
    assert slackwater("config", "apply", "--yes").code == 0
    assert len(versions(state)) == 4


def test_apply_refuses_what_needs_a_restart(
    slackwater: Slackwater, run_once: Path, state: WrittenState
) -> None:
    """With all that stands beside it: half of a file would be a third configuration."""
    rewrite(run_once, 'key = ["id"]', 'key = ["id"]\nfunction = "MAX(id)"')
    rewrite(run_once, "[hub]", "[http]\nport = 1\n[hub]")

    answer = slackwater("config", "apply", "--yes")

    assert answer.code == 4
    assert f"http.port needs a restart: start the hub with {run_once} instead" in answer.err
    assert len(versions(state)) == 3


def test_a_second_apply_does_not_undo_the_first_unseen(
    slackwater: Slackwater, run_once: Path, state: WrittenState
) -> None:
    """Until the hub has taken the first one the second must name it; `status` shows it."""
    before = run_once.read_text("utf-8")
    rewrite(run_once, 'key = ["id"]', 'key = ["id"]\nfunction = "MAX(id)"')
    assert slackwater("config", "apply", "--yes").code == 0
    run_once.write_text(before.replace('name = "centre"', 'name = "centre"\ntrigger_ms = 50'))

    answer = slackwater("config", "apply", "--yes")
    other = slackwater("config", "apply", "--yes", "--after", "3")
    shown = slackwater("status")
    assert (answer.code, other.code, len(versions(state))) == (2, 2, 4)
    assert "configuration 4 was applied, and the hub has not taken it yet" in answer.err
    assert "configuration 4 is the last one, and not 3" in other.err
    assert "configuration 4 was applied, and the hub has not taken it yet" in shown.out

    assert slackwater("config", "apply", "--yes", "--after", "4").code == 0
    assert len(versions(state)) == 5


def test_apply_refuses_where_another_was_stored_meanwhile(
    run_once: Path, state: WrittenState
) -> None:
    """Compare-and-set: what was looked at is what is replaced."""
    store, document = StateStore(state.root), load(run_once).document()

    assert apply_configuration(store, document, 2, at_ms=1) is None
    assert apply_configuration(store, document, 3, at_ms=1) == 4


def test_a_hub_does_not_start_with_a_file_that_was_replaced(
    run_once: Path, state: WrittenState
) -> None:
    """Unless it is told to; a standby that takes over goes on by what was applied."""
    old = load(run_once)
    rewrite(run_once, 'key = ["id"]', 'key = ["id"]\nfunction = "MAX(id)"')
    new = load(run_once)
    apply_configuration(StateStore(state.root), new.document(), 3, at_ms=1)

    with pytest.raises(ConfigError, match="has replaced by configuration 4: start with the file"):
        ConfigAtStart(run_once, old).check()
    ConfigAtStart(run_once, old, replace_applied=True).check()
    ConfigAtStart(run_once, new).check()
    assert ConfigAtStart(run_once, old).taken_over().document() == new.document()
