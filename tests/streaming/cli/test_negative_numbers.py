"""Claims about keys that are negative numbers: they begin as an option does."""

import pytest

from checkpoints.tables import TableName
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater

LEAST = "-9223372036854775808"


@pytest.fixture
def negative(state: WrittenState) -> WrittenState:
    """A hub with a row whose key is the least of all."""
    change = {"batch": 1, "hub_epoch": 1, "place": 0, "kind": "change", "verdict": "accepted"}
    row = {"table": "t", "key": f'{{"id":"{LEAST}"}}', "image": f'{{"id":"{LEAST}"}}'}
    state.append(TableName.CHANGELOG, {**change, **row, "rid": 1, "csn": csn(1, 1), "op": "insert"})
    state.commit(1, 1, ruv(r1=1))
    return state


@pytest.mark.usefixtures("negative")
@pytest.mark.parametrize(
    "arguments",
    [("t", LEAST, "--json"), ("--limit", "2", "t", LEAST, "--json"), ("--json", "--", "t", LEAST)],
)
def test_a_negative_key_is_no_option(slackwater: Slackwater, arguments: tuple[str, ...]) -> None:
    """Whoever copies a key from elsewhere knows nothing of `--`."""
    answer = slackwater("rows", *arguments)

    assert answer.code == 0, answer.err
    assert [row["image"] for row in answer.facts["rows"]] == [{"id": LEAST}]


@pytest.mark.usefixtures("negative")
def test_a_negative_value_of_an_option_stays_one(slackwater: Slackwater) -> None:
    """It would be taken for the key."""
    answer = slackwater("rows", "t", "--limit", "-1")

    assert answer.code == 2
    assert "--limit" in answer.err
