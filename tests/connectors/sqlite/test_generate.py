"""The tables of a configuration from a database: they load, and an agent would start with them."""

import sqlite3
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from connectors.sqlite.check import check_database
from connectors.sqlite.install.install import install
from connectors.sqlite.schema.generate import generated_tables
from streaming.config.config import Config
from streaming.core.model.errors import StateError
from tests.connectors.sqlite.test_check_database import SCHEMA


def database(path: Path, ddl: str) -> Path:
    """A file with this schema and these rows."""
    with closing(sqlite3.connect(path)) as client:
        client.executescript(ddl)
    return path


def generated(path: Path) -> dict[str, dict[str, str]]:
    """Table -> its columns; the configuration is valid, and an agent would start with it."""
    text = generated_tables(path)
    found: dict[str, Any] = tomllib.loads(text)
    if not found:
        return {}
    config = Config.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "replicas": [{"name": "a", "rid": 1}],
            **found,
        }
    )
    checked = check_database(path, tuple(config.table_map().values()))
    assert checked.complaints == ()
    assert bool(checked.row_faults) == ("not replicated until they are corrected" in text)
    return {one["name"]: one["columns"] for one in found["tables"]}


DECLARED = {
    "INTEGER": "int64",
    "BIGINT": "int64",
    "TINYINT(1)": "int64",
    "BOOLEAN": "bool",
    "TEXT": "text",
    "VARCHAR(20)": "text",
    "BLOB": "bytes",
    "REAL": "float64",
    "DOUBLE PRECISION": "float64",
    "NUMERIC(10,2)": "decimal",
    "DECIMAL": "decimal",
    "DATETIME": "timestamp",
    "TIMESTAMP": "timestamp",
    "DATE": "timestamp",
    "": "text",
    "STRING": "decimal",
}


def test_the_type_is_that_of_the_declaration(tmp_path: Path) -> None:
    """And where that is a guess, a comment says why."""
    columns = ", ".join(f'"c {name}" {name}' for name in DECLARED)
    path = database(tmp_path / "a.db", f"CREATE TABLE t (id INTEGER PRIMARY KEY, {columns})")

    found = generated(path)["t"]

    assert found == {"id": "int64"} | {f"c {name}": kind for name, kind in DECLARED.items()}
    doubted = [
        line.partition('"')[2].partition('"')[0]
        for line in generated_tables(path).splitlines()
        if "  # " in line
    ]
    assert doubted == ["c DATE", "c ", "c STRING"]


@pytest.mark.parametrize(
    ("declared", "value", "kind"),
    [
        ("DATETIME", "1700000000", "int64"),
        ("DATETIME", "2460000.5", "float64"),
        ("DATETIME", "'2024-02-29 12:00'", "timestamp"),
        ("BOOLEAN", "7", "int64"),
        ("INTEGER", "1.5", "decimal"),
        ("TEXT", "x'00ff'", "bytes"),
        ("STRING", "'2024-02-29'", "timestamp"),
        ("", "5", "int64"),
        ("", "x'00'", "bytes"),
        ("", "1.5", "decimal"),
    ],
)
def test_rows_that_say_otherwise_are_believed(
    tmp_path: Path, declared: str, value: str, kind: str
) -> None:
    """What the declaration means is what the rows hold."""
    ddl = f"CREATE TABLE t (id INT PRIMARY KEY, c {declared}); INSERT INTO t VALUES (1, {value})"
    path = database(tmp_path / "a.db", ddl)

    assert generated(path)["t"]["c"] == kind


def test_rows_that_are_of_no_type_are_said(tmp_path: Path) -> None:
    """They stay as they are until somebody corrects them."""
    ddl = "CREATE TABLE t (id INT PRIMARY KEY, c INTEGER); INSERT INTO t VALUES (1, 'abc')"

    assert generated(database(tmp_path / "a.db", ddl))["t"]["c"] == "int64"


@pytest.mark.parametrize(
    ("ddl", "key"),
    [
        ("CREATE TABLE t (a TEXT PRIMARY KEY NOT NULL, b TEXT UNIQUE NOT NULL)", ["a"]),
        ("CREATE TABLE t (a INT, b INT, c TEXT, PRIMARY KEY (b, a))", ["b", "a"]),
        ("CREATE TABLE t (a TEXT COLLATE NOCASE PRIMARY KEY, b INT UNIQUE)", ["b"]),
        ("CREATE TABLE t (a TEXT UNIQUE, b TEXT NOT NULL UNIQUE)", ["b"]),
        ("CREATE TABLE t (id INTEGER PRIMARY KEY, b TEXT) STRICT", ["id"]),
        ('CREATE TABLE "my ""t" ("x ""y" TEXT PRIMARY KEY) WITHOUT ROWID', ['x "y']),
    ],
)
def test_the_key_is_what_tells_rows_apart(tmp_path: Path, ddl: str, key: list[str]) -> None:
    """By bytes, and rather what cannot be null."""
    path = database(tmp_path / "a.db", ddl)

    assert generated(path)
    assert tomllib.loads(generated_tables(path))["tables"][0]["key"] == key


WRITES_T = "CREATE TRIGGER r AFTER INSERT ON t BEGIN UPDATE t SET b = 1 WHERE a = NEW.a; END"
LEFT_OUT = {
    "no key": ("CREATE TABLE t (a, b)", "it has no key"),
    "a partial key": (
        "CREATE TABLE t (a INT); CREATE UNIQUE INDEX i ON t (a) WHERE a > 0",
        "it has no key",
    ),
    "an expression": (
        "CREATE TABLE t (a INT PRIMARY KEY, b TEXT); CREATE UNIQUE INDEX i ON t (lower(b))",
        "unique index i is on an expression",
    ),
    "a trigger": (
        f"CREATE TABLE t (a INT PRIMARY KEY, b INT); {WRITES_T}",
        "trigger r on table t writes the replicated table t",
    ),
    "virtual": ("CREATE VIRTUAL TABLE t USING fts5 (a)", "it is a virtual table"),
    "a default": (
        "CREATE TABLE t (a INT PRIMARY KEY, b INTEGER DEFAULT 'abc')",
        "column b has a default that cannot be carried",
    ),
}


@pytest.mark.parametrize(("ddl", "reason"), LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_table_that_cannot_be_replicated_is_a_comment(
    tmp_path: Path, ddl: str, reason: str
) -> None:
    """With the reason, and the others are there."""
    path = database(tmp_path / "a.db", f"{ddl}; CREATE TABLE u (id INT PRIMARY KEY)")

    assert generated(path) == {"u": {"id": "int64"}}
    (line,) = (one for one in generated_tables(path).splitlines() if one.startswith("# table t "))
    assert reason in line


def test_generated_columns_are_left_out(tmp_path: Path) -> None:
    """Each database computes them."""
    path = database(tmp_path / "a.db", "CREATE TABLE t (a INT PRIMARY KEY, b INT AS (a * 2))")

    assert generated(path) == {"t": {"a": "int64"}}
    assert "# b is left out, generated" in generated_tables(path)


def test_a_database_as_people_have_them_is_configured(tmp_path: Path) -> None:
    """The file is as it was; one that an agent works on has the same answer."""
    path = database(tmp_path / "shop.db", SCHEMA)
    before, text = path.read_bytes(), generated_tables(path)

    assert list(generated(path)) == ["account", "team"]
    assert path.read_bytes() == before
    config = tomllib.loads(text)["tables"]
    assert config[0]["columns"]["at"] == "timestamp"
    with closing(sqlite3.connect(path, isolation_level=None)) as client:
        tables = Config.model_validate(
            {
                "kafka": {"bootstrap_servers": "localhost:9092"},
                "replicas": [{"name": "a", "rid": 1}],
                "tables": config,
            }
        ).table_map()
        install(client, 1, tables.values())
    assert generated_tables(path) == text


def test_a_wrong_path_or_file_is_said(tmp_path: Path) -> None:
    """As by the check."""
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one" * 20)

    with pytest.raises(StateError, match="there is no database"):
        generated_tables(tmp_path / "none.db")
    with pytest.raises(StateError, match="cannot be read"):
        generated_tables(tmp_path / "text.db")
