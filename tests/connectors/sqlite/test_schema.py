"""A database becomes a replica once, stays one, and is refused where it could not be a good one."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors import wire
from connectors.sqlite.apply import saved_rows
from connectors.sqlite.check import check_database
from connectors.sqlite.install.install import install
from connectors.sqlite.install.system import NEEDED_TABLES
from connectors.sqlite.install.uninstall import uninstall
from connectors.sqlite.journal import entries as journal
from connectors.sqlite.journal import snapshot
from connectors.sqlite.schema.inspection import inspect
from connectors.sqlite.schema.user_triggers import GUARD
from connectors.sqlite.store import SqliteStore
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.model.table import ColumnType, Table
from tests.connectors.sqlite.sqlite_replica import ITEMS, RID, Replica

T = ColumnType


def install_on(create: str, table: Table) -> sqlite3.Connection:
    """A database with one table, made a replica."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(create)
    install(connection, RID, [table])
    return connection


def objects(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Everything in the schema."""
    return connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


def test_a_second_install_changes_nothing(replica: Replica) -> None:
    """Every start of an agent installs."""
    replica.client.execute("INSERT INTO items (id) VALUES (1)")
    before = objects(replica.client), replica.client.execute("PRAGMA schema_version").fetchone()

    install(replica.client, RID, replica.tables)

    after = objects(replica.client), replica.client.execute("PRAGMA schema_version").fetchone()
    assert after == before
    assert len(replica.changes()) == 1


def test_a_column_more_is_captured_from_then_on(replica: Replica) -> None:
    """Journal rows from before keep the columns that they had."""
    replica.client.execute("INSERT INTO items (id) VALUES (1)")
    replica.client.execute("ALTER TABLE items ADD COLUMN note TEXT")
    wider = Table("items", ITEMS.key, {**ITEMS.columns, "note": T.TEXT})

    install(replica.client, RID, [wider])
    replica.client.execute("UPDATE items SET note = 'x'")

    first, second = replica.changes()
    assert "note" not in (first.after or "")
    assert second.after == '{"id":"1","name":null,"price":null,"note":"x"}'


def test_a_table_that_is_not_configured_any_more_is_not_captured(replica: Replica) -> None:
    """Its triggers go; what they wrote stays in the journal."""
    replica.client.execute("INSERT INTO items (id) VALUES (1)")

    install(replica.client, RID, replica.tables[1:])
    replica.client.execute("INSERT INTO items (id) VALUES (2)")

    assert len(replica.changes()) == 1


def test_the_file_of_another_replica_is_refused(replica: Replica) -> None:
    """Two replicas of one rid would use the same CSNs."""
    with pytest.raises(
        StateError, match=r"replica with rid 7, not 8: check .* `slackwater agent uninstall`"
    ):
        SqliteStore.open(replica.path, 8, replica.tables)


def test_a_newer_format_is_refused(replica: Replica) -> None:
    """An old agent must not guess."""
    replica.client.execute("UPDATE _slackwater_origin SET format = 2")

    with pytest.raises(StateError, match="format 2, this agent knows 1"):
        replica.store()


def test_rows_from_before_are_told_unless_every_replica_has_them(tmp_path: Path) -> None:
    """They were never captured, so nobody would get them."""
    with closing(sqlite3.connect(tmp_path / "r.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price TEXT)")
        connection.execute("INSERT INTO items (id) VALUES (1)")

        assert install(connection, RID, [ITEMS]).to_snapshot == ["items"]
        assert snapshot.named(connection) is not None

    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price TEXT)")
        connection.execute("INSERT INTO items (id) VALUES (1)")

        install(connection, RID, [ITEMS], rows_are_shared=True)
        install(connection, RID, [ITEMS])
        assert snapshot.named(connection) is None


@pytest.mark.parametrize(
    ("create", "complaint"),
    [
        ("CREATE TABLE t (id INT, n TEXT)", "neither primary key nor unique"),
        ("CREATE TABLE t (id INT, n TEXT, UNIQUE (id, n))", "neither primary key nor unique"),
        ("CREATE TABLE t (id INT COLLATE NOCASE PRIMARY KEY, n TEXT)", "compare by BINARY"),
        (
            "CREATE TABLE t (id INT PRIMARY KEY, N TEXT)",
            "column n is named N in the database: name",
        ),
        (
            "CREATE TABLE t (ID INT PRIMARY KEY, n TEXT)",
            "column id is named ID in the database: na",
        ),
        ("CREATE TABLE t (number INT PRIMARY KEY, n TEXT)", "column id is not in the database"),
        ("CREATE TABLE other (id INT PRIMARY KEY, n TEXT)", "is not in the database"),
        ("CREATE VIEW t AS SELECT 1 AS id, 'n' AS n", "not an ordinary table"),
        (
            "CREATE TABLE t (id INT PRIMARY KEY, n DECIMAL(9, 2))",
            "declared as DECIMAL.9, 2., which does not keep every text",
        ),
        (
            "CREATE TABLE t (id INT PRIMARY KEY, n TEXT, m TEXT NOT NULL)",
            "column m is NOT NULL without a default, but not replicated",
        ),
        (
            "CREATE TABLE t (id INT PRIMARY KEY, n TEXT AS (id || 'x'))",
            "column n is generated",
        ),
    ],
)
def test_a_table_that_could_not_be_replicated_is_refused(create: str, complaint: str) -> None:
    """At the start, with what to do; not row by row later."""
    table = Table("t", ("id",), {"id": T.INT64, "n": T.TEXT})

    with pytest.raises(ConfigError, match=complaint):
        install_on(create, table)


def test_every_complaint_is_made_at_once() -> None:
    """Each with what to do; one a start would take as many starts as there are."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (id INT, n NUMERIC, s TEXT, m TEXT NOT NULL)")
    connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, n INT DEFAULT 'none')")
    connection.execute("INSERT INTO u VALUES (1, 1)")
    tables = [
        Table("t", ("id", "gone"), {"id": T.INT64, "n": T.TEXT, "s": T.BOOL, "gone": T.TEXT}),
        Table("u", ("id",), {"id": T.INT64, "n": T.INT32}),
        Table("v", ("id",), {"id": T.INT64}),
    ]
    before = objects(connection)

    with closing(connection):
        with pytest.raises(ConfigError) as refused:
            install(connection, RID, tables)
        assert objects(connection) == before

    first, *lines = str(refused.value).splitlines()
    assert first == "the database cannot be replicated for 6 reasons:"
    expected = [
        "table t: column gone is not in the database: add it there first",
        "table t: column n is declared as NUMERIC, .*: declare it as TEXT, or configure it as",
        "table t: column s is declared as TEXT, which does not keep every bool .0 or 1.: declare",
        "table t: column m is NOT NULL without a default, .*; give it a default",
        "table u: column n has a default that cannot be carried: the text 'none' is no int32",
        "table v is not in the database: create it there first",
    ]
    found = zip(expected, lines, strict=True)
    assert all(re.match(f"  - {claim}", line) for claim, line in found)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("NUMERIC(10,2) DEFAULT 0.00", T.DECIMAL),
        ("TEXT DEFAULT '0.00'", T.DECIMAL),
        ("DATETIME DEFAULT CURRENT_TIMESTAMP", T.TIMESTAMP),
        ("TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))", T.TIMESTAMP),
        ("BOOLEAN DEFAULT TRUE", T.BOOL),
        ("TEXT DEFAULT active", T.TEXT),
        ("INTEGER DEFAULT (strftime('%s', 'now'))", T.INT64),
        ("REAL DEFAULT -1e-300", T.FLOAT64),
        ("BLOB DEFAULT x'00ff'", T.BYTES),
    ],
)
def test_ordinary_columns_with_defaults_are_captured(column: str, kind: T) -> None:
    """A statement that leaves the column out gets what the schema says, and it is replicated."""
    table = Table("t", ("id",), {"id": T.INT64, "c": kind})
    connection = install_on(f"CREATE TABLE t (id INTEGER PRIMARY KEY, c {column})", table)

    with closing(connection):
        connection.execute("INSERT INTO t (id) VALUES (1)")
        (entry,) = journal.unpublished(connection, RID, 10, 10**6)
        assert entry.faults == ()


@pytest.mark.parametrize(
    ("column", "kind", "what"),
    [
        ("TEXT DEFAULT CURRENT_TIME", T.TIMESTAMP, "is no timestamp: .* or configure it as text"),
        ("NUMERIC DEFAULT (unixepoch())", T.TIMESTAMP, "or configure it as int64"),
        ("INTEGER DEFAULT (unixepoch())", T.TIMESTAMP, "or configure it as .* int64"),
        ("INTEGER DEFAULT 3000000000", T.INT32, "is no int32: .* or configure it as int64"),
        ("BOOLEAN DEFAULT 'yes'", T.BOOL, "the text 'yes' is no bool: write 0 or 1"),
        ("TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (id, c)", T.TIMESTAMP, "canonical form"),
    ],
)
def test_a_default_that_cannot_be_carried_is_refused_with_what_to_do(
    column: str, kind: T, what: str
) -> None:
    """Otherwise every statement that leaves the column out would not be replicated."""
    key = ("id", "c") if "UNIQUE" in column else ("id",)

    with pytest.raises(ConfigError, match=what):
        install_on(
            f"CREATE TABLE t (id INTEGER PRIMARY KEY, c {column})",
            Table("t", key, {"id": T.INT64, "c": kind}),
        )


def test_a_column_that_is_not_configured_is_warned_of() -> None:
    """It is not replicated, which nobody should find out by comparing files."""
    create = "CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT, note TEXT, low TEXT AS (lower(n)))"

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(create)
        found = inspect(connection, [Table("t", ("id",), {"id": T.INT64, "n": T.TEXT})])

    (warning,) = found.warnings
    assert warning.startswith("table t: column note is not configured: its values stay in this")


def test_a_new_column_is_warned_of_while_the_agent_runs(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """Once; what was configured is captured as before."""
    with closing(replica.store()) as store:
        caplog.clear()
        replica.client.execute("ALTER TABLE items ADD COLUMN note TEXT")
        store.check_schema()
        store.check_schema()
        replica.client.execute("CREATE TABLE other (n)")
        store.check_schema()

    (warning,) = caplog.messages
    assert warning.startswith("table items: column note is not configured")
    replica.client.execute("INSERT INTO items (id, note) VALUES (1, 'x')")
    assert len(replica.changes()) == 1


def test_a_hello_names_the_columns_that_are_not_replicated(replica: Replica) -> None:
    """The hub has no other way to know what stays in one database."""
    with closing(replica.store()) as store:
        assert store.start_session("s1", None, lost=False).unreplicated is None
        replica.client.execute("ALTER TABLE items ADD COLUMN note TEXT")
        store.check_schema()

        hello = store.start_session("s2", None, lost=False)

    assert hello.unreplicated == ("items.note",)
    assert wire.decode(wire.encode("s2", hello)) == ("s2", hello)


@pytest.mark.parametrize(
    ("statements", "complaint"),
    [
        ("ALTER TABLE items RENAME TO things", "table items is not in the database"),
        ("DROP TABLE items", "table items is not in the database"),
        (
            "DROP TABLE items; CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price TEXT)",
            "table items: it has lost its triggers",
        ),
        (
            "CREATE TRIGGER mine AFTER INSERT ON items BEGIN UPDATE items SET name = 'x'; END",
            "trigger mine on table items writes the replicated table items",
        ),
    ],
)
def test_a_schema_that_no_longer_fits_ends_the_agent(
    replica: Replica, statements: str, complaint: str
) -> None:
    """What it would go on to replicate is not what the configuration says."""
    with closing(replica.store()) as store:
        replica.client.executescript(statements)

        with pytest.raises(ConfigError, match=complaint):
            store.check_schema()


LOST = [
    *(f"_slackwater_{one}_items" for one in ("before_insert", "after_insert", "before_update")),
    *(f"_slackwater_{one}_items" for one in ("after_update", "after_delete")),
    *(f"_slackwater_capture_{one}" for one in ("begin", "change", "commit")),
]


@pytest.mark.parametrize("name", LOST)
def test_one_trigger_that_is_lost_ends_the_agent(replica: Replica, name: str) -> None:
    """A write that it would have captured is nowhere, and a new trigger would hide that."""
    with closing(replica.store()) as store:
        replica.client.execute(f"DROP TRIGGER {name}")
        replica.client.execute("INSERT INTO items (id, name) VALUES (1, 'lost?')")

        with pytest.raises(ConfigError, match=f"items: it has lost its trigger {name}, because it"):
            store.check_schema()
    with pytest.raises(ConfigError, match="--rows-are-shared, then run `slackwater resync"):
        replica.store()

    assert name not in dict(objects(replica.client))


def test_several_triggers_that_are_lost_are_named_once(replica: Replica) -> None:
    """Other tables still have theirs."""
    replica.client.executescript(f"DROP TRIGGER {LOST[1]}; DROP TRIGGER {LOST[3]}")

    with pytest.raises(ConfigError, match=f"^table items: .* triggers {LOST[1]}, {LOST[3]}, bec"):
        replica.store()

    SqliteStore.open(replica.path, RID, replica.tables, rows_are_shared=True).close()
    assert {LOST[1], LOST[3]} <= dict(objects(replica.client)).keys()


def test_a_look_between_two_transactions_names_an_own_table_that_is_gone(replica: Replica) -> None:
    """It may be the first to find out, and SQLite says only that there is no such table."""
    with closing(replica.store()) as store:
        replica.client.execute("DROP TABLE _slackwater_journal")

        with pytest.raises(
            StateError, match=r"own table _slackwater_journal was dropped: .* reinit"
        ):
            store.backlog()


@pytest.mark.parametrize("name", NEEDED_TABLES)
def test_a_table_of_the_agents_that_is_dropped_is_named_with_what_to_do(
    replica: Replica, name: str, tmp_path: Path
) -> None:
    """SQLite says only that there is no such table; an empty one would hide what is lost."""
    with closing(replica.store()) as store:
        replica.client.execute(f"DROP TABLE {name}")
        said = f"own table {name} was dropped: .* `slackwater agent uninstall"

        with pytest.raises(StateError, match=said):
            store.check_schema()
        with pytest.raises(StateError, match=said):
            store.unpublished(1, 1)
    with pytest.raises(ConfigError, match=said):
        replica.store()
    with pytest.raises(ConfigError, match=said):
        SqliteStore.open(replica.path, RID, replica.tables, rows_are_shared=True)

    found = check_database(replica.path, replica.tables)
    assert name in found.complaints[0]
    assert not found.is_good
    assert saved_rows.export(replica.path, tmp_path / "saved") == 0
    replica.client.close()
    assert uninstall(replica.path, discards_unpublished=True)
    SqliteStore.open(replica.path, RID, replica.tables).close()


def test_another_table_of_the_agents_is_made_again_and_named(
    replica: Replica, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent can go on without what it held."""
    replica.client.execute("DROP TABLE _slackwater_saved")

    replica.store().close()

    assert any(
        "created _slackwater_saved, which somebody dropped" in one for one in caplog.messages
    )


def test_a_new_unique_index_costs_none_of_the_agents_own(replica: Replica) -> None:
    """They go with the table of replaced rows, which gets another column."""
    replica.client.execute("CREATE UNIQUE INDEX prices ON items (price)")
    install(replica.client, RID, replica.tables)
    before = objects(replica.client)

    install(replica.client, RID, replica.tables)

    assert objects(replica.client) == before


def test_a_new_unique_index_is_captured_by_while_the_agent_runs(replica: Replica) -> None:
    """REPLACE deletes by it from now on."""
    replica.client.executemany("INSERT INTO items VALUES (?, NULL, '5')", [(1,), (2,)])
    with closing(replica.store()) as store:
        replica.client.execute("UPDATE items SET price = id")
        replica.client.execute("CREATE UNIQUE INDEX one ON items (price)")
        store.check_schema()

    replica.client.execute("REPLACE INTO items VALUES (3, NULL, '1')")
    assert [change.key for change in replica.changes()[-2:]] == ['{"id":"1"}', '{"id":"3"}']


@pytest.mark.parametrize(
    "create",
    [
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT)",
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, n)",
        "CREATE TABLE t (id BIGINT UNIQUE, n VARCHAR)",
        "CREATE TABLE t (id INT PRIMARY KEY, n TEXT) WITHOUT ROWID",
        "CREATE TABLE t (id INT PRIMARY KEY, n TEXT) STRICT",
        "CREATE TABLE t (x INTEGER PRIMARY KEY, id INT UNIQUE, n TEXT, m INT NOT NULL DEFAULT 1)",
        "CREATE TABLE T (id INT PRIMARY KEY, n TEXT UNIQUE COLLATE NOCASE)",
        "CREATE TABLE t (id INT PRIMARY KEY, n TEXT, low TEXT AS (lower(n)) UNIQUE)",
    ],
)
def test_tables_of_many_shapes_are_captured(create: str) -> None:
    """Also where REPLACE deletes by a key that is not replicated, or by a collation."""
    table = Table("t", ("id",), {"id": T.INT64, "n": T.TEXT})

    with closing(install_on(create, table)) as connection:
        connection.execute("INSERT INTO t (id, n) VALUES (1, 'a')")
        connection.execute("REPLACE INTO t (id, n) VALUES (2, 'A'), (2, 'b')")
        rows = connection.execute("SELECT id FROM t ORDER BY id").fetchall()
        journaled = connection.execute(
            "SELECT key, op FROM _slackwater_journal WHERE kind = 'change' ORDER BY id"
        ).fetchall()

    held = {key for key, op in journaled if op != "delete"} - {
        key for key, op in journaled if op == "delete"
    }
    assert held == {f'{{"id":"{id_}"}}' for (id_,) in rows}


@pytest.mark.parametrize(
    ("key", "index", "complaint"),
    [
        ("PRIMARY KEY", "low ON t (lower(n))", "index low is on an expression"),
        ("", "some ON t (id) WHERE id > 0", "neither primary key nor unique"),
    ],
    ids=["an expression", "a key of some rows"],
)
def test_a_unique_index_that_does_not_do_is_refused(key: str, index: str, complaint: str) -> None:
    """REPLACE could delete rows by it that no trigger sees; two rows could have one key."""
    table = Table("t", ("id",), {"id": T.INT64, "n": T.TEXT})
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE t (id INT {key}, n TEXT)")
    connection.execute(f"CREATE UNIQUE INDEX {index}")

    with closing(connection), pytest.raises(ConfigError, match=complaint):
        install(connection, RID, [table])


@pytest.mark.parametrize(
    "body",
    [
        "UPDATE items SET price = '1' WHERE id = NEW.id",
        "UPDATE OR IGNORE [items] SET price = '1'",
        'SELECT 1; INSERT INTO audit VALUES (1); DELETE FROM "Items"',
        "REPLACE INTO items VALUES (1, 'x', NULL)",
    ],
)
def test_a_trigger_that_would_change_applied_rows_is_refused_without_its_guard(
    replica: Replica, body: str
) -> None:
    """What it wrote at the origin comes by itself; written again here, replicas would differ."""
    replica.client.execute("CREATE TABLE audit (id)")
    create = "CREATE TRIGGER mine AFTER UPDATE ON items {} BEGIN {}; END"

    replica.client.execute(create.format("", body))
    with pytest.raises(ConfigError, match=r"trigger mine on table items writes .* items"):
        replica.store()

    replica.client.execute("DROP TRIGGER mine")
    replica.client.execute(create.format(GUARD, body))
    replica.store().close()


def test_a_trigger_that_writes_other_tables_is_the_users_own_business(replica: Replica) -> None:
    """A search index or an audit follows applied rows too."""
    replica.client.execute("CREATE TABLE items_audit (id)")
    replica.client.execute(
        "CREATE TRIGGER mine AFTER UPDATE OF name ON items BEGIN"
        " INSERT INTO items_audit SELECT id FROM items; END"
    )

    replica.store().close()


@pytest.mark.parametrize("name", ["_slackwater_mine", "sqlite_mine"])
def test_names_that_are_not_the_users_are_refused(name: str) -> None:
    """The agent's own tables are not replicated."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        with pytest.raises(ConfigError, match="names with this prefix are reserved"):
            install(connection, RID, [Table(name, ("id",), {"id": T.INT64})])
        assert objects(connection) == []
