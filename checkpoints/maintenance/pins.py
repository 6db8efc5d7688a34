"""Pinned hub epochs: what OPTIMIZE and VACUUM of `rows` keep for them, and what that costs.

A purge of the other tables stops below the oldest pin too.
"""

from checkpoints.commit.epochs import Checkpoint
from checkpoints.config import commands_named
from checkpoints.query import file_sizes
from checkpoints.reading.past import readable_version, rows_version
from checkpoints.root import open_delta
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.access.root import StateRoot
from streaming.core.model.command import CommandName
from streaming.core.replay.pins import Pin, kept_hours, pins_of


def pins(store: StateStore) -> dict[str, Pin]:
    """Name -> pin, of all that stand."""
    return pins_of(commands_named(store, CommandName.PIN, CommandName.UNPIN))


def keep_pinned(store: StateStore, now_ms: int) -> None:
    """Let `rows` keep its versions for as long as the replay window and the pins need them."""
    store.keep_rows(kept_hours(store.kept_hours, pins(store).values(), now_ms))


def bytes_held(root: StateRoot, commit: Checkpoint) -> int | None:
    """The bytes of those files of `rows` at this commit that its newest version lacks.

    They are there for readers of the past alone. None: the version is gone.
    """
    wanted = rows_version(commit)
    if wanted is None:
        return 0
    table = readable_version(root, wanted.version)
    if table is None:
        return None
    then, now = file_sizes(table), file_sizes(open_delta(root, TableName.ROWS))
    return sum(size for path, size in then.items() if path not in now)
