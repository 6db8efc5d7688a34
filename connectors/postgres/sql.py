"""Pieces of SQL text for psycopg: names, and rows as the output functions of their types."""

from collections.abc import Mapping, Sequence

from psycopg import Connection
from psycopg.rows import TupleRow

Session = Connection[TupleRow]
"""A connection of the agent."""


def name(text: str) -> str:
    """An identifier in quotes, in a query with parameters."""
    return '"' + text.replace('"', '""').replace("%", "%%") + '"'


def literal(text: str) -> str:
    """A text in quotes, in a statement without parameters."""
    return "'" + text.replace("'", "''") + "'"


def statement(query: str) -> str:
    """A query in which every % was doubled for parameters, as a statement without any."""
    return query.replace("%%", "%")


def texts(
    connection: Session, query: str, values: Mapping[str, object] | Sequence[object] = ()
) -> list[tuple[str | None, ...]]:
    """The rows of a query, each value as its type writes it; a cast to text may write another."""
    cursor = connection.execute(query.encode(), values)
    result = cursor.pgresult
    if result is None:
        return []
    return [
        tuple(
            None if (found := result.get_value(row, column)) is None else found.decode()
            for column in range(result.nfields)
        )
        for row in range(result.ntuples)
    ]
