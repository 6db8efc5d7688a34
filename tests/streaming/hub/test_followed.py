"""The window that a standby keeps up is the one that a start would read."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoints.commit.faults import FaultPoint
from checkpoints.commit.protocol import open_ledger
from checkpoints.reading import lookup
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.core.model.change import RowKey
from streaming.core.model.row import Realign, RowState
from streaming.hub.standby.window import ReadWindow, StandbyWindow, read_window
from tests.checkpoints.kept_state import STORY
from tests.checkpoints.written_state import WrittenState, change_row, ruv
from tests.harness.builders import csn
from tests.model.language import play
from tests.model.local_hub import LocalHub, local_hubs

MANY = 1_000_000
FOLDER = Path(__file__).parents[2] / "scenarios"
STORIES = (
    "batch_cut_in_mid_publish_comes_again_whole",
    "refused_row_outlives_crashes",
    "winner_that_was_concurrent_is_sent_back",
)
KEY = '{"id":"1"}'


class FollowedHub(LocalHub):
    """A hub whose window is read on behind each of its batches, and held against one read anew."""

    kept: ReadWindow | None = None
    followed = 0

    def take(
        self,
        counts: Mapping[int, int] | None,
        now_ms: int,
        kill: FaultPoint | None,
        pages: Collection[int] = (),
    ) -> None:
        """Make a batch, which may die, and follow it."""
        super().take(counts, now_ms, kill, pages)
        store = StateStore(self.config.hub.state)
        last = open_ledger(store, "test").last
        anew = read_window(store, last, MANY)
        if self.kept is None:
            self.kept = anew
            return
        assert self.kept.goes_on_to(last)
        self.kept.read_on(store, last)
        keys = written_rows(store)
        assert self.kept.window.held(keys) == anew.window.held(keys)
        assert len(self.kept.window) == len(anew.window)
        self.followed += 1


def written_rows(store: StateStore) -> set[RowKey]:
    """The rows that the changelog names."""
    return lookup.logged_entries(store, lookup.between(0, MANY)).keys()


@pytest.mark.parametrize("story", [*STORIES, None])
def test_reading_on_is_reading_anew(story: str | None, tmp_path: Path) -> None:
    """Changes, refreshes, truncates, transactions, and batches whose hub died in between."""
    text = (FOLDER / f"{story}.txt").read_text(encoding="utf-8") if story else STORY

    world = play(text, local_hubs(tmp_path, kind=FollowedHub))

    assert isinstance(world.hub, FollowedHub)
    assert world.hub.followed > 1


@pytest.fixture
def state(tmp_path: Path) -> WrittenState:
    """A row that hub epoch 1 wrote and sent to replica 2, and `rows` has."""
    made = WrittenState(tmp_path).create()
    row = {"table": "t", "key": KEY, "author": 1, "hub_epoch": 1, "csn": csn(1, 1), "image": "{}"}
    made.append(TableName.ROWS, {**row, "realign": [block(1, 5)]})
    made.append(TableName.CHANGELOG, change_row(1, 1, 0, csn(1, 1)))
    made.commit(1, 1, ruv(r1=1), rows_epoch=1, counts={"entries": 1})
    return made


def block(epoch: int, offset: int) -> dict[str, object]:
    """What `rows` says of a row that was sent to replica 2."""
    return {"rid": 2, "hub_epoch": epoch, "offset": offset, "rejects_transaction": False}


def window_of(followed: StandbyWindow, state: WrittenState) -> dict[RowKey, RowState] | None:
    """What a hub that takes over now gets; None: nothing, so it reads by itself."""
    store = StateStore(state.root)
    found = followed.up_to(store, open_ledger(store, "test").last)
    return None if found is None else found.window.held([("t", KEY)])


def test_what_blocks_a_row_outside_of_the_window_blocks_it_still(state: WrittenState) -> None:
    """It is in `rows` alone until something writes the row."""
    followed = StandbyWindow(state.root, MANY)
    followed.follow()
    state.append(TableName.CHANGELOG, change_row(2, 2, 0, csn(2, 1)))
    state.commit(2, 2, ruv(r1=2), rows_epoch=1, counts={"entries": 1})

    rows = window_of(followed, state)

    expected = RowState(1, 2, csn(2, 1), exists=True, realign=(Realign(2, 1, 5),))
    assert rows == {("t", KEY): expected}


def test_a_window_is_read_anew_once_rows_has_more(state: WrittenState) -> None:
    """What stands in `rows` by now needs no place in it."""
    followed = StandbyWindow(state.root, MANY)
    state.append(TableName.CHANGELOG, change_row(2, 2, 0, csn(2, 1)))
    state.commit(2, 2, ruv(r1=2), rows_epoch=1, counts={"entries": 1})
    followed.follow()
    state.commit(3, 2, ruv(r1=2), rows_epoch=2)

    followed.follow()

    assert window_of(followed, state) == {}


def test_a_state_that_was_put_back_is_no_later_one(state: WrittenState) -> None:
    """Its commits have the numbers of others."""
    followed = StandbyWindow(state.root, MANY)
    followed.follow()
    store = StateStore(state.root)
    last = open_ledger(store, "test").last

    raised = replace(last, state=replace(last.state, generation=last.state.generation + 1))

    assert followed.up_to(store, raised) is None


def test_a_window_that_was_given_up_is_not_given_twice(state: WrittenState) -> None:
    """The hub that took it changes it."""
    followed = StandbyWindow(state.root, MANY)
    followed.follow()

    assert window_of(followed, state) is not None
    assert window_of(followed, state) is None
