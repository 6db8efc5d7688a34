"""A condition on rows in SQL, as people write it behind WHERE; DuckDB evaluates it.

It says the same of a row whenever it is asked: it reads the row's columns, and nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from checkpoints.query import quoted
from checkpoints.reading.sql_values import value_in_duckdb
from streaming.core.model.errors import QuestionError
from streaming.core.model.foreign_json import loads
from streaming.core.model.table import Table

_NUMBER = "/number"
"""The column that numbers the rows, beside those of the table."""
_MEMORY = "500MB"
_SETTINGS: Mapping[str, Any] = {
    "python_enable_replacements": False,
    "autoinstall_known_extensions": False,
    "enable_external_access": False,
    "memory_limit": _MEMORY,
    "threads": 1,
}
_UNSUITED = {
    "SUBQUERY": "a query in it",
    "WINDOW": "a window function",
    "PARAMETER": "a parameter",
    "STAR": "*",
}


def check_predicate(table: Table, text: str) -> None:
    """QuestionError if the text is no condition on the rows of a table."""
    matching(table, (), text)


def matching(table: Table, rows: Sequence[tuple[str, str]], text: str) -> set[str]:
    """The keys of the rows, (key, image), for which the condition holds; errors as above."""
    with duckdb.connect(":memory:", config=dict(_SETTINGS)) as session:
        session.execute("SET TimeZone = 'UTC'")
        try:
            _check(session, table, text)
            return _matching(session, table, rows, text)
        except duckdb.Error as error:
            raise _wrong(
                text, " ".join(str(error).split("\n\nLINE", maxsplit=1)[0].split())
            ) from None


def _matching(
    session: duckdb.DuckDBPyConnection, table: Table, rows: Sequence[tuple[str, str]], text: str
) -> set[str]:
    keys, images = [key for key, _ in rows], [image for _, image in rows]
    columns = [
        pa.array(keys, pa.string()),
        pa.array(images, pa.string()),
        pa.array(range(len(rows))),
    ]
    session.register("_images", pa.table(columns, names=["key", "image", _NUMBER]))
    typed = ", ".join(
        f"{value_in_duckdb(table.name, name, kind)} AS {quoted(name)}"
        for name, kind in table.columns.items()
    )
    number, name = quoted(_NUMBER), quoted(table.name)
    here = f"(SELECT {typed}, {number} FROM _images) AS {name}"  # noqa: S608
    found = session.sql(f"SELECT {number} FROM {here} WHERE ({text}\n)").fetchall()  # noqa: S608
    return {keys[n] for (n,) in found}


def _check(session: duckdb.DuckDBPyConnection, table: Table, text: str) -> None:
    """QuestionError for what could say something else of a row tomorrow, and for unknown names."""
    asked = f"SELECT 1 FROM t WHERE ({text}\n)"  # noqa: S608  # it is only parsed
    ((document,),) = session.execute("SELECT json_serialize_sql(?)", [asked]).fetchall()
    parsed = loads(document)
    if parsed["error"]:
        raise _wrong(text, parsed["error_message"])
    node = parsed["statements"][0]["node"]
    if len(parsed["statements"]) != 1 or node["type"] != "SELECT_NODE":
        raise _wrong(text, "it is more than a condition")
    columns = {name.lower() for name in table.columns}
    steady = _steady(session)
    for one in _nodes(node["where_clause"]):
        kind, name = one["class"], one.get("function_name", "")
        if kind in _UNSUITED:
            raise _wrong(text, f"{_UNSUITED[kind]} is not possible here")
        if kind == "FUNCTION" and name.lower() not in steady:
            raise _wrong(
                text, f"{name} may say something else of a row another time, or is unknown"
            )
        if kind == "COLUMN_REF" and one["column_names"][-1].lower() not in columns:
            listed = ", ".join(table.columns)
            raise _wrong(text, f"{table.name} has no column {one['column_names'][-1]}: {listed}")


def _steady(session: duckdb.DuckDBPyConnection) -> set[str]:
    """The functions that say the same of the same values at any time, in the session's zone."""
    asked = (
        "SELECT function_name FROM duckdb_functions() WHERE function_type = 'scalar'"
        " AND function_name <> 'age' GROUP BY ALL HAVING bool_and(stability = 'CONSISTENT'"
        " OR (stability = 'CONSISTENT_WITHIN_QUERY' AND len(parameters) > 0))"
    )  # age of one value counts from today
    return {name.lower() for (name,) in session.sql(asked).fetchall()}


def _nodes(value: object) -> Iterator[Mapping[str, Any]]:
    """Every expression in a parsed one."""
    if isinstance(value, Mapping):
        if "class" in value:
            yield value
        for one in value.values():
            yield from _nodes(one)
    elif isinstance(value, list):
        for one in value:
            yield from _nodes(one)


def _wrong(text: str, why: str) -> QuestionError:
    return QuestionError(f"--where {text!r} is no condition on a row: {why}")
