"""Begins to read the log anew where a part of it was lost: a new slot, and the rows told again.

What was written in the gap is in the tables only, so all rows are told as those of a database that
had them before (docs/protocol.md 3.7). What was deleted in it nobody tells: it comes back.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

import psycopg

from connectors.agent.applying import behind_applied
from connectors.agent.contract import StoreBusyError
from connectors.postgres import snapshot
from connectors.postgres.install.system import Capture, StoredPosition, write_capture
from connectors.postgres.log.numbering import later
from connectors.postgres.log.slot import WRITING, LogState
from connectors.postgres.sql import Session
from streaming.core.model.csn import Generator

WAIT_S = 60
"""A slot waits for every transaction that has written; no longer than this."""

log = logging.getLogger(__name__)


def make_slot(session: Session, name: str) -> str:
    """Make a slot of this name, in place of one that is there; the place from which it has the log.

    The session is in autocommit mode. StoreBusyError names the transactions that it waits for.
    """
    session.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
        (name,),
    )
    session.execute(f"SET statement_timeout = '{WAIT_S}s'".encode())
    session.execute("SET lock_timeout = 0")  # as a lock it waits for the transactions
    try:
        (lsn,) = session.execute(
            "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')", (name,)
        ).fetchone() or ("0/0",)
    except psycopg.errors.QueryCanceled as error:
        (writing,) = session.execute(WRITING).fetchone() or (None,)
        raise StoreBusyError(
            f"replication slot {name} cannot be made while transactions that have written are open:"
            f" end {writing or 'them'}, and the agent goes on"
        ) from error
    finally:
        session.execute("RESET statement_timeout")
        session.execute("RESET lock_timeout")
    return str(lsn)


def begin_anew(
    session: Session,
    why: str,
    state: LogState,
    name: str,
    capture: Capture,
    stored: StoredPosition,
    tables: Iterable[str],
    clock_s: int,
    skew_s: int,
) -> Capture:
    """Make the slot anew, and have the rows of these tables told; what is stored of the log then.

    The session has the origin, so nothing is applied meanwhile. Killed before the end, the next
    start finds the gap again.
    """
    log.warning(
        "the log was not read to its end: %s. A new slot is made, and the rows of all tables are"
        " told again. Rows that were deleted meanwhile are not known, and come back from the hub:"
        " delete them again",
        why,
    )
    lsn = make_slot(session, name)
    logged = Generator(stored.rid, capture.time_s, capture.sequence)
    applied = behind_applied(stored.rid, "", stored.position.ruv, clock_s, skew_s)
    generator = later(logged, applied)
    begun = replace(
        capture,
        system_id=state.system_id,
        timeline=state.timeline,
        slot=name,
        lsn=lsn,
        time_s=generator.time_s,
        sequence=generator.sequence,
        epoch=stored.replica_epoch,
        published="0",
        numbering="",
        publication=state.publication or 0,
    )
    with session.transaction():
        snapshot.begin_again(session, tables)
        write_capture(session, begun)
    return begun
