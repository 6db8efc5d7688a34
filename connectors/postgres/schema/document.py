"""The schema of a PostgreSQL database as a document (streaming/core/schema/document.py)."""

import re
from collections.abc import Iterable, Iterator
from hashlib import sha256

from connectors.postgres.schema.catalog import ServerTable, read_table
from connectors.postgres.sql import Session
from connectors.postgres.values.types import kinds_of
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType, Table
from streaming.core.schema.difference import comparable
from streaming.core.schema.document import (
    DatabaseSchema,
    IdSource,
    SchemaColumn,
    SchemaReference,
    SchemaTable,
    SchemaTrigger,
    SchemaUnique,
)

_COLUMNS = """SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
  pg_get_expr(d.adbin, d.adrelid), a.attgenerated <> '', a.attidentity <> '',
  CASE WHEN c.collisdeterministic THEN NULL ELSE c.collname END,
  (SELECT q.seqincrement <> 1 OR q.seqmin > 1 FROM pg_sequence q
    WHERE q.seqrelid = pg_get_serial_sequence(a.attrelid::regclass::text, a.attname)::regclass)
FROM pg_attribute a
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
  LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

_CHECKS = """SELECT pg_get_expr(conbin, conrelid, true) FROM pg_constraint
WHERE conrelid = %s AND contype = 'c' ORDER BY conname"""

_REFERENCES = """SELECT
  ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY n (n, place)
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.n ORDER BY place),
  r.relname,
  ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY n (n, place)
    JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = n.n ORDER BY place),
  k.confdeltype::text, k.confupdtype::text
FROM pg_constraint k JOIN pg_class r ON r.oid = k.confrelid
WHERE k.conrelid = %s AND k.contype = 'f' ORDER BY k.conname"""

_TRIGGERS = """SELECT tgname, tgtype::int, pg_get_triggerdef(oid, true), tgenabled::text
FROM pg_trigger WHERE tgrelid = %s AND NOT tgisinternal AND tgenabled <> 'D' ORDER BY tgname"""

_ACTIONS = {"a": "NO ACTION", "r": "RESTRICT", "c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}

_LITERAL = re.compile(r"('(?:[^']|'')*'|-?\d+(?:\.\d+)?|NULL)::[\w .\"\[\](),]+")
_LIMITED = re.compile(r"(character varying|character|numeric|bit|bit varying)\([\d,-]+\)")
_BEFORE, _INSERT, _DELETE, _UPDATE, _TRUNCATE, _INSTEAD = 2, 4, 8, 16, 32, 64
"""The bits of pg_trigger.tgtype (PostgreSQL: catalog/pg_trigger.h)."""


def database_schema(session: Session, replica: str, tables: Iterable[Table]) -> DatabaseSchema:
    """What the database declares of these tables; those that it lacks are not in it."""
    servers = list[ServerTable]()
    for table in tables:
        try:
            servers.append(read_table(session, table.name))
        except ConfigError:
            continue
    storages = dict[str, tuple[ColumnType, ...]]()
    for server in servers:
        storages |= {one.cast: kinds_of(one.type) for one in server.columns.values()}
    (encoding,) = session.execute("SHOW server_encoding").fetchone() or ("",)
    version = session.info.parameter_status("server_version") or ""
    return DatabaseSchema(
        replica,
        f"PostgreSQL {version.partition(' ')[0]}",
        "UTF-8" if encoding == "UTF8" else encoding,
        tuple(schema_table(session, server) for server in servers),
        storages,
        declares_limits=True,
    )


def schema_table(session: Session, server: ServerTable) -> SchemaTable:
    """What the catalog says of a table."""
    references = session.execute(_REFERENCES, (server.oid,)).fetchall()
    return SchemaTable(
        server.name,
        tuple(_columns(session, server)),
        tuple(
            SchemaUnique(one.parts, ("",) * len(one.parts), one.condition)
            for one in sorted(server.uniques, key=lambda one: not one.is_primary)
        ),
        tuple(row[0] for row in session.execute(_CHECKS, (server.oid,))),
        tuple(
            SchemaReference(
                tuple(columns), table, tuple(there), _ACTIONS.get(delete, ""), _ACTIONS.get(up, "")
            )
            for columns, table, there, delete, up in references
        ),
        tuple(_triggers(session, server)),
    )


def _columns(session: Session, server: ServerTable) -> Iterator[SchemaColumn]:
    rows = session.execute(_COLUMNS, (server.oid,)).fetchall()
    for name, declared, not_null, expression, is_generated, is_identity, collation, apart in rows:
        is_serial = is_identity or (not is_generated and str(expression).startswith("nextval("))
        default = None if is_generated or is_serial else expression
        yield SchemaColumn(
            name,
            declared,
            server.columns[name].cast,
            not_null,
            None if default is None else _without_cast(default),
            expression if is_generated else None,
            collation,
            (IdSource.OWN_SEQUENCE if apart else IdSource.SEQUENCE) if is_serial else None,
            declared if _LIMITED.fullmatch(declared) else None,
        )


def _without_cast(expression: str) -> str:
    """A literal without the cast to its own type, which PostgreSQL writes behind it."""
    found = _LITERAL.fullmatch(expression)
    return found[1] if found else expression


def _triggers(session: Session, server: ServerTable) -> Iterator[SchemaTrigger]:
    for name, bits, text, enabled in session.execute(_TRIGGERS, (server.oid,)).fetchall():
        when = "BEFORE" if bits & _BEFORE else "INSTEAD OF" if bits & _INSTEAD else "AFTER"
        events = {_INSERT: "INSERT", _DELETE: "DELETE", _UPDATE: "UPDATE", _TRUNCATE: "TRUNCATE"}
        what = " OR ".join(event for bit, event in events.items() if bits & bit)
        digest = sha256(comparable(text).encode()).hexdigest()[:16]
        yield SchemaTrigger(name, f"{when} {what}", digest, enabled in ("A", "R"))
