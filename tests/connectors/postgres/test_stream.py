"""The stream of the log: what is committed comes, and is kept until it is released."""

import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from connectors.agent.contract import StoreBusyError, StoreError
from connectors.postgres.log import stream as stream_module
from connectors.postgres.log.lsn import lsn_text, parse_lsn
from connectors.postgres.log.stream import LogStream
from connectors.postgres.log.transactions import Assembler, LogTransaction, RowWrite

WAIT_S = 5.0


@pytest.fixture
def client(dsn: str) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A database with a captured table, and a slot of its name."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in (
            b"CREATE TABLE item (id int PRIMARY KEY, at timestamptz)",
            b"ALTER TABLE item REPLICA IDENTITY FULL",
            b"CREATE TABLE other (id int)",
            b"CREATE PUBLICATION p FOR TABLE item",
            b"SELECT pg_create_logical_replication_slot(current_database(), 'pgoutput')",
        ):
            connection.execute(statement)
        yield connection
        connection.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
            " WHERE slot_name = current_database() AND active"
        )
        for _ in range(100):
            try:
                connection.execute("SELECT pg_drop_replication_slot(current_database())")
                break
            except psycopg.errors.ObjectInUse:
                time.sleep(0.05)


Client = psycopg.Connection[tuple[object, ...]]


def opened(client: Client, dsn: str, lsn: int = 0) -> LogStream:
    """The stream of the slot."""
    return LogStream.open(dsn, client.info.dbname, "p", lsn)


def next_transaction(
    stream: LogStream, assembler: Assembler | None = None
) -> LogTransaction | None:
    """The next transaction; None: none came for a while. `assembler`: of the stream."""
    assembler = assembler or Assembler("nobody")
    while (data := stream.read(WAIT_S)) is not None:
        if (found := assembler.add(data)) is not None:
            return found
    return None


def ids(transaction: LogTransaction | None) -> list[str | None]:
    """The keys of the rows that it inserted."""
    assert transaction is not None
    writes = [one for one in transaction.writes if isinstance(one, RowWrite)]
    return [one.new["id"] for one in writes if one.new is not None]


def confirmed(client: Client) -> int:
    """Up to where the server has been told that it may forget."""
    query = (
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
        " WHERE slot_name = current_database()"
    )
    (found,) = client.execute(query).fetchone() or ("0/0",)
    return parse_lsn(str(found))


def test_what_is_not_released_comes_again(client: Client, dsn: str) -> None:
    """From the place that is asked for: the server skips what ends before it."""
    with closing(opened(client, dsn)) as stream:
        client.execute("INSERT INTO item VALUES (1)")
        client.execute("INSERT INTO item VALUES (2)")
        assembler = Assembler("nobody")
        first, second = (next_transaction(stream, assembler) for _ in range(2))
        assert (ids(first), ids(second)) == (["1"], ["2"])
        assert stream.read(0) is None
    assert first is not None
    with closing(opened_again(client, dsn, 0)) as stream:
        assert ids(next_transaction(stream)) == ["1"]
    with closing(opened_again(client, dsn, first.end_lsn or 0)) as stream:
        assert ids(next_transaction(stream)) == ["2"]


def opened_again(client: Client, dsn: str, lsn: int) -> LogStream:
    """The stream, once the backend of the one before has ended."""
    for _ in range(100):
        try:
            return opened(client, dsn, lsn)
        except StoreBusyError:
            time.sleep(0.05)
    raise AssertionError("the slot stays in use")


def test_the_server_forgets_what_is_released_and_no_more(client: Client, dsn: str) -> None:
    """What is told beyond the stored checkpoint would be lost by a crash."""
    with closing(opened(client, dsn)) as stream:
        before = confirmed(client)
        client.execute("INSERT INTO item VALUES (1)")
        found = next_transaction(stream)
        assert found is not None
        assert found.end_lsn is not None
        assert confirmed(client) == before
        stream.release(found.end_lsn, asks=True)
        stream.read(0.2)
        assert confirmed(client) == found.end_lsn


def test_a_keepalive_says_how_far_the_log_is_decoded(client: Client, dsn: str) -> None:
    """Writes of tables that nobody captures send nothing, and yet the log grows."""
    with closing(opened(client, dsn)) as stream:
        client.execute("INSERT INTO other SELECT generate_series(1, 1000)")
        (text,) = client.execute("SELECT pg_current_wal_flush_lsn()::text").fetchone() or ("",)
        until_s = time.monotonic() + WAIT_S
        while stream.decoded < parse_lsn(str(text)) and time.monotonic() < until_s:
            stream.release(0, asks=True)
            while stream.read(0.05) is not None:  # the empty transaction, perhaps
                pass

        assert stream.decoded >= parse_lsn(str(text)), lsn_text(stream.decoded)
        assert stream.released == 0


def test_text_is_written_as_the_agent_wants_it(client: Client, dsn: str) -> None:
    """Whatever an administrator has set for the role."""
    plain = psycopg.conninfo.make_conninfo(dsn, options="-c timezone=Asia/Tokyo -c datestyle=SQL")
    with closing(opened(client, plain)) as stream:
        client.execute("INSERT INTO item VALUES (1, '2024-02-29 23:59:59.5Z')")
        found = next_transaction(stream)

    assert found is not None
    (write,) = found.writes
    assert isinstance(write, RowWrite)
    assert write.new == {"id": "1", "at": "2024-02-29 23:59:59.5+00"}


def test_a_slot_is_read_by_one_agent(client: Client, dsn: str) -> None:
    """It is the lock against a second one; a dead one's backend may live on for a while."""
    with closing(opened(client, dsn)), pytest.raises(StoreBusyError, match="cannot be read"):
        opened(client, dsn)


@pytest.mark.postgres15
def test_a_slot_or_publication_that_is_not_there_is_named(client: Client, dsn: str) -> None:
    """The server names the publication only when it decodes the first row.

    Since version 18 it skips what is not there: the agent looks at its catalog each second.
    """
    with pytest.raises(StoreError, match='"absent" does not exist'):
        LogStream.open(dsn, "absent", "p", 0)
    with closing(LogStream.open(dsn, client.info.dbname, 'q"', 0)) as stream:
        client.execute("INSERT INTO item VALUES (1)")
        if client.info.server_version >= 180000:
            assert stream.read(WAIT_S) is None
            return
        with pytest.raises(StoreError, match=r'publication "q""? does not exist'):
            stream.read(WAIT_S)


def test_a_lost_connection_is_said(client: Client, dsn: str) -> None:
    """The server was stopped, or an administrator ended the backend."""
    with closing(opened(client, dsn)) as stream:
        client.execute(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots"
            " WHERE slot_name = current_database()"
        )
        with pytest.raises(StoreError, match="the stream of the log ended"):
            stream.read(WAIT_S)


def test_a_server_that_is_not_there_is_said() -> None:
    """With what libpq says of it."""
    with pytest.raises(StoreError, match="the log cannot be read"):
        LogStream.open("host=127.0.0.1 port=1 dbname=x", "s", "p", 0)


def test_the_server_hears_of_an_agent_that_reads_nothing(
    client: Client, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for Kafka, perhaps for an hour; a silent connection is ended by the server."""
    monkeypatch.setattr(stream_module, "FEEDBACK_S", 0.1)
    options = str(psycopg.conninfo.conninfo_to_dict(dsn)["options"])
    impatient = psycopg.conninfo.make_conninfo(
        dsn, options=f"{options} -c wal_sender_timeout=500ms"
    )
    with closing(opened(client, impatient)) as stream:
        time.sleep(1.5)
        client.execute("INSERT INTO item VALUES (1)")

        assert ids(next_transaction(stream)) == ["1"]
