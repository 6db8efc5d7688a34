"""What the server still has of the log: whether all behind the checkpoint can be read (gap_of).

A slot that was lost, or that begins later than the checkpoint, leaves a gap: what was written in it
is in the tables and in no log. Nothing may go on as if it were not there.
"""

from dataclasses import dataclass

from connectors.postgres.install.system import Capture
from connectors.postgres.log.lsn import lsn_text, parse_lsn
from connectors.postgres.names import PUBLICATION
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError

WRITING = """SELECT string_agg(one, ', ' ORDER BY one) FROM (
  SELECT format('pid %s of %s since %s', pid, usename, xact_start::timestamp(0))
    FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid()
  UNION ALL SELECT format('prepared transaction %s', gid) FROM pg_prepared_xacts) named (one)"""
"""Those that a slot waits for, in whatever database; each is waited for as a lock is."""

LOST = "lost"
"""The `wal_status` of a slot whose log the server has removed."""


@dataclass(frozen=True, slots=True)
class SlotState:
    """A slot as `pg_replication_slots` has it; `confirmed`: up to where the server may forget."""

    plugin: str
    database: str
    confirmed: int
    wal_status: str | None = None


@dataclass(frozen=True, slots=True)
class LogState:
    """The server's log; `flushed`: its durable end. `publication`: its oid; None: it is not there.

    `has_origin`: the replication origin is there by which the log tells what the agent applied.
    """

    system_id: str
    timeline: int
    flushed: int
    publication: int | None
    slot: SlotState | None
    has_origin: bool = True


def refuse_standby(session: Session) -> None:
    """StateError: the server is a standby."""
    (is_standby,) = session.execute("SELECT pg_is_in_recovery()").fetchone() or (False,)
    if is_standby:
        raise StateError("the server is a standby, which takes no writes: connect to its primary")


def read_log_state(session: Session, slot: str) -> LogState:
    """The state of a primary's log, and the slot and origin of this name."""
    system_id, flushed, wal_file, publication, has_origin = session.execute(
        "SELECT (SELECT system_identifier::text FROM pg_control_system()),"
        " pg_current_wal_flush_lsn()::text, pg_walfile_name(pg_current_wal_flush_lsn()),"
        " (SELECT oid::bigint FROM pg_publication WHERE pubname = %s),"
        " EXISTS (SELECT 1 FROM pg_replication_origin WHERE roname = %s)",
        (PUBLICATION, slot),
    ).fetchone() or ("", "0/0", "0" * 24, None, False)
    row = session.execute(
        "SELECT plugin, database, coalesce(confirmed_flush_lsn, '0/0')::text, wal_status"
        " FROM pg_replication_slots WHERE slot_name = %s",
        (slot,),
    ).fetchone()
    found = None if row is None else SlotState(row[0], row[1], parse_lsn(row[2]), row[3])
    timeline = int(wal_file[:8], 16)
    return LogState(system_id, timeline, parse_lsn(flushed), publication, found, has_origin)


def gap_of(state: LogState, capture: Capture, name: str, database: str) -> str | None:
    """Why the log behind the checkpoint cannot be read whole; None: it can.

    `name`: of this replica's slot in this database. StateError: somebody must act first.
    """
    if state.publication is None:
        raise StateError(
            f"publication {PUBLICATION} is not there, and without it no log can be read: CREATE"
            f" PUBLICATION {PUBLICATION} FOR TABLE all that are replicated; then start the agent"
            " again, which tells their rows"
        )
    slot, lsn = state.slot, parse_lsn(capture.lsn)
    if slot is not None and (slot.plugin, slot.database) != ("pgoutput", database):
        raise StateError(
            f"replication slot {name} is one of {slot.plugin} for database {slot.database}, so the"
            " agent cannot use it: drop it, if nobody else does"
        )
    if state.system_id != capture.system_id:
        return "this is another server than the one whose log was read: its rows were restored here"
    if capture.slot != name:
        return f"this database is a copy of another one, whose slot was {capture.slot}"
    if state.timeline != capture.timeline:
        return (
            f"the server was promoted, or restored, since: its timeline is {state.timeline} and was"
            f" {capture.timeline}"
        )
    if slot is None:
        return f"replication slot {name} is not there any more"
    if not state.has_origin:
        return f"replication origin {name}, by which the log tells what was applied, is gone"
    if slot.wal_status == LOST:
        return (
            f"the server has removed log that replication slot {name} still needed"
            " (max_slot_wal_keep_size)"
        )
    if slot.confirmed > lsn:
        return (
            f"replication slot {name} was made again: it begins at {lsn_text(slot.confirmed)}, and"
            f" the log was read up to {capture.lsn} only"
        )
    if lsn > state.flushed:
        return (
            f"the log ends at {lsn_text(state.flushed)}, before {capture.lsn}, up to where it was"
            " read: the server was restored"
        )
    if capture.publication not in (0, state.publication):
        return f"publication {PUBLICATION} was made again"
    return None
