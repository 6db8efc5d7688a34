"""Who may read a port, as the file of the token says now."""

from collections.abc import Callable, Iterable
from pathlib import Path

from connectors.live_value import LiveValue
from streaming.core.access.port_access import PortAccess


class LiveAccess(LiveValue[PortAccess]):
    """The access to a port, whose token is read again when a file that it comes from is changed.

    All else of it stays as it was at the start.
    """

    def __init__(
        self,
        access: PortAccess,
        read_token: Callable[[], str | None] | None = None,
        files: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        read = read_token or (lambda: access.token)
        super().__init__(
            "http.token", access, lambda: self.latest.with_token(read()), lambda _: files()
        )
