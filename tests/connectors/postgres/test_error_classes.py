"""An SQLSTATE refuses a row only if the row itself brought it about."""

import psycopg
import pytest

from connectors.agent.contract import StoreBusyError, StoreError, StoreLostError
from connectors.postgres.errors import refusal_code, store_error


def error_of(state: str) -> psycopg.Error:
    """The error of this SQLSTATE as psycopg raises it."""
    return psycopg.errors.lookup(state)("what the server says\nin two lines")


@pytest.mark.parametrize(
    ("state", "code"),
    [
        *(("23505", "unique"), ("23503", "foreign_key"), ("23514", "check"), ("23502", "check")),
        *(("22001", "size"), ("54000", "size"), ("22003", "type"), ("22P02", "type")),
        *(("42804", "type"), ("23P01", "other"), ("P0001", "other")),
    ],
)
def test_an_error_of_the_row_refuses_it(state: str, code: str) -> None:
    """The others of its batch are applied."""
    assert refusal_code(error_of(state)) == code


@pytest.mark.parametrize("state", ["40001", "40P01", "55P03", "55006"])
def test_a_lock_is_waited_for(state: str) -> None:
    """The same call succeeds later; a refused row would be missing until somebody acts."""
    assert refusal_code(error_of(state)) is None
    assert type(store_error(error_of(state))) is StoreBusyError


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        *((state, StoreError) for state in ("53100", "53200", "53300", "57014", "42501", "42P01")),
        *((state, StoreLostError) for state in ("57P01", "57P03", "08006")),
    ],
)
def test_a_failure_refuses_nothing(state: str, kind: type[StoreError]) -> None:
    """A full disk or a missing right says nothing about the row; nor does a server that ends."""
    assert refusal_code(error_of(state)) is None
    assert type(store_error(error_of(state))) is kind


def test_a_lost_connection_is_a_failure() -> None:
    """It has no SQLSTATE at all."""
    error = psycopg.OperationalError("the connection is lost")

    assert refusal_code(error) is None
    assert str(store_error(error)) == "the connection is lost"
