"""What a backup holds of `rows` belongs to its commit, whatever a hub does meanwhile."""

from pathlib import Path

import pytest
from deltalake import DeltaTable

from checkpoints import query
from checkpoints.maintenance import backup
from checkpoints.maintenance.backup import back_up
from checkpoints.reading.reader import open_state
from checkpoints.tables import TableName
from streaming.core.access.root import StateRoot
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.builders import csn


def merge(written: WrittenState, epoch: int) -> None:
    """`rows` gets a row of this hub epoch; the commit that tells of it comes later."""
    row = {"table": "t", "key": f'{{"k":"{epoch}"}}', "author": 1, "hub_epoch": epoch}
    written.append(TableName.ROWS, {**row, "csn": csn(epoch, 1)})


def test_rows_that_a_hub_brings_up_meanwhile_are_copied_with_the_commit_that_tells_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that lag behind what their commit says would never be brought up: lost in silence."""
    written = WrittenState(tmp_path / "state").create()
    written.commit(1, 1, ruv(r1=1), rows_epoch=0)
    steps = [(1, 1), (2, 2), (3, 2)]
    """What `rows` is brought up to, and the next commit says, each time that it is opened."""

    def opened(root: StateRoot, name: TableName) -> DeltaTable | None:
        found = query.open_table(root, name)
        if name is TableName.ROWS and root == written.root and steps:
            merged, told = steps.pop(0)
            merge(written, merged)
            written.commit(merged + 1, merged + 1, ruv(r1=1), rows_epoch=told)
        return found

    monkeypatch.setattr(backup, "open_table", opened)
    made = back_up(written.root, tmp_path / "backup", 0)

    copied = open_state(tmp_path / "backup").commit
    assert copied is not None
    rows = query.select(query.open_table(tmp_path / "backup", TableName.ROWS), TableName.ROWS)
    held = max(rows["hub_epoch"].to_pylist())
    assert copied.rows_epoch <= held <= copied.state.hub_epoch == made.hub_epoch
