"""Sequences of replicated tables, which rows of the hub do not move on.

Unless each replica gives ids of its own, two give one id to two rows, and one of the rows loses.
"""
# ruff: noqa: S608 every name is quoted

from collections.abc import Iterator, Sequence

from connectors.agent.attaching import ReplicaPlace
from connectors.postgres.schema.catalog import ServerTable
from connectors.postgres.sql import Session, literal, statement
from connectors.postgres.sql import name as quoted

_OWNED = """SELECT s.oid::regclass::text, a.attname, q.increment_by
FROM pg_depend d JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
  JOIN pg_attribute a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid
  JOIN pg_namespace n ON n.oid = s.relnamespace
  JOIN pg_sequences q ON q.schemaname = n.nspname AND q.sequencename = s.relname
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass
  AND d.deptype IN ('a', 'i') AND d.refobjid = %s ORDER BY 1"""


def sequence_notes(
    session: Session, servers: Sequence[ServerTable], replica: ReplicaPlace
) -> Iterator[str]:
    """Statements for each sequence that would give ids of other replicas, with the reason.

    The second one moves it behind what is there, which the agent's role may not see.
    """
    step, place = replica.replicas, replica.place
    for server in servers:
        for sequence, column, by in session.execute(_OWNED, (server.oid,)).fetchall():
            if by == step:
                continue
            ids, table = statement(quoted(column)), statement(server.sql)
            yield (
                f"column {column} of table {server.name} gets its ids from sequence {sequence},"
                " which rows of other replicas do not move on. So that no two give one id: if"
                " each replica has such a sequence, the owner runs the two statements at each; if"
                " a SQLite database takes part, run what `slackwater schema` prints instead:\n"
                f"ALTER SEQUENCE {sequence} INCREMENT BY {step} START WITH {place};\n"
                f"SELECT setval({literal(sequence)},"
                f" {place} + {step} * (known / {step} + 1), false)"
                f" FROM (SELECT greatest(max(t.{ids}), max(s.last_value)) AS known"
                f" FROM {sequence} s LEFT JOIN {table} t ON true) given;"
            )
