"""A database is attached step by step, and detached in reverse; nothing is left."""

import threading
from collections.abc import Iterator

import psycopg
import pytest

from connectors.agent.attaching import ReplicaPlace
from connectors.agent.contract import StoreBusyError
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.postgres.check.rights import missing_grants
from connectors.postgres.install.attach import attach
from connectors.postgres.install.attachment import attached
from connectors.postgres.install.detach import check_published, detach, detach_steps, what_is_left
from connectors.postgres.install.steps import attach_steps
from connectors.postgres.install.system import read_capture
from connectors.postgres.names import local_origin, server_name
from connectors.postgres.run import open_store
from connectors.postgres.schema.catalog import read_table
from connectors.postgres.sql import Session
from streaming.core.model.errors import StateError
from streaming.core.model.table import ColumnType, Table
from tests.connectors.conformance.hub_batches import apply
from tests.connectors.postgres.apply_site import row

T = ColumnType
ITEMS = Table("items", ("id",), {"id": T.INT64, "name": T.TEXT})
PLAIN = Table('100% "o\'dd" one', ("id",), {"id": T.INT64})
SCHEMA = """
CREATE TABLE items (id bigint PRIMARY KEY, name text NOT NULL);
CREATE UNIQUE INDEX by_name ON items (name);
ALTER TABLE items REPLICA IDENTITY USING INDEX by_name;
CREATE TABLE "100% ""o'dd"" one" (id bigint PRIMARY KEY);
INSERT INTO items VALUES (1, 'from before')
"""
B = ReplicaPlace("b", 2)


@pytest.fixture
def session(emptied_dsn: str) -> Iterator[Session]:
    """A database with two tables, of which one has rows and an identity of its own."""
    with psycopg.connect(emptied_dsn, autocommit=True) as session:
        for statement in SCHEMA.split(";"):
            session.execute(statement.encode())
        yield session
        detach(session, B.name)


def identities(session: Session) -> dict[str, str]:
    """Table -> its replica identity."""
    query = "SELECT relname, relreplident::text FROM pg_class WHERE relkind = 'r'"
    rows = session.execute(f"{query} AND relnamespace = 'public'::regnamespace").fetchall()
    return dict(rows)


def test_attach_and_detach_leave_the_database_as_it_was(session: Session) -> None:
    """A slot that stays fills the disk; an identity that stays costs log at every update."""
    before = identities(session)

    done = attach(session, B, [ITEMS, PLAIN])
    during, name = identities(session), attached(session).server_name
    removed = detach(session, "b")

    assert len(done) == 6
    assert before == {"items": "i", PLAIN.name: "d"}
    assert set(during.values()) == {"f"}
    assert name == server_name(session.info.dbname, "b")
    assert removed[0] == f"replication slot {name}"
    assert (len(removed), identities(session)) == (7, before)
    assert what_is_left(session, name) == []


@pytest.mark.parametrize("steps", range(7))
def test_who_was_interrupted_goes_on(session: Session, steps: int) -> None:
    """Behind each step; a slot from which nothing was read is made again."""
    statements = [
        one for step in attach_steps(session, B, [ITEMS, PLAIN]) for one in step.statements
    ]
    for one in statements[: steps * len(statements) // 7]:
        session.execute(one.encode())

    attach(session, B, [ITEMS, PLAIN])
    again = attach(session, B, [ITEMS, PLAIN])

    assert again == []
    assert read_capture(session) is not None
    told = session.execute('SELECT "table" FROM slackwater.snapshot').fetchall()
    assert told == [("items",)]


def test_rows_that_all_have_are_not_told(session: Session) -> None:
    """Otherwise each replica would tell each other one what it has."""
    attach(session, B, [ITEMS, PLAIN], rows_are_shared=True)

    assert session.execute("SELECT count(*) FROM slackwater.snapshot").fetchone() == (0,)


def test_a_table_that_is_configured_later_is_added(session: Session) -> None:
    """Its rows are told as those of the others were."""
    attach(session, B, [PLAIN])

    done = attach(session, B, [PLAIN, ITEMS])

    assert [one.partition(" ")[2].partition(" ")[0] for one in done] == [
        *("schema", "IDENTITY", "publication")
    ]
    assert session.execute('SELECT "table" FROM slackwater.snapshot').fetchall() == [("items",)]


def test_another_replica_is_not_attached_on_top(session: Session) -> None:
    """Both would read one slot."""
    attach(session, B, [ITEMS])

    with pytest.raises(StateError, match="attached as replica b"):
        attach(session, ReplicaPlace("c", 3), [ITEMS])


def test_what_is_not_published_is_not_thrown_away(session: Session) -> None:
    """Nobody else has it; an apply of the agent's own, and what is to stay here, is none."""
    attach(session, B, [ITEMS, PLAIN], rows_are_shared=True)
    check_published(session)
    session.execute(
        "SELECT pg_replication_origin_session_setup(%s)", (attached(session).server_name,)
    )
    session.execute("INSERT INTO items VALUES (2, 'of the hub')")
    session.execute("SELECT pg_replication_origin_session_reset()")
    check_published(session)
    local = local_origin(attached(session).server_name)
    session.execute("SELECT pg_replication_origin_session_setup(%s)", (local,))
    session.execute("UPDATE items SET name = 'here' WHERE id = 2")
    session.execute("SELECT pg_replication_origin_session_reset()")
    check_published(session)
    session.execute("INSERT INTO items VALUES (3, 'x'), (4, 'y')")

    with pytest.raises(StateError, match="2 changes"):
        check_published(session)


def test_a_detach_finds_slot_and_origin_by_name_alone(session: Session) -> None:
    """Somebody may have dropped the schema by hand, and the slot still holds the log."""
    attach(session, B, [ITEMS])
    session.execute("DROP SCHEMA slackwater CASCADE")

    found = [step.what.rpartition(" ")[0] for step in detach_steps(session, "b")]

    assert found == ["replication slot", "publication", *["replication origin"] * 2]


def test_a_right_that_is_missing_names_what_to_run(session: Session, emptied_dsn: str) -> None:
    """Whoever has it need not know the agent; then it goes on behind that step."""
    session.execute("DROP ROLE IF EXISTS limited")
    session.execute("CREATE ROLE limited LOGIN REPLICATION")
    session.execute(f"GRANT CREATE ON DATABASE {session.info.dbname} TO limited".encode())
    session.execute("GRANT SELECT, INSERT, UPDATE, DELETE ON items TO limited")
    with psycopg.connect(emptied_dsn, user="limited", autocommit=True) as limited:
        for grant in missing_grants(limited, [read_table(session, "items")]):
            session.execute(grant.encode())
        with pytest.raises(StateError, match=r"must be owner.*step, REPLICA IDENTITY FULL"):
            attach(limited, B, [ITEMS])
        session.execute("ALTER TABLE items REPLICA IDENTITY FULL")
        with pytest.raises(StateError, match=r"must be owner.*step, the publication slackwater"):
            attach(limited, B, [ITEMS])
        session.execute("CREATE PUBLICATION slackwater FOR TABLE items")
        done = attach(limited, B, [ITEMS])

    assert [one.partition(" ")[2].partition(" ")[0] for one in done] == ["replication"]


@pytest.mark.postgres15
def test_an_agent_works_with_the_rights_that_the_script_gives(
    session: Session, emptied_dsn: str
) -> None:
    """It owns nothing, not even its own tables, and may create nothing."""
    session.execute("DROP ROLE IF EXISTS worker")
    session.execute("CREATE ROLE worker LOGIN")
    with psycopg.connect(emptied_dsn, user="worker", autocommit=True) as worker:
        script = [one for step in attach_steps(worker, B, [ITEMS]) for one in step.statements]
    for statement in script:
        session.execute(statement.encode())
    info = session.info
    place = f"//worker@{info.host}:{info.port}/{info.dbname}"
    settings = AgentSettings(
        DatabaseAddress("postgresql", place), B.name, B.rid, "nowhere:1", "c", None, (ITEMS,)
    )

    with open_store(settings) as store:
        store.start_session("s1", None, lost=False)
        refused = apply(store, row("items", '{"id":"7"}', '{"id":"7","name":"of the hub"}'))
        session.execute("INSERT INTO items VALUES (8, 'own')")
        while store.backlog() or store.journal_snapshot(100):
            for entry in store.unpublished(100, 10**6):
                store.mark_published(entry)

    assert refused == ()
    assert session.execute("SELECT name FROM items WHERE id = 7").fetchone() == ("of the hub",)
    check_published(session)


def test_a_transaction_that_is_in_the_way_is_named(
    session: Session, emptied_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wants the table waits behind the one that waits, so it does not wait for long."""
    monkeypatch.setattr("connectors.postgres.install.attach.LOCK_S", 0.1)
    with psycopg.connect(emptied_dsn) as client:
        client.execute("UPDATE items SET name = 'y'")
        with pytest.raises(StoreBusyError, match=rf"pid {client.info.backend_pid} of"):
            attach(session, B, [ITEMS])

    assert len(attach(session, B, [ITEMS])) == 3


def test_a_slot_waits_longer_than_a_lock(
    session: Session,
    emptied_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Nobody waits behind it; before it waits it names whoever is writing, in any table."""
    monkeypatch.setattr("connectors.postgres.install.attach.LOCK_S", 0.1)
    with psycopg.connect(emptied_dsn) as client:
        client.execute("CREATE TABLE others (id int)")
        writer = f"pid {client.info.backend_pid} of"

        ended = threading.Timer(1, client.commit)
        ended.start()
        done = attach(session, B, [ITEMS])
        ended.join()

    assert len(done) == 6
    assert "up to 60 s" in caplog.text
    assert writer in caplog.text


def test_a_slot_does_not_wait_for_ever(
    session: Session, emptied_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it names who was in the way, and is made when that one has ended."""
    monkeypatch.setattr("connectors.postgres.install.attach.STATEMENT_S", 1)
    with psycopg.connect(emptied_dsn) as client:
        client.execute("CREATE TABLE others (id int)")
        with pytest.raises(StoreBusyError, match=rf"slot .*pid {client.info.backend_pid} of"):
            attach(session, B, [ITEMS])

    assert len(attach(session, B, [ITEMS])) == 1
