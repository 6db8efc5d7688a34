"""The vectors hold, and their runner tells what does not."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.vectors.__main__ import main
from tests.vectors.cases import CASES, CONFLICTS, DEVIATIONS, FILES, SESSIONS, broken, by_id
from tests.vectors.outcome import Case
from tests.vectors.runner import run_case

EXACT = [case for case in CONFLICTS if run_case(case, replace(DEVIATIONS, rules=())).text == "ok"]
"""The conflicts that end here as they did there."""


@by_id(CASES)
def test_a_vector_of_an_origin_system_holds(case: Case) -> None:
    """As it is, or by a rule that says why not; a function that is not there yet is skipped."""
    outcome = run_case(case, DEVIATIONS)

    assert not outcome.failed, outcome.line


def test_a_run_prints_a_line_a_case_and_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    """What a developer calls on any file of these formats."""
    status = main([str(file) for file in FILES])

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert [line.split(": ")[0] for line in lines] == [case["id"] for case in CASES]


# -- what makes a run fail -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        "{}",
        '{"cases": []}',
        '{"cases": [1]}',
        '{"cases": [{"id": "x", "input": {}, "expect": {}}]}',
        '{"cases": [{"supplier_ruv": {}, "consumer_ruv": {}, "changelog": ["6b0"]}]}',
        '{"cases": [{"supplier_ruv": {}, "consumer_ruv": 7, "changelog": [], "expect": {}}]}',
    ],
)
def test_what_is_no_vector_fails(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An unknown kind of file or case, or one that raises, never passes silently."""
    path = tmp_path / "some.json"
    path.write_text(text)

    assert main([str(path)]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_a_file_that_is_not_there_fails(tmp_path: Path) -> None:
    """A misspelled name must not look like a good run."""
    assert main([str(tmp_path / "none.json")]) == 1


@by_id([case for case in SESSIONS if case["expect"]["sent"]])
def test_one_csn_too_few_is_a_difference(case: Case) -> None:
    """The runner compares what was sent, not only that something was."""
    sent = case["expect"]["sent"]

    assert run_case(broken(case, "expect", "sent", value=sent[:-1]), DEVIATIONS).failed
    assert run_case(broken(case, "expect", "sent", value=[*sent[1:], sent[0]]), DEVIATIONS).failed
    assert run_case(broken(case, "expect", "anchor", value=sent[0]), DEVIATIONS).failed
    assert run_case(broken(case, "expect", "anchor", value=None), DEVIATIONS).failed


@by_id([case for case in EXACT if case["expect"]["final_rows_B"] is not None])
def test_another_end_is_a_difference(case: Case) -> None:
    """Rows too many, too few and of other content are found."""
    rows = case["expect"]["final_rows_B"]
    stranger = {"table": "t1", "key": 999, "values": {"b": "x"}}

    assert run_case(
        broken(case, "expect", "final_rows_B", value=[*rows, stranger]), DEVIATIONS
    ).failed
    for place, row in enumerate(rows):
        other = broken(case, "expect", "final_rows_B", place, "values", "b", value="x")

        fewer = broken(case, "expect", "final_rows_B", value=[r for r in rows if r != row])

        assert run_case(other, DEVIATIONS).failed
        assert run_case(fewer, DEVIATIONS).failed


@by_id([case for case in EXACT if case["expect"]["exceptions"]])
def test_another_conflict_is_a_difference(case: Case) -> None:
    """Count, operation, cause, and both images of every loser are compared."""
    count = case["expect"]["conflict_count_delta"]
    more = {table: n + 1 for table, n in count.items()} if isinstance(count, dict) else count + 1
    assert run_case(broken(case, "expect", "conflict_count_delta", value=more), DEVIATIONS).failed
    assert run_case(broken(case, "expect", "exceptions", value=[]), DEVIATIONS).failed
    for place in range(len(case["expect"]["exceptions"])):
        for field, value in [
            ("key", 999),
            ("op_type", "REFRESH_ROW"),
            ("cause", "TRANS_IN_CONFLICT"),
            ("old", {"b": "x"}),
            ("new", {"b": "x"}),
        ]:
            other = broken(case, "expect", "exceptions", place, field, value=value)

            assert run_case(other, DEVIATIONS).failed, field


@by_id([case for case in EXACT if case["expect"].get("counters")])
def test_another_counter_is_a_difference(case: Case) -> None:
    """Counters that the hub has are compared, unknown ones are refused."""
    ignored = "ndb_conflict_trans_detect_iter_count"
    for name in case["expect"]["counters"].keys() - {ignored}:
        assert run_case(broken(case, "expect", "counters", name, value=99), DEVIATIONS).failed
    unknown = broken(case, "expect", "counters", "ndb_new_counter", value=0)
    assert "unknown counter" in run_case(unknown, DEVIATIONS).line


@by_id(EXACT)
def test_null_is_not_compared(case: Case) -> None:
    """What the origin did not print cannot be wrong."""
    nothing = broken(case, "expect", value=dict.fromkeys(case["expect"]))

    assert run_case(nothing, DEVIATIONS).text == "ok"


@pytest.mark.parametrize("function", ["NDB$NEW", "NDB$CSN", "EPOCH", "NDB$EPOCH(", "NDB$PASS"])
def test_an_unknown_function_fails(function: str) -> None:
    """Of any table of the case; a function that only the hub has is none of the origin's."""
    case = CONFLICTS[0]

    assert "unknown conflict function" in run_case({**case, "function": function}, DEVIATIONS).line
    of_table = {**case, "table_functions": {"t1": function}}
    assert "unknown conflict function" in run_case(of_table, DEVIATIONS).line


@pytest.mark.parametrize(
    "change",
    [
        {"function": "NDB$EPOCH2_TRANS"},
        {"function": "NDB$EPOCH_TRANS(3)"},
        {"table_functions": {"t1": "NDB$EPOCH", "t2": "NDB$EPOCH2_TRANS(6)"}},
        {"kind": "packet_header"},
    ],
)
def test_what_the_hub_has_not_is_skipped(change: Case) -> None:
    """With its name and the reason."""
    assert run_case({**CONFLICTS[0], **change}, DEVIATIONS).text.startswith("skipped, ")


def test_a_kind_that_nobody_named_fails() -> None:
    """A skip names its kinds."""
    case = next(case for case in CASES if case.get("kind") == "packet_header")

    assert run_case(case, DEVIATIONS).text.startswith("skipped, kind packet_header: ")
    assert run_case({**case, "kind": "new"}, DEVIATIONS).failed


def test_every_skip_and_every_counter_says_why() -> None:
    """A reason is part of the deviation."""
    assert all(skip.reason for skip in DEVIATIONS.skips)
    assert all(counter.reason for counter in DEVIATIONS.counters)


def test_a_table_has_its_own_function_or_the_only_one_of_the_case() -> None:
    """Which of several it is, is not guessed."""
    case = next(case for case in CONFLICTS if "|" in case["function"])

    assert run_case(case, DEVIATIONS).text == "ok"
    assert run_case({**case, "table_functions": {}}, DEVIATIONS).failed


def test_the_compared_column_is_named_or_x_or_the_only_one_of_integers() -> None:
    """Two that it could be are one too many."""
    case = next(case for case in CONFLICTS if case["function"] == "NDB$MAX")
    renamed = json.loads(json.dumps(case).replace('"X"', '"v"'))
    texts = json.loads(json.dumps(case).replace('"b"', '"X"').replace('"X": 1', '"v": 1'))
    two = broken(renamed, "setup_rows", 0, "values", "w", value=1)

    assert run_case({**case, "function": "NDB$MAX(X)"}, DEVIATIONS).text == "ok"
    assert run_case(renamed, DEVIATIONS).text == "ok"
    assert "names no column" in run_case(two, DEVIATIONS).line
    assert run_case({**two, "function": "NDB$MAX(v)"}, DEVIATIONS).text == "ok"
    assert run_case(texts, DEVIATIONS).text == "ok"
