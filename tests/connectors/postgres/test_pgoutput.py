"""The messages of the log: what a server sends is read, and any other bytes are a named error."""

import struct
from collections.abc import Sequence
from typing import TypeVar

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.postgres.log.lsn import lsn_text, parse_lsn
from connectors.postgres.log.pgoutput import (
    UNCHANGED,
    Begin,
    CommitMessage,
    Delete,
    Insert,
    LogMessage,
    Message,
    MessageError,
    OriginMessage,
    Relation,
    Truncate,
    TypeMessage,
    UpdateMessage,
    parse,
)
from streaming.core.model.errors import StateError
from tests.connectors.postgres.log_reading import read_log
from tests.harness.examples import examples

T = TypeVar("T", bound=LogMessage)

STATEMENTS = (
    "CREATE TYPE mood AS ENUM ('good', 'bad')",
    "CREATE TABLE item (id int PRIMARY KEY, name text, how mood, large text)",
    "ALTER TABLE item ALTER large SET STORAGE EXTERNAL",
    "ALTER TABLE item REPLICA IDENTITY FULL",
    "CREATE TABLE keyed (id int PRIMARY KEY, name text)",
    "CREATE TABLE part (id int PRIMARY KEY, item int REFERENCES item)",
    "ALTER TABLE part REPLICA IDENTITY FULL",
    "CREATE PUBLICATION p FOR TABLE item, keyed, part",
    "SELECT pg_create_logical_replication_slot(current_database() || '_parse', 'pgoutput')",
)
WRITES = (
    "INSERT INTO item VALUES (1, 'é', 'good', repeat('x', 9000)), (2, '', NULL, NULL)",
    "UPDATE item SET name = NULL WHERE id = 1",
    "INSERT INTO keyed VALUES (1, 'a')",
    "UPDATE keyed SET name = 'b'",
    "UPDATE keyed SET id = 2",
    "DELETE FROM keyed",
    "SELECT pg_logical_emit_message(true, 'slackwater', 'hello')",
    "DELETE FROM item WHERE id = 2",
    "TRUNCATE item RESTART IDENTITY CASCADE",
)


@pytest.fixture
def sent(dsn: str) -> list[bytes]:
    """What a server sends of these writes, each a transaction, and of one with an origin."""
    with psycopg.connect(dsn, autocommit=True) as client:
        for statement in (*STATEMENTS, *WRITES):
            client.execute(statement.encode())
        (name,) = client.execute("SELECT current_database()").fetchone() or ("",)
        client.execute("SELECT pg_replication_origin_create(%s)", (name,))
        client.execute("SELECT pg_replication_origin_session_setup(%s)", (name,))
        client.execute("INSERT INTO keyed VALUES (7, 'applied')")
        found = read_log(client, f"{name}_parse")
        client.execute("SELECT pg_drop_replication_slot(current_database() || '_parse')")
    return found


def of_kind(messages: Sequence[LogMessage], kind: type[T]) -> list[T]:
    """Those of one kind."""
    return [one for one in messages if isinstance(one, kind)]


@pytest.mark.postgres15
def test_what_a_server_sends_is_read(sent: list[bytes]) -> None:
    """Every kind of message, nulls and empty texts told apart."""
    messages = [parse(data) for data in sent]

    kinds = {
        Begin,
        CommitMessage,
        OriginMessage,
        Relation,
        TypeMessage,
        Insert,
        UpdateMessage,
        Delete,
        Truncate,
    }
    assert {type(one) for one in messages} == {*kinds, Message}
    relations = {one.name: one for one in of_kind(messages, Relation)}
    item, keyed = relations["item"], relations["keyed"]
    assert [one.name for one in item.columns] == ["id", "name", "how", "large"]
    assert (item.schema, item.identity, keyed.identity) == ("public", "f", "d")
    assert [one.is_in_identity for one in keyed.columns] == [True, False]
    inserts = of_kind(messages, Insert)
    assert [one.new for one in inserts[:2]] == [
        ("1", "é", "good", "x" * 9000),
        ("2", "", None, None),
    ]
    full, of_value, of_key = of_kind(messages, UpdateMessage)
    assert full.is_whole
    assert full.old == inserts[0].new
    assert full.new == ("1", None, "good", UNCHANGED)
    assert (of_value.old, of_value.new) == (None, ("1", "b"))
    assert (of_key.old, of_key.is_whole, of_key.new) == (("1", None), False, ("2", "b"))
    assert [(one.old, one.is_whole) for one in of_kind(messages, Delete)] == [
        (("2", None), False),
        (inserts[1].new, True),
    ]
    (truncate,) = of_kind(messages, Truncate)
    assert {*truncate.oids} == {item.oid, relations["part"].oid}
    assert (truncate.cascades, truncate.restarts_identity) == (True, True)
    (message,) = of_kind(messages, Message)
    assert (message.is_transactional, message.prefix, message.content) == (
        True,
        "slackwater",
        b"hello",
    )
    assert len(of_kind(messages, OriginMessage)) == 1
    begins, commits = of_kind(messages, Begin), of_kind(messages, CommitMessage)
    assert len(begins) == len(commits) == len(WRITES) + 1
    for begin, commit in zip(begins, commits, strict=True):
        assert begin.final_lsn == commit.commit_lsn < commit.end_lsn


def test_a_message_that_is_cut_or_longer_is_an_error(sent: list[bytes]) -> None:
    """A cut one may look like a shorter row, which would be told to others."""
    for data in sent:
        for size in {0, 1, len(data) // 2, len(data) - 1}:
            with pytest.raises(MessageError):
                parse(data[:size])
        with pytest.raises(MessageError, match="of which"):
            parse(data + b"\0")


ROW = b"\0\2t\0\0\0\1an"
"""A tuple of the text "a" and a null."""
SAMPLES = (
    b"B" + struct.pack("!QqI", 1, 2, 3),
    b"C" + struct.pack("!BQQq", 0, 1, 2, 3),
    b"O" + struct.pack("!Q", 1) + b"origin\0",
    b"R" + struct.pack("!I", 9) + b"public\0t\0f\0\1\1id\0" + struct.pack("!Ii", 23, -1),
    b"Y" + struct.pack("!I", 9) + b"public\0mood\0",
    b"I" + struct.pack("!I", 9) + b"N" + ROW,
    b"U" + struct.pack("!I", 9) + b"O" + ROW + b"N" + ROW,
    b"D" + struct.pack("!I", 9) + b"K" + ROW,
    b"T" + struct.pack("!IB", 2, 3) + struct.pack("!2I", 9, 10),
    b"M" + struct.pack("!BQ", 1, 5) + b"slackwater\0" + struct.pack("!i", 2) + b"{}",
)


@pytest.mark.parametrize("data", SAMPLES)
def test_each_sample_is_a_message(data: bytes) -> None:
    """The fuzz test begins with what is one."""
    assert parse(data)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A message with bytes changed, taken out or put in."""
    data = bytearray(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


@examples(500)
@given(st.binary(max_size=60) | mutated())
def test_any_bytes_are_a_message_or_a_named_error(data: bytes) -> None:
    """A server of another version, or a proxy, must not end the agent by a traceback."""
    try:
        parse(data)
    except MessageError as error:
        assert "the log sends" in str(error)  # noqa: PT017 both outcomes are right


@examples(200)
@given(st.integers(0, 2**64 - 1))
def test_a_place_in_the_log_is_read_as_it_is_written(lsn: int) -> None:
    """Text and number are one place."""
    assert parse_lsn(lsn_text(lsn)) == lsn


@pytest.mark.parametrize("text", ["", "0", "1/", "/1", "1/123456789", "x/1", "1/1 "])
def test_what_is_no_place_is_said(text: str) -> None:
    """The text comes from a table that anybody may edit."""
    with pytest.raises(StateError, match="is no place in a log"):
        parse_lsn(text)
