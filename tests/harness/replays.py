"""The whole history of a state root, judged again in this process."""

from pathlib import Path

from checkpoints.commit.recorded import from_store
from checkpoints.reading.past import PastStore
from streaming.replay.report.answer import ReplayAnswer, choose, replay
from streaming.replay.verify import verify
from streaming.replay.what_if import NO_CHANGE, WhatIf


def replayed(root: Path, what_if: WhatIf = NO_CHANGE) -> ReplayAnswer:
    """The answer to a replay of everything that is recorded."""
    store = PastStore(root)
    try:
        return replay(store, choose(store, None, None), from_store(store), what_if)
    finally:
        store.close()


def check_replay_is_equal(root: Path, *, without: str = "") -> None:
    """Everything comes out as it is recorded.

    `without`: the beginning of what is not compared, because a test changed it by hand.
    """
    found = [
        one
        for one in replayed(root).differences
        if not (without and one.difference.id.startswith(without))
    ]
    assert not found, "\n".join(map(str, found))


def check_audit_is_sound(root: Path) -> None:
    """Nothing is wrong with what is recorded."""
    store = PastStore(root)
    try:
        audit = verify(store, choose(store, None, None), from_store(store))
    finally:
        store.close()
    assert audit.is_sound, "\n".join(map(str, audit.findings))
