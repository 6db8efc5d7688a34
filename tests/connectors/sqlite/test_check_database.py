"""The reasons against replicating a database are listed before anything is changed."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.check import FAULTS_MAX, check_database
from connectors.sqlite.install.install import install
from connectors.sqlite.schema.user_triggers import GUARD
from connectors.sqlite.store import SqliteStore
from streaming.core.model.errors import StateError
from streaming.core.model.table import ColumnType, Table

T = ColumnType
ACCOUNT = Table(
    "account", ("id",), {"id": T.INT64, "email": T.TEXT, "balance": T.DECIMAL, "at": T.TIMESTAMP}
)
SCHEMA = """
CREATE TABLE account (
  id INTEGER PRIMARY KEY, email TEXT UNIQUE, balance NUMERIC(10,2) CHECK (balance >= 0),
  at DATETIME DEFAULT CURRENT_TIMESTAMP, note TEXT, team INT REFERENCES team (id)
);
CREATE TABLE team (id INTEGER PRIMARY KEY);
CREATE TABLE log (line TEXT);
CREATE TRIGGER mine AFTER INSERT ON account BEGIN INSERT INTO log VALUES (NEW.email); END;
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A database as people have them."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as client:
        client.executescript(SCHEMA)
    return path


def test_everything_that_matters_is_listed(database: Path) -> None:
    """Types, constraints, triggers, columns and tables that stay, and the file is as it was."""
    before = database.read_bytes()

    found = check_database(database, [ACCOUNT])

    assert found.is_good
    assert [(c.name, c.declared, c.configured, c.default) for c in found.columns] == [
        ("id", "INTEGER", "int64", None),
        ("email", "TEXT", "text", None),
        ("balance", "NUMERIC(10,2)", "decimal", None),
        ("at", "DATETIME", "timestamp", "CURRENT_TIMESTAMP"),
        ("note", "TEXT", None, None),
        ("team", "INT", None, None),
    ]
    assert [one.text for one in found.constraints] == [
        "UNIQUE (email)",
        "CHECK (balance >= 0)",
        "FOREIGN KEY (team) REFERENCES team (id)",
    ]
    assert [(t.name, t.rows, t.is_captured, t.triggers) for t in found.tables] == [
        ("account", 0, False, ("mine",))
    ]
    assert (found.not_configured, found.without_key) == (("log", "team"), ("log",))
    assert [text.split(" is ")[0].split(": two ")[0] for text in found.warnings][:3] == [
        "table account: column note",
        "table account: column team",
        "table account: UNIQUE (email)",
    ]
    assert database.read_bytes() == before


def test_existing_rows_and_those_that_cannot_be_carried_are_named(database: Path) -> None:
    """Before the start, by key, with what to do."""
    with closing(sqlite3.connect(database)) as client, client:
        client.executemany(
            "INSERT INTO account (id, balance) VALUES (?, ?)",
            [(id_, "abc" if id_ > 1 else 1.5) for id_ in range(1, FAULTS_MAX + 4)],
        )

    found = check_database(database, [ACCOUNT])
    confirmed = check_database(database, [ACCOUNT], rows_are_shared=True)

    assert (found.to_snapshot, confirmed.to_snapshot) == (("account",), ())
    assert not found.complaints
    assert not confirmed.is_good
    assert confirmed.row_faults[0].startswith(
        'table account row {"id":"2"}: balance: the text \'abc\' is no decimal: write a number'
    )
    assert len(confirmed.row_faults) == FAULTS_MAX + 1
    assert confirmed.row_faults[-1] == "and 2 more rows"


def test_a_replica_in_use_can_be_checked(database: Path) -> None:
    """Its own triggers and tables are none of the user's."""
    with closing(sqlite3.connect(database, isolation_level=None)) as client:
        install(client, 7, [ACCOUNT])
        client.execute("INSERT INTO account (id, balance) VALUES (1, 2.5)")

        found = check_database(database, [ACCOUNT])

    assert found.is_good
    assert [(t.rows, t.is_captured, t.triggers) for t in found.tables] == [(1, True, ("mine",))]
    assert found.not_configured == ("log", "team")


@pytest.mark.parametrize(
    ("when", "body", "text"),
    [
        ("BEFORE UPDATE", "UPDATE account SET note = 'x' WHERE id = OLD.id", "a row is updated"),
        ("UPDATE OF email", "UPDATE account SET note = 'x' WHERE id = OLD.id", "a row is updated"),
        ("BEFORE DELETE", "DELETE FROM account WHERE id = OLD.id", "a row is deleted"),
        ("BEFORE DELETE", "INSERT INTO log VALUES ('')", "writes account by trigger next on log"),
    ],
)
def test_a_trigger_that_may_write_the_row_that_is_written_is_warned_of(
    database: Path, caplog: pytest.LogCaptureFixture, when: str, body: str, text: str
) -> None:
    """The guard does not help: here, where the row is written first, the journal may be wrong.

    The agent's start says so too.
    """
    with closing(sqlite3.connect(database)) as client:
        client.execute(f"CREATE TRIGGER early {when} ON account {GUARD} BEGIN {body}; END")
        client.execute(
            f"CREATE TRIGGER next AFTER INSERT ON log {GUARD} AND NEW.line = ''"
            " BEGIN UPDATE account SET note = 'x'; END"
        )

    found = check_database(database, [ACCOUNT])

    (warning,) = [one for one in found.warnings if one.startswith("trigger early on table account")]
    assert text in warning
    assert "make it an AFTER trigger" in warning
    assert found.is_good
    SqliteStore.open(database, 7, [ACCOUNT]).close()
    assert caplog.messages.count(warning) == 1


@pytest.mark.parametrize(
    ("when", "body"),
    [
        ("AFTER UPDATE", "UPDATE account SET note = 'x' WHERE id = OLD.id"),
        ("BEFORE INSERT", "DELETE FROM account WHERE id = NEW.id"),
        ("BEFORE DELETE", "INSERT INTO team VALUES (OLD.team)"),
    ],
)
def test_what_sqlite_defines_is_no_warning(database: Path, when: str, body: str) -> None:
    """Behind the row, before one that is not there yet, and in other tables."""
    with closing(sqlite3.connect(database)) as client:
        client.execute(f"CREATE TRIGGER fine {when} ON account {GUARD} BEGIN {body}; END")

    found = check_database(database, [ACCOUNT])

    assert not [one for one in found.warnings if "trigger fine" in one]


def test_a_trigger_that_is_lost_is_named(database: Path) -> None:
    """An agent would end with the same, and the table is not captured."""
    with closing(sqlite3.connect(database, isolation_level=None)) as client:
        install(client, 7, [ACCOUNT])
        client.execute("DROP TRIGGER _slackwater_after_delete_account")

    found = check_database(database, [ACCOUNT])

    assert not found.is_good
    assert "lost its trigger _slackwater_after_delete_account, because" in found.complaints[0]
    assert [table.is_captured for table in found.tables] == [False]


def test_what_is_refused_at_start_is_refused_here(database: Path) -> None:
    """All of it, and other tables are still listed."""
    wrong = Table("account", ("id",), {"id": T.INT64, "balance": T.TEXT, "gone": T.TEXT})

    found = check_database(database, [wrong, Table("none", ("id",), {"id": T.INT64})])

    assert not found.is_good
    assert len(found.complaints) == 2
    assert any("account: column gone is configured, and the table" in w for w in found.warnings)
    assert [table.name for table in found.tables] == ["account"]


def test_a_wrong_path_or_file_is_said(tmp_path: Path) -> None:
    """And no file is made."""
    with pytest.raises(StateError, match="there is no database"):
        check_database(tmp_path / "nope.db", [ACCOUNT])
    assert not list(tmp_path.iterdir())

    (tmp_path / "text.db").write_text("hello " * 1000)
    with pytest.raises(StateError, match="cannot be read: file is not a database"):
        check_database(tmp_path / "text.db", [ACCOUNT])


def test_a_key_in_another_case_is_a_complaint(database: Path) -> None:
    """SQLite takes it for the same column; the agents name columns exactly."""
    found = check_database(database, [Table("account", ("ID",), {"ID": T.INT64, "email": T.TEXT})])

    [complaint] = [one for one in found.complaints if " ID " in one]
    assert complaint == (
        "table account: column ID is named id in the database: name it so in the configuration,"
        " where case counts"
    )


def test_a_table_may_be_named_in_another_case(database: Path) -> None:
    """SQLite finds it by either name, and no agent needs the database's own."""
    columns = {"id": T.INT64, "email": T.TEXT}

    found = check_database(database, [Table("ACCOUNT", ("id",), columns)])

    assert found.complaints == ()
    assert "account" not in found.not_configured
