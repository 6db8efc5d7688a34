"""Notices that a hub runs and does not move, and ends it with the stacks of all its threads.

Whatever holds a batch up (a disk, a broker, a user's function, a thread of Spark's that died), the
hub cannot go on, and its supervisor starts another one, which resumes where this one stopped.
"""

import faulthandler
import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from streaming.core.text.wording import as_count
from streaming.hub.batch.phases import BatchPhases

LOG = logging.getLogger("slackwater")

HUNG_EXIT_CODE = 3
"""The exit code of a hub that ended itself because it did not move."""
LOOKS = 10
"""How often it looks within the time limit."""
LAST_WORDS_S = 30.0
"""Within so many seconds the process is gone, also if its log cannot be written."""


@dataclass(slots=True)
class Watchdog:
    """Looks at the batches from a thread of its own.

    `limit_s` 0: it does not look. `trigger_s`: from the start of one batch to the next. `waiting`:
    how many records wait to be read, while Kafka answers. `is_away`: Kafka does not answer; a batch
    that waits for it does not hang. `dump_java`: has the JVM write the stacks
    of its threads; `kill_java`: ends it.
    """

    phases: BatchPhases
    limit_s: float
    trigger_s: float
    waiting: Callable[[], int]
    is_away: Callable[[], bool]
    dump_java: Callable[[], None]
    kill_java: Callable[[], None]
    clock_s: Callable[[], float] = time.monotonic
    _stopped: threading.Event = field(default_factory=threading.Event)
    _waits_since_s: float | None = None
    _away_s: float = float("-inf")

    def start(self) -> None:
        """Start to look."""
        if self.limit_s:
            threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()

    def finding(self) -> str | None:
        """What does not move; None: everything does, or there is nothing to do."""
        running, now_s = self.phases.running, self.clock_s()
        if self.is_away():
            self._away_s = now_s
        if running is not None:
            self._waits_since_s = None
            took_s, of_phase_s = now_s - running.began_s, now_s - running.phase_began_s
            if now_s - max(running.began_s, self._away_s) < self.limit_s:
                return None
            return (
                f"batch {running.batch} is under way for {_seconds(took_s)}, in its phase"
                f" {running.phase} for {_seconds(of_phase_s)}"
            )
        waiting, limit_s = self.waiting(), self.limit_s + self.trigger_s
        since_s = self._waits_since_s
        if not waiting or since_s is None or self.phases.ended_s > since_s:
            self._waits_since_s = since_s = now_s if waiting else None
        if since_s is None or now_s - since_s < limit_s:
            return None
        return (
            f"no batch has begun for {_seconds(now_s - since_s)}, though"
            f" {as_count(waiting, 'record')} can be read"
        )

    def _run(self) -> None:
        while not self._stopped.wait(min(1.0, self.limit_s / LOOKS)):
            found = self.finding()
            if found is not None:
                self._end(found)

    def _end(self, found: str) -> None:
        """Say so, show all stacks, and leave; nothing that hangs may keep it from that."""
        faulthandler.dump_traceback_later(LAST_WORDS_S, exit=True)
        LOG.critical(
            "%s (hub.batch_timeout_s = %g): the hub ends with exit code %d, start it again; it"
            " resumes where it stopped",
            *(found, self.limit_s, HUNG_EXIT_CODE),
        )
        LOG.critical("the stacks of its threads in Python:\n%s", python_stacks())
        LOG.critical("its JVM writes its own to standard output, unless it hangs itself")
        self.dump_java()
        self.kill_java()
        sys.stderr.flush()
        os._exit(HUNG_EXIT_CODE)


def python_stacks() -> str:
    """The stack of each thread of this process, as text."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()  # noqa: SLF001 the module documents it
    return "\n".join(
        f"thread {names.get(ident, ident)}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in frames.items()
    )


def _seconds(seconds: float) -> str:
    return as_count(round(seconds), "second")
