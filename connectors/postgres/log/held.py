"""How much of its log the server keeps for the agent, how much more it will, and who holds it."""

from connectors.agent.contract import HeldLog
from connectors.postgres.sql import Session
from streaming.core.text.wording import as_count

_HELD = """SELECT greatest(pg_current_wal_lsn() - restart_lsn, 0)::bigint, safe_wal_size,
  greatest(confirmed_flush_lsn - restart_lsn, 0)::bigint
FROM pg_replication_slots WHERE slot_name = %s"""

_OLDEST = """SELECT * FROM (
  SELECT 'process ' || pid, extract(epoch FROM now() - xact_start)::bigint AS since_s
    FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND xact_start IS NOT NULL
  UNION ALL SELECT 'the prepared transaction ' || gid, extract(epoch FROM now() - prepared)::bigint
    FROM pg_prepared_xacts) one
ORDER BY since_s DESC LIMIT 1"""

OPEN_S = 60
"""A transaction that is open for so long is named as the one that holds the log."""


def held_log(session: Session, slot: str) -> HeldLog | None:
    """What the server keeps for this slot; None: there is no such slot.

    Log is kept from the oldest transaction that was open where the agent has read up to, so a
    transaction that is open for long holds it, though the agent reads on.
    """
    row = session.execute(_HELD, (slot,)).fetchone()
    if row is None:
        return None
    held, room, open_ = row
    oldest = session.execute(_OLDEST).fetchone()
    if oldest is not None and oldest[1] >= OPEN_S and open_ * 2 >= held:
        by = f"{oldest[0]}, open for {as_count(oldest[1], 'second')}"
    else:
        by = "what the agent has not published"
    return HeldLog(held, room, by)
