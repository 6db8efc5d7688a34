"""Kafka's options as their files have them now.

A password or a certificate is changed while a process runs, and who opens a connection then takes
the new one.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from connectors.kafka.certificates import OPTIONS
from connectors.live_value import LiveValue


class LiveOptions(LiveValue[Mapping[str, str]]):
    """The options of clients of Kafka, read again when a file that they come from is changed.

    The certificates that they name are looked at too: a client reads those by itself, but only
    when it is opened.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        read: Callable[[], Mapping[str, str]] | None = None,
        files: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        super().__init__(
            "kafka.options",
            options,
            read or (lambda: options),
            lambda of: [*files(), *(Path(of[one]) for one in OPTIONS if one in of)],
        )
