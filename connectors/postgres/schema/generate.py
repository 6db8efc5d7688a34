"""The [[tables]] of a configuration for a PostgreSQL database that has tables already."""

import re
from collections.abc import Iterator

from connectors.postgres.check.table_faults import table_faults
from connectors.postgres.schema.catalog import ServerTable, primary_key, read_table
from connectors.postgres.sql import Session
from connectors.postgres.values.types import kinds_of, refusal_of
from streaming.core.model.table import Table
from streaming.core.model.values import json_text

_TABLES = """SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY(current_schemas(false))
  AND n.nspname <> 'slackwater'
GROUP BY c.relname ORDER BY min(c.oid::bigint)"""


def generated_tables(session: Session) -> str:
    """The sections for every table on the search path."""
    return "\n".join(_section(session, name) for name in user_tables(session))


def user_tables(session: Session) -> list[str]:
    """The names of the tables on the search path."""
    return [row[0] for row in session.execute(_TABLES).fetchall()]


def _section(session: Session, name: str) -> str:
    server = read_table(session, name)
    key = primary_key(session, server.oid)
    kinds = {
        one.name: kinds_of(one.type)[0]
        for one in server.columns.values()
        if not one.is_generated and kinds_of(one.type)
    }
    faults = [*table_faults(session, Table(name, key, kinds))]
    if faults:
        listed = "; ".join(one.removeprefix(f"table {name}").lstrip(" ,") for one in faults)
        return f"# table {_comment(name)} is left out: {_comment(listed)}\n"
    lines = ["[[tables]]", f"name = {json_text(name)}", f"key = {json_text([*key])}"]
    return "\n".join([*lines, "", "[tables.columns]", *_lines(server)]) + "\n"


def _lines(server: ServerTable) -> Iterator[str]:
    for column in server.columns.values():
        refusal = refusal_of(column.type)
        if column.is_generated:
            yield f"# {_comment(column.name)} is left out, generated: each database computes it"
        elif refusal is not None:
            yield f"# {_comment(column.name)} is left out: {_comment(refusal)}"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", column.name)
            name = column.name if bare else json_text(column.name)
            yield f'{name} = "{kinds_of(column.type)[0]}"'


def _comment(text: str) -> str:
    """A text on one line of a comment."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
