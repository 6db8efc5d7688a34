"""A running hub takes over configurations that `config apply` stores, without a restart."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from streaming.cli.main import main
from tests.harness.commits import last_commit
from tests.harness.hub_process import HubProcess
from tests.harness.replays import check_audit_is_sound, check_replay_is_equal
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agents, create, database, execute

pytestmark = pytest.mark.more

TABLES = ("t", "u")


def rows(at: Site, name: str) -> dict[str, dict[str, str]]:
    """Table -> what a replica holds."""
    with closing(sqlite3.connect(database(at, name), timeout=60)) as client:
        return {one: dict(client.execute(f"SELECT k, v FROM {one}")) for one in TABLES}


def rewrite(at: Site, old: str, new: str) -> None:
    """Put a text in place of another in the configuration."""
    text = at.file.read_text()
    assert old in text
    at.file.write_text(text.replace(old, new))


def apply(at: Site) -> None:
    """Have what the file says now taken over."""
    assert main(["config", "apply", str(at.file), "--yes"]) == 0


def version(at: Site) -> int:
    """The configuration by which the last batch was planned."""
    commit = last_commit(at.state)
    return commit.config_version if commit else 0


def is_taken(at: Site, hub: HubProcess, before: int) -> None:
    """Wait until a batch was planned by a later configuration than this."""
    hub.waits_for(lambda: version(at) > before, f"a version above {before} is in force")


def are_equal(at: Site, hub: HubProcess, names: str) -> None:
    """Wait until these replicas have the same rows, and level says so."""
    hub.waits_for(lambda: at.slackwater("level")["level"], "all are level")
    first, *others = (rows(at, name) for name in names)
    assert all(one == first for one in others)


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """Three databases with tables t and u, of which the hub knows a and b, and sends b only t."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc", functions={}) as made:
        tables = "".join(
            f'\n[[tables]]\nname = "{name}"\nkey = ["k"]\n'
            'columns = { k = "text", v = "text" }\nfunction = "EPOCH"\n'
            for name in TABLES
        )
        head, a, b, c = made.file.read_text().split("\n[[replicas]]")
        for name in "abc":
            create(made, name, "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT)")
            execute(made, name, "CREATE TABLE u (k TEXT NOT NULL PRIMARY KEY, v TEXT)")
        made.file.write_text("\n[[replicas]]".join([head + tables, a, b]) + 'tables = ["t"]\n')
        made.folder.joinpath("c.toml").write_text(f"\n[[replicas]]{c}")
        yield made


def test_a_running_hub_takes_over_what_is_applied(two: Site) -> None:
    """A function, a wider agreement with a kill before its copy, a limit, and a new replica."""
    with ExitStack() as ended, two.hub() as killed:
        ended.enter_context(agents(two, "ab"))
        execute(two, "a", "INSERT INTO t VALUES ('1', 'of a')")
        execute(two, "a", "INSERT INTO u VALUES ('1', 'of a'), ('2', 'of a')")
        are_in = {"t": {"1": "of a"}, "u": {}}
        killed.waits_for(lambda: rows(two, "b") == are_in, "b has t alone")
        first = version(two)
        rewrite(two, 'tables = ["t"]', 'tables = ["*"]')
        apply(two)
        killed.waits_for(lambda: "takes configuration" in killed.output, "it takes it over")
        killed.kill()
        execute(two, "b", "INSERT INTO u VALUES ('2', 'of b, who has not seen it')")
        with two.hub() as hub:
            is_taken(two, hub, first)
            are_equal(two, hub, "ab")
            assert rows(two, "b")["u"] == {"1": "of a", "2": "of a"}
            assert len(two.slackwater("conflicts", "list")) == 1
            second = version(two)
            rewrite(two, 'function = "EPOCH"', 'function = "MAX(v)"')
            rewrite(two, "trigger_ms = 20", "trigger_ms = 10")
            apply(two)
            is_taken(two, hub, second)
            third = version(two)
            two.file.write_text(two.file.read_text() + two.folder.joinpath("c.toml").read_text())
            apply(two)
            is_taken(two, hub, third)
            with agents(two, "c"):
                execute(two, "b", "UPDATE t SET v = 'by b'")
                are_equal(two, hub, "abc")
                execute(two, "c", "INSERT INTO u VALUES ('3', 'of c')")
                are_equal(two, hub, "abc")
            assert rows(two, "a") == {
                "t": {"1": "by b"},
                "u": {"1": "of a", "2": "of a", "3": "of c"},
            }
            assert hub.output.count("takes configuration") == 2
            hub.terminate()
            hub.ends_with(0)
    check_replay_is_equal(two.state)
    check_audit_is_sound(two.state)
