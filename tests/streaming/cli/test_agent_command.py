"""Claims about `agent`."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from connectors.agent.settings import AgentSettings, DatabaseAddress, parse
from connectors.sqlite.install.install import install
from connectors.sqlite.run import open_store
from streaming.core.model.table import ColumnType, Table
from tests.streaming.cli.conftest import Slackwater

pytestmark = pytest.mark.usefixtures("config_file")


def test_an_agent_is_set_up_by_the_hubs_own_configuration(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    """A second description of rids, topics and tables would one day differ from the first."""
    database = tmp_path / "a.db"

    answer = slackwater("agent", "--replica", "a", "--database", str(database), "--print")

    settings = parse(answer.out)
    assert answer.code == 0
    assert (settings.rid, str(settings.database)) == (1, f"sqlite:{database}")
    assert settings.changes_topic == "slackwater.changes.a"
    assert settings.updates_topic == "slackwater.updates.to-a"
    assert settings.tables[0].columns == {"id": ColumnType.INT64}


def test_an_unknown_replica_is_a_wrong_configuration(
    slackwater: Slackwater,
) -> None:
    """Exit code 2 tells a supervisor that starting it again will not help."""
    answer = slackwater("agent", "--replica", "z", "--database", "z.db", "--print")

    assert answer.code == 2
    assert "there is no replica 'z': use one of a, b" in answer.err


def test_a_database_is_checked_with_the_same_words_as_the_agent_is_started(
    slackwater: Slackwater, tmp_path: Path
) -> None:
    """Exit 0: an agent would start; 1: it would not, or leave rows out."""
    database = tmp_path / "a.db"
    with closing(sqlite3.connect(database)) as client, client:
        client.execute("CREATE TABLE t (id INT PRIMARY KEY, note TEXT)")
    words = ("agent", "check", "--replica", "a", "--database", str(database))

    good, facts = slackwater(*words), slackwater(*words, "--json").facts
    with closing(sqlite3.connect(database)) as client, client:
        client.execute("INSERT INTO t VALUES (1, 'x')")
    to_snapshot = slackwater(*words)
    with closing(sqlite3.connect(database)) as client, client:
        client.execute("ALTER TABLE t RENAME TO u")
    bad = slackwater(*words)

    assert (good.code, to_snapshot.code, bad.code) == (0, 0, 1)
    assert "column note is not configured" in good.out
    assert "table t" in to_snapshot.out
    assert facts["is_good"]
    assert [column["configured"] for column in facts["columns"]] == ["int64", None]
    assert "refused: table t is not in the database" in bad.out


def test_the_agent_is_removed_by_a_command(slackwater: Slackwater, tmp_path: Path) -> None:
    """A second time there is nothing to remove."""
    database = tmp_path / "a.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        install(client, 1, [Table("t", ("id",), {"id": ColumnType.INT64})])

    first = slackwater("agent", "uninstall", "--database", str(database))
    second = slackwater("agent", "uninstall", "--database", str(database))

    assert (first.code, second.code) == (0, 0)
    assert "objects removed" in first.out
    assert "holds nothing of an agent" in second.out


def test_another_replicas_file_stays_as_it_is(slackwater: Slackwater, tmp_path: Path) -> None:
    """A path that was typed wrong must not end the replica whose file it is."""
    database = tmp_path / "b.db"
    with closing(sqlite3.connect(database)) as client:
        client.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    tables = (Table("t", ("id",), {"id": ColumnType.INT64}),)
    address = DatabaseAddress("sqlite", str(database))
    with open_store(AgentSettings(address, "b", 2, "nowhere:1", "changes.b", None, tables)):
        pass
    before = database.read_bytes()

    plan = slackwater("detach", str(database), "--replica", "a", "--dry-run")
    wrong = slackwater("detach", str(database), "--replica", "a", "--yes")
    checked = slackwater("agent", "check", "--database", str(database), "--replica", "a")

    is_of = "the database is that of replica b, not of a: check the path and the name"
    assert (plan.code, wrong.code, checked.code) == (1, 1, 1)
    assert all(is_of in text for text in (plan.err, wrong.err, checked.out))
    assert database.read_bytes() == before
    good = slackwater("agent", "check", "--database", str(database), "--replica", "b")
    assert good.code == 0
    assert "objects removed" in slackwater("detach", str(database), "--replica", "b", "--yes").out


def test_an_agent_without_its_options_is_a_wrong_usage(slackwater: Slackwater) -> None:
    """Exit code 2, and what is missing."""
    answer = slackwater("agent", "--replica", "a")

    assert answer.code == 2
    assert "give --replica NAME and --database DSN" in answer.err
