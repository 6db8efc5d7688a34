"""Two clients a replica, each in a thread: one collides with the others, one minds its business.

Business ends when the time is up; collisions go on until there were enough, on a slow machine too.
"""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from streaming.demo.business import Business
from streaming.demo.client import Client, ClientStopped, client
from streaming.demo.collisions import Collisions
from streaming.demo.watch import DemoError

END_S = 120.0


class Workload:
    """Everything that writes; it runs from the start until it is done or told to stop."""

    def __init__(
        self, databases: Mapping[str, Path], rids: Mapping[str, int], seconds: float
    ) -> None:
        self.names = tuple(databases)
        self.rids = rids
        self.stop = threading.Event()
        self.errors: list[Exception] = []
        self.began_s = time.monotonic()
        self.seconds = seconds
        self.collisions = Collisions(self.names, self.stop, self._is_time_up)
        self.businesses: list[Business] = []
        self.colliding = [
            self._thread(databases[name], partial(self.collisions.run, me))
            for me, name in enumerate(self.names)
        ]
        self.trading = [
            self._thread(databases[name], partial(self._trade, name)) for name in self.names
        ]
        for thread in (*self.colliding, *self.trading):
            thread.start()

    def is_done(self) -> bool:
        """Claim that the collisions are over; the first error of a client if there was one."""
        if self.errors:
            raise DemoError(f"the workload failed: {self.errors[0]!r}") from self.errors[0]
        return not any(thread.is_alive() for thread in self.colliding)

    def progress(self) -> float:
        """Seconds that have passed of those that it was given; never more than those."""
        return min(time.monotonic() - self.began_s, self.seconds)

    def described(self) -> str:
        """How far it is, in words."""
        deeds = sum(business.count for business in self.businesses)
        return f"round {self.collisions.rounds + 1}, {deeds} other transactions"

    def end(self) -> None:
        """Stop writing; DemoError if a client does not."""
        self.stop.set()
        self.collisions.barrier.abort()
        deadline = time.monotonic() + END_S
        for thread in (*self.colliding, *self.trading):
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise DemoError("a client does not stop writing: its database is locked")

    def _is_time_up(self) -> bool:
        return time.monotonic() - self.began_s >= self.seconds

    def _trade(self, name: str, db: Client) -> None:
        business = Business(name, self.rids[name], db)
        self.businesses.append(business)
        business.run(self._is_time_up)

    def _thread(self, database: Path, work: Callable[[Client], None]) -> threading.Thread:
        return threading.Thread(target=self._run, args=(database, work), daemon=True)

    def _run(self, database: Path, work: Callable[[Client], None]) -> None:
        try:
            with client(database, self.stop) as db:
                work(db)
        except ClientStopped:
            pass
        except Exception as error:  # noqa: BLE001 it is raised where the workload is waited for
            self.errors.append(error)
            self.collisions.barrier.abort()
