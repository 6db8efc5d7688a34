"""The constraints of a table by which its database may refuse a row that another replica wrote.

Every replica checks its own rows only: two replicas may each accept a row, and neither database
the other's. Not among them: the key, by which rows are replicated, and NOT NULL.
"""

import sqlite3

from connectors.agent.found import ConstraintKind, TableConstraint
from connectors.sqlite import sql
from connectors.sqlite.schema.catalog import create_statement
from connectors.sqlite.schema.create_table import check_conditions
from connectors.sqlite.schema.references import references_of
from streaming.core.model.table import Table


def constraints_of(connection: sqlite3.Connection, table: Table) -> tuple[TableConstraint, ...]:
    """The secondary unique, check and foreign key constraints of a table, in this order."""
    checks = [
        TableConstraint(table.name, ConstraintKind.CHECK, (), f"CHECK {condition}")
        for condition in check_conditions(create_statement(connection, table.name))
    ]
    foreign = [
        TableConstraint(table.name, ConstraintKind.FOREIGN_KEY, one.columns, one.text)
        for one in references_of(connection, table.name)
    ]
    return (*_uniques(connection, table), *checks, *foreign)


def _uniques(connection: sqlite3.Connection, table: Table) -> list[TableConstraint]:
    found = list[TableConstraint]()
    listed = connection.execute(f"PRAGMA index_list({sql.name(table.name)})").fetchall()
    for _, index, unique, _, partial in sorted(listed):
        if not unique:
            continue
        rows = connection.execute(f"PRAGMA index_xinfo({sql.name(index)})").fetchall()
        columns = tuple(name or "an expression" for _, _, name, _, _, is_key in rows if is_key)
        if set(columns) != set(table.key) or partial:
            text = f"UNIQUE ({', '.join(columns)}){' WHERE ...' if partial else ''}"
            found.append(TableConstraint(table.name, ConstraintKind.UNIQUE, columns, text))
    return [*found, *_other_rowid(connection, table)]


def _other_rowid(connection: sqlite3.Connection, table: Table) -> list[TableConstraint]:
    """The primary key that is the rowid, and so has no index, if it is not the key."""
    rows = connection.execute(f"PRAGMA table_info({sql.name(table.name)})").fetchall()
    primary = [row[1] for row in rows if row[5]]
    listed = connection.execute(f"PRAGMA index_list({sql.name(table.name)})").fetchall()
    if not primary or set(primary) == set(table.key) or any(row[3] == "pk" for row in listed):
        return []
    text = f"PRIMARY KEY ({', '.join(primary)})"
    return [TableConstraint(table.name, ConstraintKind.UNIQUE, tuple(primary), text)]
