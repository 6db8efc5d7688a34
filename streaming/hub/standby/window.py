"""The window as the changelog gives it: read at a start, or kept up by a standby beside a hub.

A standby that has it needs only what was committed since its last look when it takes over.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from checkpoints.commit.epochs import Checkpoint
from checkpoints.commit.protocol import open_ledger
from checkpoints.reading import lookup
from checkpoints.store import StateStore, storage_errors
from streaming.core.access.root import StateRoot
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.row_name import text_of
from streaming.stages.window import Window

SPARE = 1.25
"""How much longer than a window may be the one that is kept up grows before it is read anew."""


@dataclass(slots=True)
class ReadWindow:
    """The window up to a commit; `blocked`: what blocks rows that it does not hold."""

    window: Window
    blocked: Mapping[RowKey, RowState]
    last: Checkpoint

    def goes_on_to(self, last: Checkpoint) -> bool:
        """Whether a commit is this one or one behind it."""
        mine, other = self.last.state, last.state
        return mine.generation == other.generation and mine.batch <= other.batch

    def read_on(self, store: StateStore, last: Checkpoint) -> None:
        """Take in what was committed since."""
        where = lookup.between(self.last.state.hub_epoch, last.state.hub_epoch)
        entries = lookup.logged_entries(store, where)
        keys, truncations = entries.keys(), entries.truncations()
        blocked = {
            key: row for key, row in self.blocked.items() if key in keys or key[0] in truncations
        }
        rows = entries.rows({**blocked, **self.window.held({*keys, *blocked})})
        for table, truncation in truncations.items():
            self.window.truncate(table, truncation)
        self.window.put({text_of(key): row for key, row in rows.items()})
        self.last = last


def read_window(store: StateStore, last: Checkpoint, window_rows: int) -> ReadWindow:
    """The window up to a commit, of at most so many rows."""
    committed = last.state.hub_epoch
    edge = lookup.edge_of(store, last.rows_epoch, committed, window_rows)
    blocked = lookup.blocked_up_to(store, last.rows_epoch, edge)
    window, rows = Window(edge), lookup.logged_rows(store, lookup.between(edge, committed), blocked)
    window.put({text_of(key): row for key, row in rows.items()})
    return ReadWindow(window, blocked, last)


class StandbyWindow:
    """A standby's: `follow` reads on from time to time, `up_to` is for the hub that takes over."""

    def __init__(self, root: StateRoot, window_rows: int) -> None:
        self._store = StateStore(root)
        self._window_rows = window_rows
        self._turn = threading.Lock()
        self._read: ReadWindow | None = None

    def follow(self) -> None:
        """Take in what was committed since the last look; StateError if that cannot be read.

        Where `rows` was brought further, or the window became too long, it is read anew.
        """
        with self._turn, storage_errors(self._store.root):
            last, found = open_ledger(self._store, "standby").last, self._read
            if found is None or not found.goes_on_to(last) or self._is_old(found, last):
                self._store.reopen()
                self._read = read_window(self._store, last, self._window_rows)
            else:
                found.read_on(self._store, last)

    def up_to(self, store: StateStore, last: Checkpoint) -> ReadWindow | None:
        """The window up to this commit, and no longer kept up; None: what was kept is of no use."""
        with self._turn:
            found, self._read = self._read, None
            if found is None or not found.goes_on_to(last):
                return None
            found.read_on(store, last)
            return found

    def _is_old(self, found: ReadWindow, last: Checkpoint) -> bool:
        is_long = len(found.window) > SPARE * self._window_rows
        return is_long or found.last.rows_epoch != last.rows_epoch
