"""Kafka's options as their files have them now.

A password or a certificate is changed while a process runs, and who opens a connection then takes
the new one.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from connectors.file_mark import FileMark, mark_of
from connectors.kafka.certificates import OPTIONS
from streaming.core.model.errors import HubError

LOG = logging.getLogger(__name__)

LOOK_S = 2.0
"""How often the files are looked at, at most."""


class LiveOptions:
    """The options of clients of Kafka, read again when a file that they come from is changed.

    `read`: reads them; HubError or OSError: what was read before stays, and the log says so.
    `files`: what they are read from. The certificates that they name are looked at too: a client
    reads those by itself, but only when it is opened.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        read: Callable[[], Mapping[str, str]] | None = None,
        files: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        self._options = options
        self._read = read or (lambda: options)
        self._files = files
        self._looked_s = time.monotonic()
        self._marks = self._marked()
        self._number, self._failure = 0, ""
        self.changed: Callable[[Mapping[str, str]], None] = _nothing
        """Called with the new options when they were read again."""

    def now(self) -> Mapping[str, str]:
        """The options as they are now."""
        self._look()
        return self._options

    @property
    def number(self) -> int:
        """How often they or their certificates were changed; an older client is opened anew."""
        self._look()
        return self._number

    def _look(self) -> None:
        if time.monotonic() - self._looked_s < LOOK_S:
            return
        self._looked_s = time.monotonic()
        before = self._marks
        try:
            self._marks = self._marked()
            if self._marks == before:
                return
            self._options = self._read()
            self._marks = self._marked()
        except (HubError, OSError) as error:
            if str(error) != self._failure:
                LOG.warning("kafka.options cannot be read again, so the old ones stay: %s", error)
            self._failure = str(error)
            return
        self._number += 1
        self.changed(self._options)
        LOG.info("kafka.options, or a certificate that they name, were changed and are read again")

    def _marked(self) -> tuple[FileMark | None, ...]:
        named = (Path(self._options[one]) for one in OPTIONS if one in self._options)
        return tuple(mark_of(file) for file in sorted({*self._files(), *named}))


def _nothing(_: Mapping[str, str]) -> None:
    """Nobody has to know."""
