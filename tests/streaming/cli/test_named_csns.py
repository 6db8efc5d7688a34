"""Claims about CSNs on a command line: whoever pastes one in upper case means the same change."""

import time
from datetime import UTC, datetime

import pytest

from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from tests.checkpoints.written_state import WrittenState, agreement, change_row, replica, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater

JUDGED, OPEN = csn(1, 1), csn(3, 1)
JUDGED_AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture(autouse=True)
def commit(state: WrittenState) -> None:
    """One change is judged, has won a conflict and is everywhere; one is in an open transaction."""
    state.append(TableName.CHANGELOG, change_row(1, 1, 0, JUDGED) | {"time": JUDGED_AT})
    state.append(TableName.CONFLICTS, conflict())
    state.append(
        TableName.PENDING,
        {"batch": 1, "place": 3, "action": "pending", "rid": 1, "csn": OPEN, "prim_csn": OPEN},
    )
    agreements = [agreement("to-a", 1, 1, ruv(r1=1)), agreement("to-b", 2, 1, ruv(r1=1))]
    now_ms = round(time.time() * 1000)
    state.commit(1, 1, ruv(r1=1), [replica(1), replica(2)], agreements, at_ms=now_ms)


def conflict() -> dict[str, object]:
    """A conflict that the judged change has won."""
    return {
        "batch": 1,
        "hub_epoch": 1,
        "place": 0,
        "id": "1-0",
        "cause": "author",
        "lost": "change",
        "kind": "update_origin_change",
        "function": "EPOCH",
        "table": "t",
        "key": '{"id":"1"}',
        "loser_csn": csn(1, 2),
        "loser_rid": 2,
        "winner_csn": JUDGED,
        "winner_rid": 1,
        "winner_hub_epoch": 1,
        "mre": 0,
        "realign_epoch": 0,
        "same_epoch_only": False,
        "after": '{"id":"1"}',
        "resolution": "open",
        "at": JUDGED_AT,
    }


@pytest.mark.parametrize(
    "question",
    [
        ("wait",),
        ("explain",),
        ("conflicts", "show"),
        ("lsepoch", "--as-of"),
        ("diff", "--from"),
    ],
    ids=" ".join,
)
def test_upper_case_names_the_same_change(
    slackwater: Slackwater, question: tuple[str, ...]
) -> None:
    """A log or a spreadsheet may have changed its case."""
    lower, upper = slackwater(*question, JUDGED), slackwater(*question, JUDGED.upper())

    assert lower.code == 0
    assert (upper.code, upper.out) == (lower.code, lower.out)


def test_an_order_names_it_as_the_tables_do(slackwater: Slackwater, state: WrittenState) -> None:
    """The hub compares texts."""
    answer = slackwater("abort", OPEN.upper())

    assert answer.code == 0
    assert [one["argument"] for one in open_state(state.root).commands()] == [OPEN]


@pytest.mark.parametrize("question", [("wait",), ("explain",), ("abort",)], ids=" ".join)
def test_what_is_no_csn_is_named(slackwater: Slackwater, question: tuple[str, ...]) -> None:
    """Exit 2, in the same words everywhere."""
    answer = slackwater(*question, JUDGED[:-1])

    assert answer.code == 2
    assert f"{JUDGED[:-1]!r} is no CSN: it has 20 hexadecimal digits" in answer.err
