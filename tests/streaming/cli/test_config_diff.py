"""Claims about `config diff`."""

from pathlib import Path

import pytest

from checkpoints.tables import TableName
from streaming.config.sources.load import load
from tests.checkpoints.written_state import WrittenState
from tests.streaming.cli.conftest import Slackwater


@pytest.fixture
def run_once(config_file: Path, state: WrittenState) -> Path:
    """The file with which a hub has run last, as version 2."""
    document = load(config_file).document()
    state.append(TableName.CONFIG, {"number": 1, "kind": "config", "document": document})
    other = document.replace('"trigger_ms":100', '"trigger_ms":7')
    state.append(TableName.CONFIG, {"number": 2, "kind": "config", "document": other})
    state.append(TableName.CONFIG, {"number": 3, "kind": "config", "document": document})
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
        "changed hub.trigger_ms: 100 → 50 (holds from: restart)",
        (
            "changed tables[t].function: EPOCH → MAX(id) (holds from: restart); decides what is"
            " judged from then on; what was judged stays as it is"
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
        ("removed", "agreements[to-a]", "restart"),
    ]
    assert "a rid is never changed: set rid = 2" in answer.facts["refused"][0]
    assert "agreement to-a is in the state" in answer.facts["warnings"][0]


@pytest.mark.usefixtures("state")
def test_where_no_hub_has_run_there_is_nothing_to_compare(slackwater: Slackwater) -> None:
    """Exit 2, as for every question that cannot be asked."""
    answer = slackwater("config", "diff")

    assert answer.code == 2
    assert "no hub has run with the state in" in answer.err
