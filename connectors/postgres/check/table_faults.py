"""Why a table cannot be replicated as configured: everything at once, each with what to do."""
# ruff: noqa: S608 made of constants

from collections.abc import Iterable, Iterator

from connectors.agent.lacking import present_part
from connectors.postgres.schema.catalog import ServerTable, primary_key, read_table
from connectors.postgres.sql import Session
from connectors.postgres.values.types import key_refusal_of, kinds_of, refusal_of
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table

ACTING_TRIGGERS = """ARRAY(SELECT t.tgname::text FROM pg_trigger t
    WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled IN ('A', 'R') ORDER BY 1)"""
"""The triggers of a pg_class c that fire on what the agent applies."""

_RELATION = f"""SELECT c.relkind::text, c.relpersistence::text,
  EXISTS (SELECT 1 FROM pg_inherits WHERE c.oid IN (inhrelid, inhparent)),
  ARRAY(SELECT r.rulename::text FROM pg_rewrite r WHERE r.ev_class = c.oid ORDER BY 1),
  {ACTING_TRIGGERS}
FROM pg_class c WHERE c.oid = %s"""

_KINDS = {
    "p": "is partitioned: replicate tables that are not, for a TRUNCATE of one partition is not"
    " in the log",
    "v": "is a view: configure the table below it",
    "m": "is a materialized view: configure the tables below it",
    "f": "is a foreign table: its rows are in another server",
}


def check_tables(session: Session, tables: Iterable[Table]) -> None:
    """ConfigError with everything that prevents the replication of these tables."""
    faults = [fault for table in tables for fault in table_faults(session, table)]
    if len(faults) == 1:
        raise ConfigError(faults[0])
    if faults:
        listed = "".join(f"\n  - {one}" for one in faults)
        raise ConfigError(f"the database cannot be replicated for {len(faults)} reasons:{listed}")


def table_faults(session: Session, table: Table) -> Iterator[str]:
    """Why the table cannot be replicated; empty: it can, but for columns that it lacks so far."""
    try:
        server = read_table(session, table.name)
    except ConfigError as error:
        yield str(error)
        return
    about = f"table {table.name}"
    yield from (f"{about} {fault}" for fault in _relation_faults(session, server))
    yield from (f"{about} {fault}" for fault in _key_faults(session, table, server))
    there = present_part(table, server.columns)
    yield from (f"{about}, {fault}" for fault in _column_faults(there, server))
    if server.is_checked_later and server.is_acting:
        yield (
            f"{about} has a deferrable unique or exclusion constraint, and triggers or foreign"
            " keys, which would act on each row of the hub while the constraint is checked:"
            " declare the constraint NOT DEFERRABLE"
        )


def acting_fault(table: str, trigger: str) -> str:
    """What a trigger does that fires on what the agent applies, and what to do."""
    return (
        f"has the trigger {trigger}, enabled ALWAYS or REPLICA: it would act on each row of the hub"
        f" again, and what it writes would reach nobody; ALTER TABLE {table} ENABLE TRIGGER"
        f" {trigger}, or drop it"
    )


def _relation_faults(session: Session, server: ServerTable) -> Iterator[str]:
    row = session.execute(_RELATION, (server.oid,)).fetchone()
    if row is None:
        return
    kind, persistence, inherits, rules, triggers = row
    if kind in _KINDS:
        yield _KINDS[kind]
    if persistence != "p":
        yield "is not in the log (UNLOGGED or TEMPORARY): ALTER TABLE … SET LOGGED"
    if inherits and kind != "p":
        yield "inherits, or is inherited from: rows of a child would count as rows of both"
    if rules:
        yield f"has the rule {rules[0]}, which rewrites what the hub sends: drop it"
    if triggers:
        yield acting_fault(server.name, triggers[0])


def _key_faults(session: Session, table: Table, server: ServerTable) -> Iterator[str]:
    primary = primary_key(session, server.oid)
    if not primary:
        yield "has no primary key, by which rows are found at other replicas: declare one"
        return
    if set(primary) != set(table.key):
        yield (
            f"has the primary key ({', '.join(primary)}), and is configured with the key"
            f" ({', '.join(table.key)}): configure the primary key"
        )
    if any(one.is_primary and one.is_deferrable for one in server.uniques):
        yield (
            "has a deferrable primary key, so no row can be found by it when it is written: declare"
            " it NOT DEFERRABLE"
        )


def _column_faults(table: Table, server: ServerTable) -> Iterator[str]:
    for name, kind in table.columns.items():
        column = server.columns.get(name)
        if column is None:
            yield f"column {name} is not there: create it, or correct the configuration"
            continue
        if column.is_generated:
            yield f"column {name} is generated: leave it out of the configuration"
        kinds, refusal = kinds_of(column.type), refusal_of(column.type)
        if refusal is not None:
            yield f"column {name}: {refusal}"
        elif kind not in kinds:
            yield (
                f"column {name} is declared {column.cast}, which {kind} does not carry: configure"
                f" it as {' or '.join(kinds)}"
            )
        key_refusal = key_refusal_of(column.type) if name in table.key else None
        if key_refusal is not None:
            yield f"column {name} of the key: {key_refusal}"
    for column in server.columns.values():
        if column.is_required and column.name not in table.columns:
            yield (
                f"column {column.name} is NOT NULL without a default, but not replicated: no row of"
                " another replica could be stored; give it a default or add it to the columns"
            )
