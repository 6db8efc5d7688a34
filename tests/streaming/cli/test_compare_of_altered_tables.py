"""`slackwater compare` while a database lacks a column, and once it has it."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from checkpoints.tables import TableName
from connectors.sqlite.install.install import install
from streaming.config.sources.load import load
from streaming.core.model.table import Table
from tests.checkpoints.written_state import WrittenState, ruv
from tests.harness.builders import csn
from tests.streaming.cli.conftest import Slackwater

WITHOUT = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)"
ADDED = "ALTER TABLE t ADD COLUMN colour TEXT"
LACKING = {2: frozenset({"t.colour"})}


@pytest.fixture
def config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replicas a and b with a table, of which `colour` is a column that came later."""
    path = tmp_path / "hub.toml"
    path.write_text(
        """
        kafka.bootstrap_servers = "localhost:9092"
        hub.name = "centre"
        replicas = [{ name = "a", rid = 1 }, { name = "b", rid = 2 }]
        agreements = [{ name = "to-a", consumer = "a" }, { name = "to-b", consumer = "b" }]

        [[tables]]
        name = "t"
        key = ["id"]
        columns = { id = "int64", name = "text", colour = "text" }
        """,
        encoding="utf-8",
    )
    monkeypatch.setenv("SLACKWATER_CONFIG", str(path))
    return path


def database(folder: Path, rid: int, statements: Sequence[str], columns: str) -> Path:
    """The file of an attached replica whose table came about so, and has these columns."""
    path, table = folder / f"{rid}.db", load(folder / "hub.toml").table_map()["t"]
    there = {name: table.columns[name] for name in columns.split()}
    with closing(sqlite3.connect(path)) as client:
        for statement in statements:
            client.execute(statement)
        client.commit()
        install(client, rid, [Table(table.name, table.key, there)])
    return path


def execute(path: Path, *statements: str) -> None:
    """Run statements as somebody who sees the table only."""
    with closing(sqlite3.connect(path)) as client:
        for statement in statements:
            client.execute(statement)
        client.commit()


def hub_row(state: WrittenState, image: str) -> None:
    """The row of the hub, as its changelog has it."""
    row = {"table": "t", "key": '{"id":"1"}', "image": image, "op": "insert"}
    entry = {"batch": 1, "hub_epoch": 1, "place": 0, "kind": "change"}
    change = {**row, **entry, "rid": 1, "csn": csn(1, 1), "verdict": "accepted"}
    state.append(TableName.CHANGELOG, change)
    state.commit(1, 1, ruv(r1=1), lacking=LACKING)


@pytest.mark.parametrize("first", ["a", "hub"])
def test_a_column_is_compared_once_the_database_has_it(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path, first: str
) -> None:
    """Until then its other columns are, and it is named; with the hub as with another replica."""
    row = "INSERT INTO t (id, name) VALUES (1, 'n')"
    red = "UPDATE t SET colour = 'red'"
    a = database(tmp_path, 1, (WITHOUT, ADDED, row, red), "id name colour")
    b = database(tmp_path, 2, (WITHOUT, row), "id name")
    hub_row(state, '{"id":"1","name":"n","colour":"red"}')
    sides = first, "b", "--database", f"a={a}", "--database", f"b={b}", "--settle", "0"

    lacks = slackwater("compare", *sides)
    facts = slackwater("compare", *sides, "--json").facts
    execute(b, ADDED)
    unsaid = slackwater("compare", *sides)
    state.commit(2, 1, ruv(r1=1))
    has = slackwater("compare", *sides, "--json")
    execute(b, red)
    equal = slackwater("compare", *sides)

    assert (lacks.code, unsaid.code, has.code, equal.code) == (0, 0, 1, 0), lacks.err + equal.err
    assert facts["lacking"] == ["t.colour"]
    assert "columns that are not compared" in lacks.out
    assert "columns that are not compared" in unsaid.out
    assert "columns that are not compared" not in equal.out
    assert [(one["key"], one["columns"]) for one in has.facts["rows"]] == [
        ('{"id":"1"}', ["colour"])
    ]


def test_a_round_compares_a_column_once_the_database_has_it(
    slackwater: Slackwater, state: WrittenState, tmp_path: Path
) -> None:
    """A round that failed over a column would be a problem of its own for as long."""
    row = "INSERT INTO t (id, name) VALUES (1, 'n')"
    b = database(tmp_path, 2, (WITHOUT, row), "id name")
    hub_row(state, '{"id":"1","name":"n","colour":"red"}')
    rounds = ("compare", "--continuous", "--settle", "0", "--rounds", "1", "--database", f"b={b}")

    lacks = slackwater(*rounds)
    execute(b, ADDED)
    state.commit(2, 1, ruv(r1=1))
    has = slackwater(*rounds)

    assert (lacks.code, has.code) == (0, 1), lacks.err + has.err
    assert lacks.out.startswith("b: 1 row compared, 0 differ")
    assert has.out.startswith("b: 1 row compared, 1 differ")
