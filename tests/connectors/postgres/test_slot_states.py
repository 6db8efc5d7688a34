"""Whether the log can be read on: each state of a slot, done to a real server (docs of the slot).

A gap is told, never skipped, and nothing is made again in silence.
"""

import logging
import time
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from connectors.agent.contract import ReplicaStore
from connectors.postgres.log import held
from connectors.postgres.log.lsn import parse_lsn
from connectors.postgres.names import local_origin
from connectors.postgres.store import PostgresStore
from streaming.core.model.change import Change
from streaming.core.model.errors import StateError
from streaming.core.records.record import Snapshot
from tests.connectors.conformance.database_under_test import ITEMS
from tests.connectors.conformance.hub_batches import apply, item, journalled
from tests.connectors.conformance.postgres_database import REPLICA, PostgresDatabase


def publish_all(store: ReplicaStore) -> list[Change]:
    """What an agent publishes, as if the topic took it."""
    found = list[Change]()
    while entries := store.unpublished(100, 10**6):
        found += [one.record for one in entries if isinstance(one.record, Change)]
        store.mark_published(entries[-1])
    return found


def begun(database: PostgresDatabase) -> PostgresStore:
    """A store in a session, of a database in which one row is written and one is applied."""
    store = database.store()
    assert isinstance(store, PostgresStore)
    store.start_session("s1", None, lost=False)
    database.write("INSERT INTO items VALUES (1, 'own', 1)")
    apply(store, item(2, "of the hub"))
    assert [one.key for one in publish_all(store)] == ['{"id":"1"}']
    store.close()
    return store


def told(store: ReplicaStore) -> list[tuple[str, int | None, int]]:
    """Key, opno and epoch of what is published until a snapshot is told to its end."""
    found, rows = list[tuple[str, int | None, int]](), 0
    assert store.start_session("s2", None, lost=False).snapshot is not None
    while store.journal_snapshot(100) or store.backlog():
        entries = store.unpublished(100, 10**6)
        for record in (one.record for one in entries):
            if isinstance(record, Change):
                found.append((record.key, record.opno, record.epoch))
                rows += record.snapshot is not None
            if isinstance(record, Snapshot) and record.phase == "end":
                assert record.count == rows
        if entries:
            store.mark_published(entries[-1])
    return found


def retried(statement: str, database: PostgresDatabase) -> None:
    """Run a statement once the backend of the stream before has ended."""
    for _ in range(100):
        with suppress(psycopg.errors.ObjectInUse):
            database.write(statement)
            return
        time.sleep(0.05)
    raise AssertionError(f"in use: {statement}")


def drop_slot(database: PostgresDatabase, name: str) -> None:
    """Drop the slot, as an administrator does whose disk is full."""
    retried(f"SELECT pg_drop_replication_slot('{name}')", database)


def test_a_slot_that_was_dropped_is_a_gap_that_is_told(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """With numbers that go on, in the epoch that the rows have; and it is told once."""
    name = begun(attached).opened.name
    drop_slot(attached, name)
    attached.write("INSERT INTO items VALUES (3, 'in the gap', 1)")

    with caplog.at_level(logging.WARNING):
        store = attached.store()
    assert f"replication slot {name} is not there any more" in caplog.text
    assert "Rows that were deleted meanwhile are not known" in caplog.text
    attached.write("INSERT INTO items VALUES (4, 'later', 1)")
    keys = [f'{{"id":"{one}"}}' for one in (4, 1, 2, 3, 4)]
    assert told(store) == [(key, 2 + n, 2) for n, key in enumerate(keys)]

    caplog.clear()
    again = attached.store()
    assert again.start_session("s3", None, lost=False).snapshot is None
    assert (journalled(again), caplog.text) == ([], "")


def test_a_slot_that_was_made_again_is_a_gap(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """It looks like the one of before, and begins later."""
    name = begun(attached).opened.name
    drop_slot(attached, name)
    attached.write("INSERT INTO items VALUES (3, 'in the gap', 1)")
    attached.write(f"SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")

    with caplog.at_level(logging.WARNING):
        store = attached.store()

    assert f"replication slot {name} was made again" in caplog.text
    assert [key for key, *_ in told(store)] == [f'{{"id":"{one}"}}' for one in (1, 2, 3)]


def test_a_slot_of_somebody_else_is_not_taken(attached: PostgresDatabase) -> None:
    """Its name is ours, and what it decodes is not."""
    name = begun(attached).opened.name
    drop_slot(attached, name)
    attached.write(f"SELECT pg_create_logical_replication_slot('{name}', 'test_decoding')")

    with pytest.raises(StateError, match="is one of test_decoding for database"):
        attached.store()

    drop_slot(attached, name)


def test_a_publication_that_is_gone_is_made_again_by_a_person(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """What was written without it cannot be decoded, though everything looks as before."""
    begun(attached)
    attached.write("DROP PUBLICATION slackwater", "INSERT INTO items VALUES (3, 'in the gap', 1)")
    with pytest.raises(StateError, match="CREATE PUBLICATION slackwater FOR TABLE"):
        attached.store()
    attached.write("CREATE PUBLICATION slackwater FOR TABLE items")

    with caplog.at_level(logging.WARNING):
        store = attached.store()

    assert "publication slackwater was made again" in caplog.text
    assert [key for key, *_ in told(store)] == [f'{{"id":"{one}"}}' for one in (1, 2, 3)]


def test_without_the_origin_own_writes_would_look_like_those_of_clients(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """They were published as changes of this replica: so it is a gap."""
    name = begun(attached).opened.name
    retried(f"SELECT pg_replication_origin_drop('{name}')", attached)

    with caplog.at_level(logging.WARNING):
        store = attached.store()

    assert f"replication origin {name}" in caplog.text
    assert [key for key, *_ in told(store)] == ['{"id":"1"}', '{"id":"2"}']


def test_a_copy_of_the_database_has_a_slot_of_its_own(
    attached: PostgresDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    """The slot of the one that was copied goes on to be that one's."""
    before = begun(attached)
    database = conninfo_to_dict(attached.dsn)["dbname"]
    with psycopg.connect(attached.dsn, dbname="postgres", autocommit=True) as server:
        for _ in range(100):
            with suppress(psycopg.errors.ObjectInUse):
                server.execute(f"CREATE DATABASE {database}_copy TEMPLATE {database}".encode())
                break
            time.sleep(0.05)

    with caplog.at_level(logging.WARNING):
        copy = PostgresStore.open(f"{attached.dsn} dbname={database}_copy", REPLICA, [ITEMS])

    assert f"a copy of another one, whose slot was {before.opened.name}" in caplog.text
    assert [key for key, *_ in told(copy)] == ['{"id":"1"}', '{"id":"2"}']
    copy.close()
    assert [one.key for one in journalled(attached.store()) if isinstance(one, Change)] == []
    name = copy.opened.name
    with psycopg.connect(attached.dsn, dbname=f"{database}_copy", autocommit=True) as server:
        for drop in (
            f"pg_drop_replication_slot('{name}')",
            *(f"pg_replication_origin_drop('{one}')" for one in (name, local_origin(name))),
        ):
            for _ in range(100):
                with suppress(psycopg.errors.ObjectInUse):
                    server.execute(f"SELECT {drop}".encode())
                    break
                time.sleep(0.05)


def test_the_log_is_forgotten_though_nobody_writes_what_is_replicated(
    attached: PostgresDatabase,
) -> None:
    """Or other tables' writes, and what the agent applies, would fill the server's disk."""
    store = attached.store()
    assert isinstance(store, PostgresStore)
    store.start_session("s1", None, lost=False)
    publish_all(store)
    attached.write("CREATE TABLE other (text text)")
    before = store.capture.lsn
    attached.write("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, 1500)")

    publish_all(store)
    assert store.capture.lsn == before  # not at once: each is a commit
    store.stored_at_s -= 60
    publish_all(store)

    assert parse_lsn(store.capture.lsn) - parse_lsn(before) > 1_000_000
    assert store.reader.stream.released == parse_lsn(store.capture.lsn)


def test_it_is_known_what_the_server_keeps_and_who_holds_it(
    attached: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open transaction holds the log, though the agent reads on."""
    monkeypatch.setattr(held, "OPEN_S", 0)
    store = attached.store()
    assert isinstance(store, PostgresStore)
    store.start_session("s1", None, lost=False)
    publish_all(store)
    found = store.held_log()
    assert found is not None
    assert (found.room_bytes, found.by) == (None, "what the agent has not published")

    with attached.holding("INSERT INTO items VALUES (1, 'open', 1)"):
        attached.write("CHECKPOINT", "CREATE TABLE other AS SELECT generate_series(1, 20000) n")
        again = found
        for _ in range(100):
            store.stored_at_s, store.held_at_s = -60, None
            publish_all(store)
            again = store.held_log() or found
            if again.by.startswith("process "):
                break
            time.sleep(0.05)
        assert again.by.startswith("process ")
        assert again.bytes > 1_000_000
    assert held.held_log(store.session, "absent") is None
