"""Waiting for the locks of local transactions, of which none must ever be the victim.

A wait below the server's deadlock_timeout (1 s by default) ends before the server looks for a
deadlock and kills somebody: it is the agent that gives up. Under contention it would starve, so
after some failures it queues for whole tables first, where the server's queue is fair. While it
waits long it holds no lock but on its own position, so nobody waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from connectors.postgres.sql import Session

FAILURES_MAX = 3
"""After so many failures in a row the tables are locked first."""

WAIT_MS = 200
TABLE_WAIT_MS = 5_000

_HOLDERS = """SELECT a.pid, a.application_name, extract(epoch FROM now() - a.xact_start)::int
FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND a.pid IN (
  SELECT l.pid FROM pg_locks l WHERE l.locktype = 'relation' AND l.granted
    AND l.relation = ANY(%s) AND l.mode NOT IN ('AccessShareLock', 'ShareUpdateExclusiveLock'))
ORDER BY a.xact_start LIMIT 3"""


@dataclass(slots=True)
class LockWait:
    """How often in a row a batch failed to get its locks."""

    failures: int = 0

    def begin(self, session: Session, tables: Sequence[str]) -> None:
        """Set how long the transaction waits; after failures, lock these tables, by SQL name.

        Only for the first table the wait is long: behind it there is a lock that others want. It is
        another one each time.
        """
        if self.failures >= FAILURES_MAX and tables:
            first = self.failures % len(tables)
            ordered = [*tables[first:], *tables[:first]]
            for place, table in enumerate(ordered):
                self._set(session, WAIT_MS if place else TABLE_WAIT_MS)
                session.execute(f"LOCK TABLE {table} IN EXCLUSIVE MODE".encode(), ())
        self._set(session, WAIT_MS)

    def failed(self, session: Session, oids: Sequence[int]) -> str:
        """Count a failure; return who holds locks on the tables, behind the transaction."""
        self.failures += 1
        found = session.execute(_HOLDERS, (list(oids),)).fetchall()
        named = [
            f"pid {pid} ({application or 'no application_name'}, open for {open_s or 0} s)"
            for pid, application, open_s in found
        ]
        return f"blocked by {', '.join(named)}" if named else "by a transaction that has ended"

    def succeeded(self) -> None:
        """Forget the failures."""
        self.failures = 0

    def _set(self, session: Session, wait_ms: int) -> None:
        session.execute(f"SET LOCAL lock_timeout = {wait_ms}".encode())
