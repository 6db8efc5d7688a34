"""How far back a state can be judged again: what is purged must be in a version of `rows`."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from checkpoints.past import PastStore
from checkpoints.recorded import batch_marks
from checkpoints.retention import oldest_epoch
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.model.errors import QuestionError
from streaming.core.replay.span import Moment, span_of
from tests.checkpoints.written_state import WrittenState, ruv


def purged_state(root: Path, purge_epoch: int) -> PastStore:
    """Five hub epochs, up to one of which the changelog is gone; `rows` follows two behind."""
    state = WrittenState(root).create()
    for number in range(1, 6):
        state.commit(
            number,
            number,
            ruv(r1=number),
            purge_epoch=purge_epoch if number == 5 else 0,
            versions={"rows": 0},
            rows_epoch=max(0, number - 2),
        )
    return PastStore(root)


@pytest.mark.parametrize(("purge_epoch", "oldest"), [(0, 1), (2, 5), (4, 6)])
def test_the_oldest_epoch_follows_from_what_is_purged(
    purge_epoch: int, oldest: int, tmp_path: Path
) -> None:
    """A replay from an incomplete state would find differences that are none."""
    store = purged_state(tmp_path, purge_epoch)

    assert oldest_epoch(store, batch_marks(store)) == oldest


def test_a_range_beyond_retention_is_refused_with_the_oldest_epoch(tmp_path: Path) -> None:
    """Who asks for too much is told what to ask for."""
    store = purged_state(tmp_path, 2)
    marks = batch_marks(store)

    with pytest.raises(QuestionError, match="the oldest one that can be judged again is 5"):
        span_of(marks, Moment("3", hub_epoch=3), None, lambda _: None, oldest_epoch(store, marks))


def test_the_window_is_that_of_the_last_start(tmp_path: Path) -> None:
    """Log, replaced files and VACUUM of the full state follow from one setting."""
    for hours in (168, 720):
        StateStore(tmp_path, hours).create()

    found = DeltaTable(tmp_path / TableName.ROWS).metadata().configuration

    assert found["delta.logRetentionDuration"] == "interval 720 hours"
    assert found["delta.deletedFileRetentionDuration"] == "interval 720 hours"
