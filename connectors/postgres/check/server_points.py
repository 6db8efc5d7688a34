"""What of the server is in order for a replica, or what to do: its version, settings and room."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from connectors.agent.found import CheckedPoint
from connectors.postgres.sql import Session
from streaming.core.text.wording import as_count

VERSION_MIN = 14
OPEN_S = 300
"""A transaction that is open for so long is named: a slot is not made before it ends."""
CLOCK_S = 5.0
"""By how much the server's clock may differ from the one here."""

_ROOM = """SELECT 'max_replication_slots',
  (SELECT count(*) FROM pg_replication_slots WHERE slot_name NOT LIKE 'slackwater\\_\\_%')
UNION ALL SELECT 'max_wal_senders',
  (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'slackwater')
UNION ALL SELECT name,
  (SELECT count(*) FROM pg_replication_origin WHERE roname NOT LIKE 'slackwater\\_\\_%'
    AND roname NOT LIKE 'slackwater\\_local\\_\\_%')
FROM pg_settings WHERE name = 'max_active_replication_origins'"""
"""The last one there is since version 18; before, origins share the first one with slots."""

_OPEN = """SELECT pid, coalesce(usename, ''), extract(epoch FROM now() - xact_start)::int
FROM pg_stat_activity WHERE xact_start < now() - make_interval(secs => %s)
  AND pid <> pg_backend_pid() AND backend_type = 'client backend' ORDER BY xact_start LIMIT 3"""

_LOCAL = {"127.0.0.1", "::1", "localhost", ""}


def server_points(session: Session) -> Iterator[CheckedPoint]:
    """What of the server was checked."""
    yield from _server(session)
    yield from _room(session)
    yield _kept_log(session)
    yield from _open_transactions(session)
    yield _clock(session)


def setting(session: Session, name: str) -> str:
    """A setting, as SHOW has it."""
    (value,) = session.execute("SELECT current_setting(%s)", (name,)).fetchone() or ("",)
    return str(value)


def _server(session: Session) -> Iterator[CheckedPoint]:
    version = session.info.server_version // 10_000
    yield CheckedPoint(
        f"PostgreSQL {version}",
        "" if version >= VERSION_MIN else f"upgrade the server to {VERSION_MIN} or newer",
    )
    encoding = setting(session, "server_encoding")
    yield CheckedPoint(
        f"encoding {encoding}",
        ""
        if encoding == "UTF8"
        else "move the tables to a database that is made with"
        " ENCODING 'UTF8': others cannot hold what replicas write",
    )
    (is_standby,) = session.execute("SELECT pg_is_in_recovery()").fetchone() or (False,)
    yield CheckedPoint(
        "a standby" if is_standby else "a primary",
        "name the primary: a standby takes no rows" if is_standby else "",
    )
    level = setting(session, "wal_level")
    yield CheckedPoint(
        f"wal_level {level}",
        ""
        if level == "logical"
        else "ALTER SYSTEM SET wal_level = 'logical'; then restart the server",
    )


def _room(session: Session) -> Iterator[CheckedPoint]:
    """Room for one slot, one sender and one origin, beside those of others."""
    for name, used in session.execute(_ROOM).fetchall():
        most = int(setting(session, name))
        missing = f"ALTER SYSTEM SET {name} = {most + 5}; then restart the server"
        what = f"{name} {most}, of which others have {used}"
        yield CheckedPoint(what, "" if used < most else missing)


def _kept_log(session: Session) -> CheckedPoint:
    """The bound of what a slot holds, and the disk that it holds it on, if that can be seen."""
    kept, disk = setting(session, "max_slot_wal_keep_size"), _disk(session)
    if kept != "-1":
        return CheckedPoint(f"max_slot_wal_keep_size {kept}, {disk}")
    return CheckedPoint(
        f"max_slot_wal_keep_size is not set, {disk}",
        "while no agent reads, the server keeps its log until the disk is full: ALTER SYSTEM SET"
        " max_slot_wal_keep_size = '10GB'; SELECT pg_reload_conf(); a replica that is away for"
        " longer than that is attached anew",
        is_in_the_way=False,
    )


def _disk(session: Session) -> str:
    row = session.execute(
        "SELECT setting FROM pg_settings WHERE name = 'data_directory'"
    ).fetchone()  # nothing of it for a role that may not see it
    host = session.info.host
    folder = Path(str(row[0])) if row else None
    try:
        if folder is not None and (host in _LOCAL or host.startswith("/")):
            free = shutil.disk_usage(folder).free
            return f"{free / 1e9:,.1f} GB free on its disk"
    except OSError:
        pass  # another file system than the server's
    return "look for free disk at the server"


def _open_transactions(session: Session) -> Iterator[CheckedPoint]:
    rows = session.execute(_OPEN, (OPEN_S,)).fetchall()
    named = ", ".join(f"pid {pid} of {user} for {open_s} s" for pid, user, open_s in rows)
    yield CheckedPoint(
        f"open transactions: {named}" if rows else f"no transaction is open for {OPEN_S} s",
        "attaching waits for those that write, and they hold the log back: end them"
        if rows
        else "",
        is_in_the_way=False,
    )
    (count,) = session.execute("SELECT count(*) FROM pg_prepared_xacts").fetchone() or (0,)
    yield CheckedPoint(
        f"{as_count(count, 'prepared transaction')}",
        "they hold the log back: COMMIT PREPARED or ROLLBACK PREPARED" if count else "",
        is_in_the_way=False,
    )


def _clock(session: Session) -> CheckedPoint:
    """The changes of a database are numbered by its server's clock."""
    before_s = time.time()
    (there_s,) = session.execute(
        "SELECT extract(epoch FROM clock_timestamp())::float8"
    ).fetchone() or (before_s,)
    apart_s = max(before_s - there_s, there_s - time.time(), 0.0)
    is_near = apart_s <= CLOCK_S
    return CheckedPoint(
        "the server's clock" if is_near else f"the server's clock is {apart_s:.0f} s off this one",
        "" if is_near else "synchronize both: changes of a clock that is ahead are refused",
        is_in_the_way=False,
    )
