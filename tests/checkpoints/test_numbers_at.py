"""Claims about the hub's own row of the matrix behind a hub epoch, as its commit rows tell it."""

from pathlib import Path

import pytest

from checkpoints.reading.numbers import numbers_at
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from tests.checkpoints.written_state import WrittenState, ruv


@pytest.mark.parametrize(
    ("hub_epoch", "number"),
    [
        pytest.param(0, 0, id="before all"),
        pytest.param(1, 10, id="the batch that reached it"),
        pytest.param(2, 20, id="not a later one of the same hub epoch"),
        pytest.param(3, 20, id="never reached: the last one below it"),
        pytest.param(4, 40, id="the last one"),
    ],
)
def test_a_hub_epoch_has_one_row(tmp_path: Path, hub_epoch: int, number: int) -> None:
    """A packet's header and `lsepoch` name the same one, whoever asks and when."""
    state = WrittenState(tmp_path).create()
    for batch, (reached, known) in enumerate([(1, 10), (2, 20), (2, 25), (4, 40)], start=1):
        state.commit(batch, reached, ruv(r1=known), numbers={1: known})

    found = numbers_at(open_state(tmp_path).table(TableName.EPOCHS), hub_epoch)

    assert found.numbers.get(1, 0) == number
