"""Which rows wait for a column that a database lacks, as `level` and `status` count them."""

import pytest

from checkpoints.tables import TableName
from streaming.core.model.refusal import COLUMN
from tests.checkpoints.written_state import WrittenState, agreement, replica, ruv
from tests.streaming.cli.conftest import Slackwater


def refused(number: int, code: str, text: str = "no") -> dict[str, object]:
    """A row that the database of b refused."""
    row = {"batch": 0, "id": f"r2-{number}", "kind": "refused", "hub_epoch": 2, "loser_rid": 2}
    facts = {"table": "t", "key": f'{{"id":"{number}"}}', "code": code, "text": text}
    return {**row, **facts, "attempts": 1, "resolution": "open"}


@pytest.fixture
def lacking(state: WrittenState) -> WrittenState:
    """Everything is acknowledged, and the database of b lacks the column id."""
    known = ruv(r1=1)
    in_sync = [agreement("to-a", 1, 2, known), agreement("to-b", 2, 2, known)]
    replicas = [replica(1, covers=2), replica(2, covers=2)]
    lacks = {2: frozenset({"t.id"})}
    state.commit(1, 2, known, replicas, in_sync, lacking=lacks, totals={"refused": 4})
    return state


def test_a_row_waits_by_the_code_of_its_refusal(
    slackwater: Slackwater, lacking: WrittenState
) -> None:
    """The text is the database's: it may begin as it likes, and be in any language."""
    rows = [
        refused(1, COLUMN, "table t has no column id here"),
        refused(2, COLUMN, ""),
        refused(3, "other", "column: there is none"),
        refused(4, "unique", f"{COLUMN}: twice"),
    ]
    lacking.append(TableName.CONFLICTS, *rows)

    level, status = (slackwater(name, "--json").facts for name in ("level", "status"))

    assert [one["rows"] for one in level["waited"]] == [2]
    assert level["waited"] == status["waited"]
    assert [one["code"] for one in level["differing"]] == [COLUMN, COLUMN, "other", "unique"]
    assert [one["why"] for one in level["differing"]][2] == "other: column: there is none"


def test_a_record_in_quarantine_waits_for_no_column_there(
    slackwater: Slackwater, lacking: WrittenState
) -> None:
    """Its code is the reason, and it is a row of its writer."""
    kept = {"batch": 1, "id": "2-4", "action": "kept", "reason": "table", "rid": 2, "offset": 4}
    change = {"kind": "change", "op": "insert", "table": "t", "key": '{"id":"1"}'}
    lacking.append(TableName.QUARANTINE, {**kept, **change, "session": "session-2"})

    facts = slackwater("level", "--json").facts

    assert [one["rows"] for one in facts["waited"]] == [0]
    assert [(one["code"], one["why"]) for one in facts["differing"]] == [("table", "table")]
