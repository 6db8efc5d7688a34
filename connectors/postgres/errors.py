"""What an SQLSTATE means: a row that the database refuses, a lock, or a failure.

Only what the row itself brings about is refused. What may succeed later, or elsewhere, never is: a
refused row would be missing until somebody acts (PostgreSQL: "PostgreSQL Error Codes").
"""

import psycopg

from connectors.agent.contract import StoreBusyError, StoreError, StoreLostError

_BUSY = {"40001", "40P01", "55P03", "55006"}
"""Serialization failure, deadlock, lock not available, object in use.

A local transaction is in the way, or a backend that still has the slot or the origin.
"""

_ALTERED = {"42703"}
"""Undefined column: the table was altered a moment ago, and is read anew."""

_CODES = {
    "23505": "unique",
    "23503": "foreign_key",
    "23514": "check",
    "23502": "check",
    "44000": "check",  # the check option of a view
    "22001": "size",
    "54000": "size",  # an index row, for example
    "42804": "type",
}
"""SQLSTATE -> the code of a refusal."""

_CLASSES = {"22": "type", "23": "other", "P0": "other"}
"""The class of an SQLSTATE -> the code of a refusal, of the states that are not in _CODES."""


def refusal_code(error: psycopg.Error) -> str | None:
    """The code of a refusal; None: the row is not what failed, and nothing is refused."""
    state = error.sqlstate or ""
    return _CODES.get(state) or _CLASSES.get(state[:2])


def store_error(error: psycopg.Error) -> StoreError:
    """What to raise for an error that refuses nothing, with the database's own text."""
    state = error.sqlstate or ""
    kind = StoreBusyError if state in _BUSY else StoreError
    if (
        state in _ALTERED
        or is_lost_state(state)
        or (not state and isinstance(error, psycopg.OperationalError))
    ):
        kind = StoreLostError
    return kind(f"{error_text(error)}{f' (SQLSTATE {state})' if state else ''}")


def is_lost_state(state: str) -> bool:
    """Return whether this SQLSTATE says that the connection, or the server, is gone."""
    return state[:2] == "08" or state in {"57P01", "57P02", "57P03", "57P05"}


def error_text(error: psycopg.Error) -> str:
    """What the server says, in one line with its detail."""
    said = error.diag.message_primary or str(error).strip() or type(error).__name__
    parts = (part for part in (said, error.diag.message_detail) if part)
    return ": ".join(" ".join(part.split()) for part in parts)
