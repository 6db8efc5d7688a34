"""Claims about `rows`, `diff` and `blame`: what stood when, and who wrote it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.streaming.cli.conftest import Slackwater
from tests.streaming.replay.conftest import History, history_of

EMPTIED = """
given r1 r2; t is EPOCH

r1 writes k = w1
r2 writes j = w2
everything settles
r1 truncates t as w3
everything settles
r2 writes j = w4
everything settles
"""


def values(slackwater: Slackwater, *arguments: str) -> dict[str, str]:
    """Key -> value of the rows of a table."""
    answer = slackwater("rows", *arguments, "--json")
    assert answer.code == 0, answer.err
    return {row["image"]["k"]: row["image"]["v"] for row in answer.facts["rows"]}


def test_rows_stand_as_they_stood(history: History, slackwater: Slackwater) -> None:
    """A row that was deleted since is there at the moment before."""
    written = history.csn_of("w5")

    assert values(slackwater, "t") == {"k": "w1", "i": "w7"}
    assert values(slackwater, "t", "--as-of", written) == {"k": "w1", "j": "w5"}
    assert values(slackwater, "t", "--as-of", history.csn_of("w1")) == {"k": "w1"}


def test_a_row_is_named_by_its_value_or_as_json(slackwater: Slackwater) -> None:
    """Nobody types JSON for a key of one column."""
    assert values(slackwater, "t", "k") == values(slackwater, "t", '{"k": "k"}') == {"k": "w1"}


def test_meta_tells_author_epoch_and_change(history: History, slackwater: Slackwater) -> None:
    """These three decide the next conflict on the row."""
    answer = slackwater("rows", "t", "k", "--meta")

    assert "r1" in answer.out
    assert history.csn_of("w1") in answer.out


def test_what_never_was_is_refused(slackwater: Slackwater) -> None:
    """Exit 2, with what there is."""
    assert "the last one is" in slackwater("rows", "t", "--as-of", "99").err
    assert "there is no table 'x'" in slackwater("rows", "x").err
    assert slackwater("rows", "t", '{"id":"1"}').code == 2


def test_a_difference_has_both_sides_of_each_row(history: History, slackwater: Slackwater) -> None:
    """What was deleted, what was inserted, and nothing that came and stayed."""
    begin = history.csn_of("w5")

    answer = slackwater("diff", "--from", begin, "--json")

    found = {(r["table"], r["key"]): (r["before"], r["after"]) for r in answer.facts["rows"]}
    assert set(found) == {("t", '{"k":"i"}'), ("t", '{"k":"j"}')}
    assert found["t", '{"k":"j"}'][1] is None
    assert found["t", '{"k":"i"}'][1]["image"] == {"k": "i", "v": "w7"}


def test_blame_names_the_change_behind_each_column(
    history: History, slackwater: Slackwater
) -> None:
    """Of a row that several wrote, each column may be another's."""
    answer = slackwater("blame", "t", "k", "--json")

    assert {one["column"]: one["csn"] for one in answer.facts} == dict.fromkeys(
        ("k", "v"), history.csn_of("w1")
    )
    assert slackwater("blame", "t", "j").code == 2


def test_a_database_is_exported_as_it_was(history: History, slackwater: Slackwater) -> None:
    """Somebody wants to look at Tuesday with the tools that they have."""
    file, then = history.folder / "then.db", history.csn_of("w5")

    answer = slackwater("export", "--as-of", then, "--sqlite", str(file))

    assert answer.code == 0, answer.err
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT * FROM t ORDER BY k").fetchall() == [
            ("j", "w5"),
            ("k", "w1"),
        ]
        assert database.execute("SELECT * FROM u").fetchall() == [("k", "w4")]
    assert "is there already" in slackwater("export", "--sqlite", str(file)).err


def test_rows_of_a_truncated_table_stood_before_it(
    tmp_path: Path, slackwater: Slackwater, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a truncate deleted is there at the moment before, and what came behind it after."""
    emptied = history_of(EMPTIED, tmp_path)
    monkeypatch.setenv("SLACKWATER_CONFIG", str(emptied.folder / "hub.toml"))

    assert values(slackwater, "t", "--as-of", emptied.csn_of("w2")) == {"k": "w1", "j": "w2"}
    assert values(slackwater, "t") == {"j": "w4"}
    changed = slackwater("diff", "--from", emptied.csn_of("w2"), "--json").facts["rows"]
    assert {row["key"] for row in changed} == {'{"k":"k"}', '{"k":"j"}'}
