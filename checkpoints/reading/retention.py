"""How far back the state can be read as it was: what is purged, which versions are there."""

from bisect import bisect_left
from collections.abc import Sequence

from checkpoints.commit.epochs import Checkpoint, checkpoint_of
from checkpoints.commit.recorded import BatchMark, commit_of
from checkpoints.reading.past import readable_version, rows_version
from checkpoints.store import StateStore


def oldest_epoch(store: StateStore, marks: Sequence[BatchMark]) -> int:
    """The first hub epoch that can be judged again; above the last one: none can.

    As long as nothing is purged the changelog tells every row. Behind that the state before the
    first batch is needed, so `rows` must be there as it was, with everything that is purged.
    """
    if not marks:
        return 1
    purged = _checkpoint(store, marks[-1].batch).state.purge_epoch
    if not purged:
        return marks[0].hub_epoch or 1
    found = bisect_left(marks, True, key=lambda mark: _can_start(store, mark, purged))  # noqa: FBT003
    return marks[found].hub_epoch + 1 if found < len(marks) else marks[-1].hub_epoch + 1


def _can_start(store: StateStore, mark: BatchMark, purged: int) -> bool:
    if mark.hub_epoch < purged:
        return False
    version = rows_version(_checkpoint(store, mark.batch))
    return (
        version is not None
        and version.rows_epoch >= purged
        and readable_version(store.root, version.version) is not None
    )


def _checkpoint(store: StateStore, batch: int) -> Checkpoint:
    row = commit_of(store, batch)
    assert row is not None, "a mark is of a commit row"  # noqa: S101
    return checkpoint_of(row)
