"""Two clients a replica, each in a thread: one collides with the others, one writes traffic.

The traffic warms up the hub before the clock runs, and stops when the time is up. The collisions
begin with the clock, and continue until there are enough.
"""

import math
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from streaming.demo.databases.client import DatabaseClient, WorkloadStopped
from streaming.demo.databases.contract import ReplicaDatabase
from streaming.demo.folder import REPLICAS
from streaming.demo.monitor import DemoError
from streaming.demo.replicas.collisions import Collisions
from streaming.demo.replicas.traffic import OrdinaryTraffic

END_S = 120.0


class Workload:
    """All writing clients; traffic runs from the start, until it is done or stopped."""

    def __init__(self, databases: Mapping[str, ReplicaDatabase], seconds: float) -> None:
        self.names = tuple(databases)
        self.stop = threading.Event()
        self.errors: list[Exception] = []
        self.began_s = math.inf
        self.seconds = seconds
        self.collisions = Collisions(self.names, self.stop, self._is_time_up)
        self.traffic: list[OrdinaryTraffic] = []
        self.colliding = [
            self._thread(databases[name], partial(self.collisions.run, me))
            for me, name in enumerate(self.names)
        ]
        self.traffic_threads = [
            self._thread(databases[name], partial(self._run_traffic, name)) for name in self.names
        ]
        for thread in self.traffic_threads:
            thread.start()

    def begin(self) -> int:
        """Start the clock and the collisions; the time in milliseconds since 1970."""
        self.began_s = time.monotonic()
        for thread in self.colliding:
            thread.start()
        return time.time_ns() // 1_000_000

    def check(self) -> None:
        """Raise the first error of a client."""
        if self.errors:
            raise DemoError(f"the workload failed: {self.errors[0]!r}") from self.errors[0]

    def is_done(self) -> bool:
        """Return whether the collisions are over; raises the first error of a client."""
        self.check()
        return not any(thread.is_alive() for thread in self.colliding)

    def progress(self) -> float:
        """The seconds that have passed, at most the seconds that were given."""
        return min(time.monotonic() - self.began_s, self.seconds)

    def described(self) -> str:
        """The progress as text."""
        return f"round {self.collisions.rounds + 1}, {self.actions} other transactions"

    @property
    def actions(self) -> int:
        """How many transactions the ordinary traffic has committed."""
        return sum(traffic.count for traffic in self.traffic)

    def end(self) -> None:
        """Stop writing; DemoError if a client does not."""
        self.stop.set()
        self.collisions.barrier.abort()
        deadline = time.monotonic() + END_S
        started = (t for t in (*self.colliding, *self.traffic_threads) if t.ident is not None)
        for thread in started:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                raise DemoError("a client does not stop writing: its database is locked")

    def _is_time_up(self) -> bool:
        return time.monotonic() - self.began_s >= self.seconds

    def _run_traffic(self, name: str, db: DatabaseClient) -> None:
        traffic = OrdinaryTraffic(name, REPLICAS[name], db)
        self.traffic.append(traffic)
        traffic.run(self._is_time_up)

    def _thread(
        self, database: ReplicaDatabase, work: Callable[[DatabaseClient], None]
    ) -> threading.Thread:
        return threading.Thread(target=self._run, args=(database, work), daemon=True)

    def _run(self, database: ReplicaDatabase, work: Callable[[DatabaseClient], None]) -> None:
        try:
            with database.session() as session:
                work(DatabaseClient(session, self.stop))
        except WorkloadStopped:
            pass
        except Exception as error:  # noqa: BLE001 it is raised where the workload is waited for
            self.errors.append(error)
            self.collisions.barrier.abort()
