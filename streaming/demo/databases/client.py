"""A client of one replica's database, unaware of the hub.

It learns the verdict on its writes as any application can: the RUV that the agent stores with the
rows covers a write once the hub has judged it, and the refresh of a lost write comes with it.
"""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from streaming.demo.monitor import DemoError

JUDGED_S = 240.0
"""How long a client waits for the verdict on what it wrote."""
POLL_S = 0.03


class WorkloadStopped(Exception):  # noqa: N818 no error
    """The workload has to stop."""


class FoundRows(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int:
        """How many rows it wrote."""

    def fetchone(self) -> Any:  # noqa: ANN401 a row of any columns
        """The next row."""

    def fetchall(self) -> Any:  # noqa: ANN401 as above
        """All rows."""


class ClientSession(Protocol):
    """A connection to a database of any kind; a parameter of a statement is `?`."""

    def execute(self, query: str, values: Sequence[object] = ()) -> FoundRows:
        """Run a statement."""

    def execute_each(self, query: str, rows: Sequence[Sequence[object]]) -> None:
        """Run it once for each of these."""

    def atomic(self) -> AbstractContextManager[object]:
        """A transaction."""

    def group(self) -> AbstractContextManager[object]:
        """A transaction whose changes are one for the hub as well."""

    def judged(self) -> Callable[[], bool]:
        """What returns whether everything written here so far is judged, its refreshes applied."""


class DatabaseClient:
    """One connection and its queries."""

    def __init__(self, session: ClientSession, stop: threading.Event) -> None:
        self.session = session
        self.stop = stop

    def notes(self, ids: list[int]) -> dict[int, str | None]:
        """Account id -> its note, of the accounts that exist."""
        rows = self.session.execute(
            "SELECT id, note FROM account WHERE id BETWEEN ? AND ?", (ids[0], ids[-1])
        )
        return dict(rows.fetchall())

    def wait_until_judged(self) -> None:
        """Wait until everything written here so far is judged and its refreshes are applied."""
        is_judged = self.session.judged()
        deadline = time.monotonic() + JUDGED_S
        while not is_judged():
            if self.stop.wait(POLL_S):
                raise WorkloadStopped
            if time.monotonic() > deadline:
                raise DemoError(
                    f"what was written is not judged after {JUDGED_S:.0f} s: is it pending?"
                )
