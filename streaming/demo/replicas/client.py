"""A client of one replica's database: ordinary SQLite, unaware of the hub.

It learns the verdict on its writes as any application can: the RUV that the agent stores with the
rows covers a write once the hub has judged it, and the refresh of a lost write comes with it.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from connectors.sqlite.journal.entries import ruv_of
from streaming.demo.monitor import DemoError

BUSY_S = 60.0
JUDGED_S = 240.0
"""How long a client waits for the verdict on what it wrote."""
POLL_S = 0.03


class WorkloadStopped(Exception):  # noqa: N818 no error
    """The workload has to stop."""


@contextmanager
def client(database: Path, stop: threading.Event) -> Iterator["DatabaseClient"]:
    """A connection for one thread, closed at the end."""
    connection = sqlite3.connect(database, timeout=BUSY_S, isolation_level=None)
    with closing(connection):
        yield DatabaseClient(connection, stop)


class DatabaseClient:
    """One connection and its queries."""

    def __init__(self, connection: sqlite3.Connection, stop: threading.Event) -> None:
        self.connection = connection
        self.stop = stop

    def notes(self, ids: list[int]) -> dict[int, str | None]:
        """Account id -> its note, of the accounts that exist."""
        rows = self.connection.execute(
            "SELECT id, note FROM account WHERE id BETWEEN ? AND ?", (ids[0], ids[-1])
        )
        return dict(rows.fetchall())

    def last_csn(self) -> str:
        """The CSN of the last write of this database."""
        row = self.connection.execute(
            "SELECT csn FROM _slackwater_journal WHERE kind = 'change' ORDER BY id DESC LIMIT 1"
        ).fetchone()
        return "" if row is None else str(row[0])

    def wait_until_judged(self) -> None:
        """Wait until everything written here so far is judged and its refreshes are applied."""
        csn = self.last_csn()
        deadline = time.monotonic() + JUDGED_S
        while not self._is_judged(csn):
            if self.stop.wait(POLL_S):
                raise WorkloadStopped
            if time.monotonic() > deadline:
                raise DemoError(
                    f"change {csn} is not judged after {JUDGED_S:.0f} s: is it pending?"
                )

    def _is_judged(self, csn: str) -> bool:
        (text,) = self.connection.execute("SELECT ruv FROM _slackwater_position").fetchone()
        return not csn or ruv_of(text).covers(csn)
