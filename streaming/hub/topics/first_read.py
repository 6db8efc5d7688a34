"""The first read of a plan, while nobody waits for it.

A batch that does not take all that Spark offers is read anew by its offsets. The first such read of
a JVM takes seconds, and it would be the first batch of a flood.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from streaming.core.model.errors import HubError

LOG = logging.getLogger("slackwater")

WARM = "a batch that is read by its offsets is no first one"
"""In the log, from the level debug on."""
AFTER_S = 10.0
"""How long a hub has run before: at its start it has a backlog to read, and may be stopped soon."""
RECORDS = 100
"""Of each topic."""
ENDS_S = 10.0
"""The longest wait for its end."""

Offsets = Mapping[str, tuple[int, int]]
"""Topic -> [first, end)."""


class FirstRead:
    """Reads once what this JVM has read before, and so can hold, in a thread of its own."""

    def __init__(self, read: Callable[[Offsets], None]) -> None:
        self._read = read
        self._offsets: Offsets = {}
        self._may = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="first read", daemon=True)

    def start(self) -> None:
        """Begin to wait for the moment."""
        self._thread.start()

    def can_read(self, offsets: Offsets) -> None:
        """Note offsets that Spark has read; of each topic the last ones are read again."""
        if offsets and not self._may.is_set():
            self._offsets = {t: (max(at, end - RECORDS), end) for t, (at, end) in offsets.items()}
            self._may.set()

    def close(self) -> None:
        """End it, and wait until nothing of it uses Spark, which may end then."""
        self._over.set()
        self._may.set()
        if self._thread.is_alive():
            self._thread.join(ENDS_S)

    def _work(self) -> None:
        began_s = time.monotonic()
        self._may.wait()
        if self._over.wait(max(0.0, began_s + AFTER_S - time.monotonic())):
            return
        try:
            self._read(self._offsets)
        except (HubError, Py4JError, PySparkException) as error:
            LOG.debug("a read that nobody waits for failed: %s", str(error).split("\n")[0])
        else:
            LOG.debug(WARM)
