"""The hub epochs as they pass, for whoever watches; what nobody watches costs nothing."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from threading import Lock

import pyarrow as pa

from checkpoints.commit.epochs import Checkpoint
from streaming.facts.documents import document_text
from streaming.facts.live import LiveFacts, epoch_event, state_event

KEPT = 200
"""How many hub epochs are kept for a page that connects again."""
UNBUILT_MAX = 50
"""How many hub epochs wait to be told; the oldest go if nobody tells them in time."""
WATCHED_S = 60.0
"""How long hub epochs are kept after the last page has gone: it may come back."""
LOOK_S = 0.2
STATE_EVERY_S = 2.0
WATCHERS_MAX = 20

MayRead = Callable[[], bool]
"""Says whether who watches may still read."""


@dataclass(slots=True)
class EpochFeed:
    """Events of a hub, as server-sent events; `state` gives the hub as it is at a time.

    The hub hands over what it committed, and nothing is made of it in its thread.
    """

    state: Callable[[float], LiveFacts | None]
    watchers: int = 0
    is_closed: bool = False
    _left_s: float = -WATCHED_S
    _unbuilt: deque[tuple[Checkpoint, pa.Table]] = field(
        default_factory=lambda: deque(maxlen=UNBUILT_MAX)
    )
    _sent: deque[tuple[int, str]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _turn: Lock = field(default_factory=Lock)
    _state_text: str = ""
    _state_s: float = -STATE_EVERY_S

    @property
    def is_watched(self) -> bool:
        """Return whether somebody watches, or did just now."""
        return self.watchers > 0 or time.monotonic() - self._left_s < WATCHED_S

    def admit(self) -> bool:
        """Return whether one more may watch, who counts from now on; `left` ends it."""
        if self.watchers >= WATCHERS_MAX:
            return False
        self.watchers += 1
        return True

    def note(self, checkpoint: Checkpoint, conflicts: pa.Table) -> None:
        """Take a committed hub epoch; called by the hub."""
        if self.is_watched:
            self._unbuilt.append((checkpoint, conflicts))

    def left(self) -> None:
        """Take note that somebody watches no more."""
        self.watchers -= 1
        self._left_s = time.monotonic()

    async def events(self, after: int, may_read: MayRead) -> AsyncIterator[str]:
        """The events of the hub epochs above `after`, and the state every two seconds.

        They end when the hub does, and when they may be read no more.
        """
        yield "retry: 2000\n\n"
        state_s = -STATE_EVERY_S
        while not self.is_closed and may_read():
            for hub_epoch, text in self._new(after):
                after = hub_epoch
                yield text
            if time.monotonic() - state_s >= STATE_EVERY_S:
                state_s = time.monotonic()
                yield await asyncio.to_thread(self._state)
            await asyncio.sleep(LOOK_S)

    def _new(self, after: int) -> list[tuple[int, str]]:
        """Make the events that wait, and return those above a hub epoch."""
        with self._turn:
            while self._unbuilt:
                checkpoint, conflicts = self._unbuilt.popleft()
                hub_epoch = checkpoint.state.hub_epoch
                text = _event("epoch", epoch_event(checkpoint, conflicts), hub_epoch)
                self._sent.append((hub_epoch, text))
            return [one for one in self._sent if one[0] > after]

    def _state(self) -> str:
        """The event of the state; it is made once for all who watch."""
        with self._turn:
            if time.monotonic() - self._state_s >= STATE_EVERY_S / 2:
                found = self.state(time.time())
                self._state_text = (
                    _event("state", state_event(found)) if found else ": starting\n\n"
                )
                self._state_s = time.monotonic()
            return self._state_text


def _event(kind: str, document: object, id_: int | None = None) -> str:
    head = f"event: {kind}\n" + (f"id: {id_}\n" if id_ is not None else "")
    return f"{head}data: {document_text(document)}\n\n"
