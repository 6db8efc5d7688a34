"""The agent's own rows in the database: what is written is what is read."""

from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from connectors.postgres.install.system import (
    Capture,
    StoredPosition,
    create,
    read_capture,
    read_position,
    write_capture,
    write_position,
)
from connectors.postgres.sql import Session
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import StateError
from streaming.core.model.ruv import Ruv

RUV = Ruv("5f00").with_csn("6b49d200000500020000")
STORED = StoredPosition(1, Position("s1", 4, 3, 7, RUV, 2, reached=5, agreement="a"), 9, 8)
CAPTURE = Capture("7300", 1, "slackwater_a_1", "16/B374D848", 1_800_000_000, 5, 12, 8, own="x")


@pytest.fixture
def session(dsn: str) -> Iterator[Session]:
    """A connection to a database with the schema."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        create(connection)
        yield connection


def test_the_position_is_read_as_it_was_written(session: Session) -> None:
    """The hello says it, and a batch is compared with it."""
    write_position(session, STORED)
    assert read_position(session) == STORED

    emptied = replace(STORED, position=Position(), reinit=True)
    write_position(session, emptied)
    assert read_position(session, locks=True) == emptied


def test_the_capture_row_is_read_as_it_was_written(session: Session) -> None:
    """The fold over the log starts from it."""
    assert read_capture(session) is None

    write_capture(session, CAPTURE)
    assert read_capture(session) == CAPTURE
    write_capture(session, replace(CAPTURE, lsn="17/0", csn="y"))
    assert read_capture(session) == replace(CAPTURE, lsn="17/0", csn="y")


def test_an_installation_that_is_repeated_keeps_what_is_there(session: Session) -> None:
    """An attach that was interrupted runs again."""
    write_position(session, STORED)

    create(session)

    assert read_position(session) == STORED


def test_a_position_that_is_gone_is_an_error(session: Session) -> None:
    """A new one in its place would hide that the rows are not those of the hub."""
    with pytest.raises(StateError, match="slackwater detach"):
        read_position(session)
