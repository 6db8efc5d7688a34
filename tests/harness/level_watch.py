"""Asks `level` all the time while a story runs, and holds each yes against the files."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from checkpoints.reading.reader import open_state
from connectors.kafka.topics import Topics
from streaming.facts.consumers.level import HubLevel, hub_level
from streaming.facts.freshness import MAX_AGE_S
from tests.harness.agents_of_kinds import rows
from tests.harness.hub_process import wait_until
from tests.harness.site import Site

PAUSE_S = 0.05


@dataclass(slots=True)
class LevelWatch:
    """`names`: whose files must be equal when it says yes; `lies`: what they held when not.

    Whoever writes holds `turn`, so that an answer and the files that it is held against are of one
    time; beside a running agent, and who kills one, until the files are equal, or `level` says no:
    for that long no answer can know of it.
    """

    at: Site
    names: str
    turn: threading.Lock = field(default_factory=threading.Lock)
    stopped: threading.Event = field(default_factory=threading.Event)
    lies: list[dict[str, dict[str, str]]] = field(default_factory=list)
    answers: int = 0
    yes: int = 0

    def ask(self) -> HubLevel:
        """The answer now."""
        config, reader = self.at.config(), open_state(self.at.state)
        names = [config.changes_topic(replica.name) for replica in config.replicas]
        with Topics(config.kafka.bootstrap_servers, {}, 3_000) as topics:
            ends = topics.end_offsets(names)
        return hub_level(config, reader, lambda: ends, time.time(), MAX_AGE_S)

    def awaits(self, claim: Callable[[HubLevel], object], what: str) -> HubLevel:
        """Wait for an answer of which the claim is true; the answer."""
        seen = list[HubLevel]()

        def holds() -> bool:
            seen[:] = [self.ask()]
            return bool(claim(seen[0]))

        wait_until(holds, lambda: f"{what}, not {seen}")
        return seen[0]

    def awaits_yes(self) -> None:
        """Wait until all are level."""
        self.awaits(lambda found: found.level, "level")

    def look(self) -> None:
        """Ask once, and compare the files if the answer is yes."""
        with self.turn:
            found = self.ask()
            self.answers += 1
            if not found.level:
                return
            self.yes += 1
            files = {name: rows(self.at, name) for name in self.names}
            if any(held != files[self.names[0]] for held in files.values()):
                self.lies.append(files)

    def run(self) -> None:
        """Ask until the story is over; most of the time is for those who are watched."""
        while not self.stopped.is_set():
            began_s = time.monotonic()
            self.look()
            time.sleep(max(PAUSE_S, 2 * (time.monotonic() - began_s)))


@contextmanager
def watched(at: Site, names: str) -> Iterator[LevelWatch]:
    """A watch for the length of a story; AssertionError at its end if a yes was none.

    A watch that could not go on, for a configuration that is half written, say, raises its error.
    """
    watch = LevelWatch(at, names)
    with ThreadPoolExecutor(1, "level watch") as pool:
        watching = pool.submit(watch.run)
        try:
            yield watch
        finally:
            watch.stopped.set()
    watching.result()
    assert watch.lies == [], f"level, and these files: {watch.lies[0]}"
    assert watch.yes < watch.answers
