"""Sequences of replicated tables, which rows of the hub do not move on.

Unless each replica gives ids of its own, two give one id to two rows, and one of the rows loses.
"""

from collections.abc import Iterator, Sequence

from connectors.agent.attaching import ReplicaKey
from connectors.postgres.catalog import ServerTable
from connectors.postgres.sql import Session

_OWNED = """SELECT s.oid::regclass::text, a.attname, q.increment_by, q.start_value, q.last_value
FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
  JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
  JOIN pg_namespace n ON n.oid = s.relnamespace
  JOIN pg_sequences q ON q.schemaname = n.nspname AND q.sequencename = s.relname
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
  AND d.deptype IN ('a', 'i') AND d.refobjid = %s ORDER BY 1"""


def sequence_notes(
    session: Session, servers: Sequence[ServerTable], replica: ReplicaKey
) -> Iterator[str]:
    """A statement for each sequence that would give ids of other replicas, with the reason."""
    step, place = replica.replicas, replica.place
    if step < 2:
        return
    for server in servers:
        for sequence, column, by, start, last in session.execute(_OWNED, (server.oid,)).fetchall():
            following = start if last is None else last + by
            if by != step or following % step != place % step:
                begin = following + (place - following) % step
                yield (
                    f"column {column} of table {server.name} gets its ids from sequence {sequence},"
                    " which rows of other replicas do not move on; so that no two give one id, the"
                    " owner runs (as at each other replica):\n"
                    f"ALTER SEQUENCE {sequence} INCREMENT BY {step} START WITH {place}"
                    f" RESTART WITH {begin};"
                )
