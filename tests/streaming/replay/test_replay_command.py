"""Claims about `replay`: what it finds, what it refuses, and what another rule would have done."""

import re
from pathlib import Path

import pytest

from checkpoints.tables import TableName
from tests.streaming.cli.conftest import Slackwater
from tests.streaming.replay.conftest import History, history_of

ENCLOSING = """
given r1 r2; t is EPOCH

r1 writes k = w1 in T
r2 writes k = w2
r1 writes j = w3 in T
r1 commits T
r1 publishes
r2 publishes
the hub takes all
w2 is accepted
w1 is rejected
everything settles
"""


def test_a_history_that_nobody_touched_is_equal(slackwater: Slackwater) -> None:
    """Exit 0, so that a script may rely on it."""
    answer = slackwater("replay", "--json")

    assert answer.code == 0, answer.err
    assert answer.facts["equal"]
    assert answer.facts["changes"] == 7
    assert answer.facts["in_conflict"] == 2


def test_a_verdict_that_was_changed_is_found(history: History, slackwater: Slackwater) -> None:
    """A record that can be changed unseen proves nothing."""
    loser = history.csn_of("w2")
    history.tamper(TableName.CHANGELOG, loser, "verdict", "accepted")

    answer = slackwater("replay", "--json")

    assert answer.code == 1
    found = [d for d in answer.facts["differences"] if d["id"] == loser]
    assert ("verdict", "accepted", "rejected") in [
        (d["fact"], d["recorded"], d["replayed"]) for d in found
    ]


def test_a_value_that_was_changed_is_found(history: History, slackwater: Slackwater) -> None:
    """An image follows from the change that wrote it."""
    csn = history.csn_of("w5")
    history.tamper(TableName.CHANGELOG, csn, "image", '{"k":"j","v":"w9"}')

    answer = slackwater("replay")

    assert answer.code == 1
    assert csn in answer.out
    assert "w9" in answer.out


def test_a_part_is_judged_from_the_state_before_it(slackwater: Slackwater) -> None:
    """What was true before the range is taken from the record, and only that."""
    whole = slackwater("replay", "--json").facts
    middle = whole["to_epoch"] // 2

    answer = slackwater("replay", "--json", "--from", str(middle))

    assert answer.facts["equal"]
    assert answer.facts["from_epoch"] == middle
    assert answer.facts["batches"] < whole["batches"]


def test_what_is_not_there_is_refused(slackwater: Slackwater) -> None:
    """Exit 2: no answer is neither yes nor no."""
    assert slackwater("replay", "--from", "999").code == 2
    assert "the last hub epoch is" in slackwater("replay", "--from", "999").err
    assert "no hub epoch" in slackwater("replay", "--to", "yesterday").err


def test_another_function_lets_others_win(history: History, slackwater: Slackwater) -> None:
    """By EPOCH the first of two concurrent values stood; by MAX it is the largest."""
    answer = slackwater("replay", "--json", "--set", "t.function=MAX_INS(v)")

    assert answer.code == 0
    assert answer.facts["changed_verdicts"] == 1
    verdict = answer.facts["verdicts"][0]
    assert (verdict["csn"], verdict["recorded"], verdict["then"]) == (
        history.csn_of("w2"),
        "rejected",
        "accepted",
    )
    row = answer.facts["rows"][0]
    assert (row["table"], row["columns"]) == ("t", {"v": {"recorded": "w1", "then": "w2"}})
    assert "held as they are recorded" in answer.facts["held"]


def test_another_order_lets_others_win(
    tmp_path: Path, slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its largest CSN a transaction comes behind what it encloses, by its first one before."""
    enclosing = history_of(ENCLOSING, tmp_path)
    monkeypatch.setenv("SLACKWATER_CONFIG", str(enclosing.folder / "hub.toml"))

    answer = slackwater("replay", "--json", "--set", "order=primary_csn")

    assert answer.code == 0
    changed = {one["csn"]: (one["recorded"], one["then"]) for one in answer.facts["verdicts"]}
    assert changed == {
        enclosing.csn_of("w1"): ("rejected", "accepted"),
        enclosing.csn_of("w2"): ("accepted", "rejected"),
    }


def test_a_table_that_is_not_configured_is_refused(slackwater: Slackwater) -> None:
    """A misspelt table would answer: nothing changes."""
    answer = slackwater("replay", "--set", "acounts.function=CSN")

    assert answer.code == 2
    assert "acounts" in answer.err


def test_a_report_for_a_browser_needs_nothing_else(
    history: History, slackwater: Slackwater
) -> None:
    """It is sent by mail, and opened where no server is."""
    file = history.folder / "report.html"

    answer = slackwater("replay", "--set", "t.function=MAX_INS(v)", "--html", str(file))

    text = file.read_text(encoding="utf-8")
    assert answer.code == 0
    assert "http" not in text
    assert text.count("<rect") >= 2
    assert history.csn_of("w2") in text
    assert "would stand as" in text
    assert re.findall(r'text-anchor="end">(\d+)</text>', text)[0] == "0"
    assert re.search(r'text-anchor="start">\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ</text>', text)
    assert "prefers-color-scheme: dark" in text


def test_avoidable_conflicts_are_counted_by_table(slackwater: Slackwater) -> None:
    """One table says where to invest: here inserts met, so no column can be told apart."""
    answer = slackwater("conflicts", "avoidable", "--json")

    found = {one["table"]: one for one in answer.facts["tables"]}
    assert {name: one["conflicts"] for name, one in found.items()} == {"t": 1, "u": 1}
    assert all(one["no_before"] == 1 and one["by_column"] == 0 for one in found.values())
    assert "half the lag" in slackwater("conflicts", "avoidable", "--from", "3").out
