"""What happens to a database's file while its agent runs: it goes on, or ends with the reason."""

import os
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from connectors.sqlite.check import check_database
from connectors.sqlite.file import exclusive
from streaming.core.model.errors import StateError
from tests.connectors.sqlite.running_agents import TIMEOUT_S, Agents, Hub, until, write
from tests.connectors.sqlite.sqlite_replica import Replica


def test_a_second_agent_of_one_database_is_refused(hub: Hub, agents: Agents) -> None:
    """Two would publish in two orders."""
    first = agents.start()
    hub.session()

    second = agents.start()

    assert second.process.wait(TIMEOUT_S) == 1
    assert "another agent has" in second.log()
    assert first.process.poll() is None
    until(lambda: "ready: what is written to " in first.log())


@pytest.mark.parametrize(
    ("link", "says"), [(os.symlink, "another agent has"), (os.link, "has 2 names (hard links)")]
)
def test_a_second_agent_by_another_name_is_refused(
    tmp_path: Path, link: Callable[[Path, Path], None], says: str
) -> None:
    """SQLite follows a symbolic link; by a hard link each would write to a log of its own."""
    database, other = tmp_path / "r.db", tmp_path / "other.db"
    database.touch()

    with exclusive(database):
        link(database, other)
        with pytest.raises(StateError, match=re.escape(says)), exclusive(other):
            pass
    found = check_database(other, []).complaints

    assert [says in one for one in found] == ([] if link is os.symlink else [True])


def test_a_wrong_path_is_said_and_leaves_no_file(tmp_path: Path) -> None:
    """SQLite would make an empty database, and the agent would replicate nothing."""
    wrong = tmp_path / "wrong.db"

    with pytest.raises(StateError, match=r"no database .*wrong\.db"), exclusive(wrong):
        pass

    assert list(tmp_path.iterdir()) == []


def delete(path: Path, _: Path) -> None:
    """As somebody who cleans up would."""
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def clean_up(path: Path, _: Path) -> None:
    """As somebody would who takes them for left over."""
    for end in ("-wal", "-shm"):
        path.with_name(f"{path.name}{end}").unlink()


def put_in_its_place(path: Path, copy: Path) -> None:
    """As a restore does that knows nothing of the agent."""
    delete(path, copy)
    copy.rename(path)


def write_over(path: Path, copy: Path) -> None:
    """As SQLite's own restore does, through any client."""
    with (
        closing(sqlite3.connect(copy)) as source,
        closing(sqlite3.connect(path, timeout=TIMEOUT_S)) as target,
    ):
        source.backup(target)


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (delete, "replica.db was deleted or moved while its agent ran: stop the applications"),
        (clean_up, "replica.db-wal was deleted or replaced while its agent ran, and what is"),
        (put_in_its_place, "replica.db was replaced while its agent ran, and nobody captures"),
        (write_over, "replica.db was replaced while its agent ran, and nobody captures"),
    ],
)
def test_a_file_that_is_replaced_while_its_agent_runs_ends_it(
    replica: Replica,
    hub: Hub,
    agents: Agents,
    tmp_path: Path,
    happens: Callable[[Path, Path], None],
    said: str,
) -> None:
    """What is written to the new file would be captured by nobody, and nobody would say so."""
    agent = agents.start()
    hub.session()
    write(replica, 1, 1)
    until(hub.changes)
    copy = tmp_path / "copy"
    with closing(sqlite3.connect(copy)) as target:
        replica.client.backup(target)
    write(replica, 2, 1)
    until(lambda: len(hub.changes()) == 2)
    replica.client.close()

    happens(replica.path, copy)

    assert agent.process.wait(TIMEOUT_S) == 1
    (last,) = agent.log().splitlines()[-1:]
    assert last.startswith("agent: ")
    assert said in last


def test_a_schema_that_is_changed_while_the_agent_runs_is_seen(
    replica: Replica, hub: Hub, agents: Agents
) -> None:
    """A new column is warned of, and a configured one that is gone: the agent goes on."""
    agent = agents.start()
    hub.session()

    replica.client.execute("ALTER TABLE items ADD COLUMN note TEXT")
    until(lambda: "column note is not configured: its values stay" in agent.log())
    replica.client.execute("ALTER TABLE items RENAME COLUMN price TO cost")

    until(lambda: "column price is configured, and the table has none: add it" in agent.log())
    assert agent.process.poll() is None
