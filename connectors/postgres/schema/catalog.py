"""What PostgreSQL's catalog says of a replicated table: columns with their types, unique indexes.

Arrays, domains, ranges and composites are followed down to the types that they are made of.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from connectors.postgres.sql import Session, name
from connectors.postgres.values.columns import ServerColumn
from connectors.postgres.values.types import ServerType, TypeForm
from streaming.core.model.errors import ConfigError

_NO_MODIFIER = -1

_TABLE = """SELECT c.oid, n.nspname, c.relname
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN unnest(current_schemas(false)) WITH ORDINALITY s (name, place) ON s.name = n.nspname
WHERE c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'slackwater'
ORDER BY s.place LIMIT 1"""
"""The agent's own schema is on the search path of a role of its name, and is passed over."""

_COLUMNS = """SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull, a.atthasdef, a.attidentity,
  a.attgenerated, coalesce(c.collisdeterministic, true)
FROM pg_attribute a LEFT JOIN pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

_TYPE = """SELECT t.typname, t.typtype, t.typcategory, t.typelem, t.typbasetype, t.typtypmod,
  t.typrelid, n.nspname, format_type(t.oid, -1),
  (SELECT r.rngsubtype FROM pg_range r WHERE r.rngtypid = t.oid),
  (SELECT r.rngtypid FROM pg_range r WHERE r.rngmultitypid = t.oid)
FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.oid = %s"""

_DEFAULT = """SELECT pg_get_expr(d.adbin, d.adrelid)
FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum
WHERE d.adrelid = %s AND a.attname = %s"""

_UNIQUES = """SELECT x.relname, i.indisprimary, NOT i.indimmediate,
  ARRAY(SELECT pg_get_indexdef(i.indexrelid, place, true)
    FROM generate_series(1, i.indnkeyatts) place ORDER BY place),
  pg_get_expr(i.indpred, i.indrelid)
FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid
WHERE i.indrelid = %s AND i.indisunique ORDER BY x.relname"""

_PRIMARY_KEY = """SELECT ARRAY(SELECT a.attname::text
  FROM unnest(i.indkey::int2[]) WITH ORDINALITY k (number, place)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number
  WHERE place <= i.indnkeyatts ORDER BY place)
FROM pg_index i WHERE i.indrelid = %s AND i.indisprimary"""

_CONSTRAINTS = """SELECT EXISTS (SELECT 1 FROM pg_trigger
    WHERE tgrelid = %(oid)s AND NOT tgisinternal)
  OR EXISTS (SELECT 1 FROM pg_constraint
    WHERE contype = 'f' AND %(oid)s IN (conrelid, confrelid)),
  EXISTS (SELECT 1 FROM pg_constraint
    WHERE contype IN ('u', 'x') AND conrelid = %(oid)s AND condeferrable)"""


@dataclass(frozen=True, slots=True)
class UniqueIndex:
    """A unique index; `parts`: its columns and expressions in SQL, by the names of columns.

    `condition`: in SQL, on the rows that it holds; None: it holds all.
    """

    name: str
    parts: tuple[str, ...]
    condition: str | None = None
    is_primary: bool = False
    is_deferrable: bool = False


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A table as the catalog has it; `relation`: its name there, `sql`: in SQL with its schema."""

    name: str
    oid: int
    relation: str
    sql: str
    columns: Mapping[str, ServerColumn]
    uniques: tuple[UniqueIndex, ...]
    is_acting: bool
    is_checked_later: bool


def read_table(connection: Session, table: str) -> ServerTable:
    """What the catalog says of a table on the search path; ConfigError: there is none."""
    row = connection.execute(_TABLE, (table,)).fetchone()
    if row is None:
        raise ConfigError(
            f"table {table} is not in this database, or not in a schema of the search path: create"
            " it, or correct the configuration"
        )
    oid, schema, relation = row
    acting_and_later = connection.execute(_CONSTRAINTS, {"oid": oid}).fetchone() or (False, False)
    return ServerTable(
        table,
        oid,
        relation,
        f"{name(schema)}.{name(relation)}",
        _columns(connection, oid),
        _uniques(connection, oid),
        *map(bool, acting_and_later),
    )


def primary_key(connection: Session, oid: int) -> tuple[str, ...]:
    """The columns of a table's primary key; empty: there is none."""
    row = connection.execute(_PRIMARY_KEY, (oid,)).fetchone()
    return () if row is None else tuple(row[0])


def default_of(connection: Session, table: ServerTable, column: str) -> str | None:
    """The expression in SQL of a column's default; None: it has none."""
    row = connection.execute(_DEFAULT, (table.oid, column)).fetchone()
    return None if row is None else str(row[0])


def _columns(connection: Session, oid: int) -> dict[str, ServerColumn]:
    found = dict[str, ServerColumn]()
    for row in connection.execute(_COLUMNS, (oid,)).fetchall():
        column, type_oid, modifier, not_null, has_default, identity, generated, is_alike = row
        type_, cast = _type(connection, type_oid, modifier, collates_alike=is_alike)
        found[column] = ServerColumn(
            column,
            type_,
            cast,
            is_required=not_null and not (has_default or identity),
            is_always_identity=identity == "a",
            is_generated=generated != "",
        )
    return found


def _uniques(connection: Session, oid: int) -> tuple[UniqueIndex, ...]:
    rows = connection.execute(_UNIQUES, (oid,)).fetchall()
    return tuple(
        UniqueIndex(index, tuple(parts), condition, is_primary, is_deferrable)
        for index, is_primary, is_deferrable, parts, condition in rows
    )


def _type(
    connection: Session, oid: int, modifier: int, *, collates_alike: bool = True
) -> tuple[ServerType, str]:
    """A type, and the SQL name of the one to cast to: of a domain the one below it."""
    row = connection.execute(_TYPE, (oid,)).fetchone()
    if row is None:
        raise ConfigError(f"the type of oid {oid} was dropped meanwhile: start the agent again")
    (type_, kind, category, element, base, base_modifier, relation, schema, cast) = row[:9]
    below = [(found, _NO_MODIFIER) for found in row[9:] if found is not None]
    form = TypeForm(kind)
    if form is TypeForm.DOMAIN:
        below = [(base, base_modifier)]
    elif form is TypeForm.COMPOSITE:
        below = [(row[1], row[2]) for row in connection.execute(_COLUMNS, (relation,)).fetchall()]
    elif category == "A" and element:
        form, below = TypeForm.ARRAY, [(element, _NO_MODIFIER)]
    parts = [_type(connection, *one) for one in below]
    made = ServerType(
        type_,
        form,
        tuple(part for part, _ in parts),
        is_built_in=schema == "pg_catalog",
        modifier=modifier,
        collates_alike=collates_alike,
    )
    return made, parts[0][1] if form is TypeForm.DOMAIN else cast
