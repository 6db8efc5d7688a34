"""What a database may refuse is found in its schema, however it is written there."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.check import check_database
from connectors.sqlite.schema.constraints import constraints_of
from connectors.sqlite.store import SqliteStore
from streaming.core.model.table import ColumnType, Table

KEYED_BY_ID = Table("t", ("id",), {"id": ColumnType.INT64, "n": ColumnType.TEXT})


def found(*statements: str, table: Table = KEYED_BY_ID) -> list[tuple[str, str]]:
    """(kind, text) of the constraints of table t after these statements."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        return [(one.kind.value, one.text) for one in constraints_of(connection, table)]


@pytest.mark.parametrize(
    ("create", "expected"),
    [
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT NOT NULL)", []),
        ("CREATE TABLE t (id TEXT PRIMARY KEY, n TEXT) WITHOUT ROWID", []),
        ("CREATE TABLE t (id INT UNIQUE, n TEXT)", []),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT UNIQUE)", [("unique", "UNIQUE (n)")]),
        (
            "CREATE TABLE t (x INTEGER PRIMARY KEY, id INT UNIQUE, n TEXT)",
            [("unique", "PRIMARY KEY (x)")],
        ),
        (
            "CREATE TABLE t (id INT PRIMARY KEY, n TEXT CHECK(n <> ')' AND length(n) < 5))",
            [("check", "CHECK (n <> ')' AND length(n) < 5)")],
        ),
        (
            'CREATE TABLE "t" (id INT UNIQUE, "check", -- check (x)\n n TEXT CHECK /**/ (n>(1)))',
            [("check", "CHECK (n>(1))")],
        ),
        (
            "CREATE TABLE t (id INT UNIQUE, n TEXT CHECK (n > 1 -- (not 1\n AND n < 9/* or so */))",
            [("check", "CHECK (n > 1   AND n < 9 )")],
        ),
        (
            "CREATE TABLE t (id INT UNIQUE, n REFERENCES a, FOREIGN KEY (n,id) REFERENCES b (x,y))",
            [
                ("foreign_key", "FOREIGN KEY (n, id) REFERENCES b (x, y)"),
                ("foreign_key", "FOREIGN KEY (n) REFERENCES a"),
            ],
        ),
    ],
)
def test_constraints_are_read_from_the_schema(create: str, expected: list[object]) -> None:
    """The key itself is none: rows are replicated by it."""
    assert found(create) == expected


def test_unique_indexes_made_later_count() -> None:
    """A partial one and one on an expression too."""
    statements = (
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT)",
        "CREATE UNIQUE INDEX low ON t (lower(n))",
        "CREATE UNIQUE INDEX part ON t (n) WHERE id > 5",
        "CREATE INDEX plain ON t (n)",
    )

    assert {text for _, text in found(*statements)} == {
        "UNIQUE (an expression)",
        "UNIQUE (n) WHERE ...",
    }


def test_the_agent_names_the_constraints_of_a_table_in_a_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At every start, and not again while nothing changes; what each means, `agent check` says.

    The key is none. Three lines for each would bury what the agent says next.
    """
    with closing(sqlite3.connect(tmp_path / "r.db")) as client:
        client.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT UNIQUE CHECK (n <> '') REFERENCES t)"
        )

    store = SqliteStore.open(tmp_path / "r.db", 7, [KEYED_BY_ID])
    store.check_schema()
    store.close()

    (said,) = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert said.startswith("table t: UNIQUE (n), CHECK (n <> ''), FOREIGN KEY (n) REFERENCES t: ")
    assert "`slackwater agent check`" in said
    unique, check, foreign = check_database(tmp_path / "r.db", [KEYED_BY_ID]).warnings
    assert unique.startswith("table t: UNIQUE (n): two replicas may each accept a row")
    assert check.startswith("table t: CHECK (n <> ''): a database without it may accept a row")
    assert foreign.startswith("table t: FOREIGN KEY (n) REFERENCES t: the agent does not check it")
