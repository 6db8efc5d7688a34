"""What the agent put into a database goes again, and nothing else does."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.file import exclusive
from connectors.sqlite.install.owner import check_owner, write_owner
from connectors.sqlite.install.uninstall import uninstall
from connectors.sqlite.schema.user_triggers import GUARD
from connectors.sqlite.store import SqliteStore
from streaming.core.model.errors import StateError
from tests.connectors.sqlite.sqlite_replica import CREATE_ITEMS, CREATE_PAIRS, ITEMS, PAIRS, RID

EVERYTHING = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A user's database that knows no agent."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as client:
        client.execute(CREATE_ITEMS)
        client.execute(CREATE_PAIRS)
        client.execute("CREATE INDEX by_price ON items (price)")
        client.execute("CREATE TABLE audit (n)")
        client.execute(
            "CREATE TRIGGER mine AFTER INSERT ON items BEGIN INSERT INTO audit VALUES (1); END"
        )
    return path


def query(database: Path, statement: str) -> list[tuple[object, ...]]:
    """The rows of a query, or of a write that is committed."""
    with closing(sqlite3.connect(database)) as client, client:
        return client.execute(statement).fetchall()


def replicate(database: Path) -> None:
    """An agent runs, a client writes, and everything is published."""
    with exclusive(database), closing(SqliteStore.open(database, RID, [ITEMS, PAIRS])) as store:
        query(database, "INSERT INTO items VALUES (1, 'a', '1.50')")
        store.mark_published(store.unpublished(100, 10**6)[-1])


def test_nothing_is_left_of_the_agent(database: Path) -> None:
    """The schema, the journal mode, the files beside it; the rows stay."""
    before = query(database, EVERYTHING), query(database, "PRAGMA journal_mode")
    replicate(database)
    assert query(database, EVERYTHING) != before[0]

    uninstall(database)

    assert (query(database, EVERYTHING), query(database, "PRAGMA journal_mode")) == before
    assert [path.name for path in database.parent.iterdir()] == [database.name]
    query(database, "UPDATE items SET name = 'b'")
    assert query(database, "SELECT * FROM items") == [(1, "b", "1.50")]


def test_a_database_with_a_running_agent_is_refused(database: Path) -> None:
    """It would publish from tables that are gone."""
    replicate(database)
    before = query(database, EVERYTHING)

    with exclusive(database), pytest.raises(StateError, match=r"another agent .*: stop it first"):
        uninstall(database)

    assert query(database, EVERYTHING) == before


def test_changes_that_nobody_else_has_are_not_thrown_away(database: Path) -> None:
    """Unless somebody says so."""
    replicate(database)
    query(database, "DELETE FROM items")

    with pytest.raises(StateError, match="not published yet: 1 change, "):
        uninstall(database)
    assert uninstall(database, discards_unpublished=True)


def test_a_trigger_that_needs_the_agents_tables_is_named(database: Path) -> None:
    """Every statement that fires it would fail from then on."""
    replicate(database)
    query(
        database,
        f"CREATE TRIGGER guarded AFTER INSERT ON items {GUARD} BEGIN DELETE FROM audit; END",
    )

    with pytest.raises(StateError, match="guarded: these triggers or views of yours name tables"):
        uninstall(database)


def test_a_wrong_path_makes_no_file(tmp_path: Path) -> None:
    """An empty database would look like one that was cleaned."""
    with pytest.raises(StateError, match="there is no database"):
        uninstall(tmp_path / "nope.db")

    assert not list(tmp_path.iterdir())


def test_a_file_of_an_agent_of_before_gets_the_name(database: Path) -> None:
    """Until then nobody can say whose it is, and it is removed as ever."""
    replicate(database)
    query(database, "ALTER TABLE _slackwater_origin DROP COLUMN replica")
    with closing(sqlite3.connect(database)) as client:
        check_owner(client, "other")

    with exclusive(database), closing(SqliteStore.open(database, RID, [ITEMS, PAIRS])) as store:
        write_owner(store.connection, "berlin")

    with pytest.raises(StateError, match="is that of replica berlin, not of other"):
        uninstall(database, replica="other")
    assert uninstall(database, replica="berlin")
