"""Functions and collations that only the application's connections have."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.check import check_database
from connectors.sqlite.install.uninstall import uninstall
from connectors.sqlite.load import Prepare, prepare_of
from connectors.sqlite.store import SqliteStore
from connectors.sqlite.transaction import truncate
from streaming.core.delivery.consumer import ApplyBatch, receive
from streaming.core.model.change import Change
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import ColumnType, Table
from tests.connectors.sqlite.running_agents import update
from tests.connectors.sqlite.sqlite_replica import ITEMS, RID
from tests.harness.own_functions import FUNCTIONS, SCHEMA, register

MODULE = "tests.harness.own_functions"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database whose schema needs the application's functions everywhere."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as client:
        register(client)
        client.executescript(SCHEMA)
    return path


@pytest.fixture
def client(database: Path) -> Iterator[sqlite3.Connection]:
    """The application."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        register(connection)
        yield connection


def opened(database: Path, prepare: Prepare) -> SqliteStore:
    """The database as an agent opens it."""
    return SqliteStore.open(database, RID, [ITEMS], prepare=prepare)


def test_all_that_is_missing_is_named_with_what_needs_it(database: Path) -> None:
    """One after the other would take a start for each."""
    before = database.read_bytes()

    found = check_database(database, [ITEMS])

    assert not found.is_good
    said = "\n".join(found.complaints)
    for name in FUNCTIONS:
        assert f"the function {name}() is not known to the agent" in said
    assert "the collation by_length is not known to the agent" in said
    for user in ("trigger audit_update", "index by_weight", "view shouted", "table items"):
        assert user in said
    assert "start the agent with --load MODULE:function" in said
    assert database.read_bytes() == before


def test_an_agent_does_not_start_without_them(database: Path) -> None:
    """It would refuse each row of the others, and the application would see nothing of it."""
    with pytest.raises(ConfigError, match=r"the function tag\(\) is not known to the agent"):
        opened(database, prepare_of(None))

    with closing(sqlite3.connect(database)) as plain:
        names = plain.execute("SELECT name FROM sqlite_schema WHERE name LIKE '_slackwater%'")
        assert names.fetchall() == []


def test_with_them_rows_are_carried_both_ways(database: Path, client: sqlite3.Connection) -> None:
    """Triggers, checks and indexes do here what they do for the application."""
    prepare = prepare_of(f"{MODULE}:register")
    assert check_database(database, [ITEMS], prepare=prepare).is_good
    with closing(opened(database, prepare)) as store:
        client.execute("INSERT INTO items (id, name, price) VALUES (1, 'mine', '5')")
        session = store.start_session("s", None, lost=False)
        assert session.covers == 0

        outcome = receive(store.position, update("s", 1, 0, 2, 3))
        assert isinstance(outcome, ApplyBatch)
        applied = store.apply(outcome, 1, 0)

        assert applied.refused == ()
        assert [entry.record for entry in store.unpublished(9, 10**6)]
    rows = client.execute("SELECT id, price, dear, note FROM items ORDER BY id").fetchall()
    assert rows == [(1, "5", 0, "hello"), (2, "1", 0, "hello"), (3, "1", 0, "hello")]
    client.close()
    assert uninstall(database, discards_unpublished=True, prepare=prepare)


def test_a_function_that_is_taken_away_refuses_rows_and_ends_nothing(
    database: Path, client: sqlite3.Connection
) -> None:
    """A schema error at a row is the row's: the others, and the position, go on."""
    with closing(opened(database, prepare_of(f"{MODULE}:register"))) as store:
        store.start_session("s", None, lost=False)
        store.connection.create_window_function("shout", -1, None)  # which removes the function

        outcome = receive(store.position, update("s", 1, 0, 2))
        assert isinstance(outcome, ApplyBatch)
        applied = store.apply(outcome, 1, 0)

        (refused,) = applied.refused
        assert "no such function" in refused.text
        assert applied.position.covers == 1
    assert client.execute("SELECT count(*) FROM items").fetchone() == (0,)


def test_what_a_trigger_lacks_for_everybody_is_a_warning(database: Path) -> None:
    """The application cannot write such a row either, so what it does write is published."""
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DROP TABLE seen")

    found = check_database(database, [ITEMS], prepare=register)

    assert found.is_good
    (said,) = (text for text in found.warnings if "main.seen" in text)
    assert said == (
        "table items: no row can be written: no such table: main.seen; correct the trigger, or"
        " create what it names"
    )


def test_a_guard_against_the_agent_is_no_fault_before_its_first_start(tmp_path: Path) -> None:
    """It names a table that the agent is about to make."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price TEXT);"
            "CREATE TRIGGER touch AFTER INSERT ON items"
            " WHEN (SELECT applying FROM _slackwater_origin) = 0"
            " BEGIN UPDATE items SET price = '0' WHERE id = NEW.id; END;"
        )

    found = check_database(path, [ITEMS])

    assert found.is_good
    assert [text for text in found.warnings if "_slackwater" in text] == []
    opened(path, prepare_of(None)).close()


def test_a_guarded_trigger_is_compiled_once_the_agents_tables_are_there(tmp_path: Path) -> None:
    """Its guard hides from the check what it needs, but not from the agent's start."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price TEXT);"
            "CREATE TRIGGER touch AFTER INSERT ON items"
            " WHEN (SELECT applying FROM _slackwater_origin) = 0"
            " BEGIN UPDATE items SET price = tag(NEW.name) WHERE id = NEW.id; END;"
        )

    with pytest.raises(ConfigError, match=r"the function tag\(\) is not known to the agent"):
        opened(path, prepare_of(None))

    opened(path, prepare_of(f"{MODULE}:register")).close()


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("no_colon", "give MODULE:function"),
        ("no_such_module:register", "cannot be loaded: ModuleNotFoundError"),
        (f"{MODULE}:no_such_name", "cannot be loaded: AttributeError"),
        (f"{MODULE}:NUMBER", "is no function"),
        (f"{MODULE}:fails", "failed: RuntimeError: the extension is not installed"),
        (f"{MODULE}:extend", "failed: "),
    ],
)
def test_a_function_that_cannot_be_used_is_said(database: Path, path: str, says: str) -> None:
    """Which part of it is wrong decides where its writer looks."""
    with pytest.raises(ConfigError, match=f"--load {path}") as said:
        opened(database, prepare_of(path))

    assert says in str(said.value)


def test_the_functions_row_factory_does_not_reach_the_agent(database: Path) -> None:
    """Applications set up their connections as they like, and the agent reads tuples."""

    def sets_up(connection: sqlite3.Connection) -> None:
        register(connection)
        connection.row_factory = sqlite3.Row
        connection.isolation_level = "DEFERRED"
        connection.execute("PRAGMA foreign_keys = ON")

    with closing(opened(database, sets_up)) as store:
        assert store.position.covers == 0
        assert store.connection.row_factory is None
        assert store.connection.execute("PRAGMA foreign_keys").fetchone() == (0,)


def test_a_client_without_them_writes_the_tables_that_do_not_need_them(
    database: Path, client: sqlite3.Connection
) -> None:
    """Its triggers use nothing that only the application's connections know."""
    client.execute("CREATE TABLE plain (k TEXT NOT NULL PRIMARY KEY, v TEXT)")
    plain = Table("plain", ("k",), {"k": ColumnType.TEXT, "v": ColumnType.TEXT})
    prepare = prepare_of(f"{MODULE}:register")
    SqliteStore.open(database, RID, [ITEMS, plain], prepare=prepare).close()

    with closing(SqliteStore.open(database, RID, [ITEMS, plain], prepare=prepare)) as store:
        with closing(sqlite3.connect(database, isolation_level=None)) as stranger:
            stranger.execute("INSERT INTO plain VALUES ('k', 'v')")
            stranger.execute("UPDATE plain SET v = 'w'")
            stranger.execute("DELETE FROM plain")
        truncate(client, "plain")
        changes = [entry.record for entry in store.unpublished(9, 10**6)]

    assert [one.op for one in changes if isinstance(one, Change)] == [
        *("insert", "update", "delete", "truncate")
    ]
