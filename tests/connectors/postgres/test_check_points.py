"""Each line of the check is ok, or says what to do, and doing that makes it ok."""

from collections.abc import Iterator

import psycopg
import pytest

from connectors.agent.attaching import ReplicaPlace
from connectors.agent.found import CheckedPoint
from connectors.postgres.check.attached_points import attached_points
from connectors.postgres.check.rights import replication_point, rights_points
from connectors.postgres.check.server_points import server_points
from connectors.postgres.check.table_faults import table_faults
from connectors.postgres.install.attach import attach
from connectors.postgres.install.attachment import attached
from connectors.postgres.install.detach import detach
from connectors.postgres.schema.catalog import read_table
from connectors.postgres.sql import Session
from streaming.core.model.table import ColumnType, Table

T = ColumnType
ITEMS = Table("items", ("id",), {"id": T.INT64, "name": T.TEXT})

RULE = "CREATE TABLE x (id bigint PRIMARY KEY); CREATE RULE r AS ON DELETE TO x DO INSTEAD NOTHING"


@pytest.fixture
def session(emptied_dsn: str) -> Iterator[Session]:
    """A database with one table, which a superuser sees."""
    with psycopg.connect(emptied_dsn, autocommit=True) as session:
        session.execute("CREATE TABLE items (id bigint PRIMARY KEY, name text)")
        yield session
        detach(session, "b")


@pytest.fixture(scope="module")
def shared(postgres: str) -> Iterator[Session]:
    """A database for tests that leave nothing in it."""
    with psycopg.connect(f"{postgres} dbname=postgres", autocommit=True) as session:
        yield session


@pytest.fixture
def undone(shared: Session) -> Iterator[Session]:
    """A transaction that is rolled back."""
    with shared.transaction(force_rollback=True):
        yield shared


def to_do(points: Iterator[CheckedPoint]) -> dict[str, str]:
    """What is wrong -> what to do."""
    return {one.what: one.to_do for one in points if one.to_do}


def test_a_server_that_fits_is_ok(session: Session, emptied_dsn: str) -> None:
    """All but what the server keeps for a slot, which has no bound by default."""
    found = [*server_points(session), replication_point(emptied_dsn)]

    assert len(found) == (11 if session.info.server_version < 180000 else 12)
    assert [one.what.partition(" ")[0] for one in found if one.to_do] == ["max_slot_wal_keep_size"]
    assert "GB free on its disk" in next(one.what for one in found if one.to_do)
    assert not any(one.to_do and one.is_in_the_way for one in found)


@pytest.mark.postgres15
def test_what_a_role_lacks_is_given_by_the_statements_that_are_shown(
    session: Session, emptied_dsn: str
) -> None:
    """With the least that it needs: it is no superuser, and owns nothing."""
    session.execute("DROP ROLE IF EXISTS agent_of_b")
    session.execute("CREATE ROLE agent_of_b LOGIN")
    session.execute("ALTER TABLE items ENABLE ROW LEVEL SECURITY")
    items = [read_table(session, "items")]
    attach(session, ReplicaPlace("b", 2), [ITEMS])
    with psycopg.connect(emptied_dsn, user="agent_of_b", autocommit=True) as limited:
        before = to_do(rights_points(limited, items))
        refused = replication_point(f"{emptied_dsn} user=agent_of_b")
        for statements in before.values():
            session.execute(statements.encode())
        after = to_do(rights_points(limited, items))

    assert len(before) == 6
    assert "pg_hba.conf" in refused.to_do
    assert after == {}
    assert not replication_point(f"{emptied_dsn} user=agent_of_b").to_do
    session.execute("DROP OWNED BY agent_of_b")


@pytest.mark.postgres15
def test_what_was_changed_behind_the_agent_is_found(session: Session) -> None:
    """All of it looks green to a reader of the log, which just gets less."""
    items = [(ITEMS, read_table(session, "items"))]
    assert [*to_do(attached_points(session, items))] == ["attached"]
    attach(session, ReplicaPlace("b", 2), [ITEMS])
    name = attached(session).server_name
    assert to_do(attached_points(session, items)) == {}

    for change, why in {
        "ALTER TABLE items REPLICA IDENTITY DEFAULT": "REPLICA IDENTITY FULL",
        "ALTER TABLE items DROP COLUMN name": "no column name any more",
        "ALTER PUBLICATION slackwater DROP TABLE items": "ADD TABLE items",
        "ALTER PUBLICATION slackwater SET (publish = 'insert')": "not all operations",
        "ALTER PUBLICATION slackwater SET TABLE items WHERE (id > 0)": "a filter for items",
        "DROP PUBLICATION slackwater": "CREATE PUBLICATION slackwater",
    }.items():
        with session.transaction(force_rollback=True):
            session.execute(change.encode())
            found = [*attached_points(session, items)]
        assert any(why in one.to_do and one.is_in_the_way for one in found), found
    session.execute("SELECT pg_drop_replication_slot(%s)", (name,))
    (gap,) = to_do(attached_points(session, items)).values()
    assert "is not there any more: when its agent starts it makes a new slot" in gap


@pytest.mark.parametrize(
    ("create", "why"),
    [
        ("CREATE TABLE x (id bigint)", "no primary key"),
        ("CREATE TABLE x (id bigint, PRIMARY KEY (id)) PARTITION BY HASH (id)", "partitioned"),
        ("CREATE UNLOGGED TABLE x (id bigint PRIMARY KEY)", "SET LOGGED"),
        ("CREATE TABLE x (id bigint PRIMARY KEY DEFERRABLE)", "NOT DEFERRABLE"),
        ("CREATE TABLE x (id bigint PRIMARY KEY) INHERITS (y)", "inherits"),
        ("CREATE TABLE x (id bigint PRIMARY KEY, z int NOT NULL)", "NOT NULL without a default"),
        ("CREATE VIEW x AS SELECT id FROM y", "view"),
        (
            RULE,
            "the rule r",
        ),
    ],
)
def test_a_table_that_cannot_be_replicated_is_refused(
    undone: Session, create: str, why: str
) -> None:
    """Rather at the start than by rows that differ later."""
    undone.execute("CREATE TABLE y (id bigint)")
    undone.execute(create.encode())

    found = [*table_faults(undone, Table("x", ("id",), {"id": T.INT64}))]

    assert any(why in fault for fault in found), found


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        ("numeric", T.DECIMAL),
        ("interval", T.TEXT),
        ("float8", T.FLOAT64),
        ("char(3)", T.TEXT),
        ("jsonb", T.TEXT),
        ("inet", T.TEXT),
    ],
)
def test_a_key_whose_equal_values_have_several_texts_is_refused(
    undone: Session, declared: str, kind: ColumnType
) -> None:
    """The hub finds a row by the text of its key."""
    undone.execute(f"CREATE TABLE x (id {declared} PRIMARY KEY)".encode())

    found = [*table_faults(undone, Table("x", ("id",), {"id": kind}))]

    assert len(found) == 1
    assert "of the key" in found[0]
