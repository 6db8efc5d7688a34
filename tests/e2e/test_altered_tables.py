"""A column that is added or dropped at each replica in its own time: rows wait, and go on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from streaming.cli.main import main
from tests.harness import verdict
from tests.harness.agents_of_kinds import agents, create, execute, select
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site

WITH_C = 'columns = { k = "text", v = "text", c = "text" }'
WITHOUT_C = 'columns = { k = "text", v = "text" }'
CREATE = "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT)"
Rows = dict[str, tuple[Any, ...]]


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub that knows columns c and d of t, which none of the three has yet; b is of any kind."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        configure(made, 'columns = { k = "text", v = "text", c = "text", d = "text" }')
        for name in "ac":
            create(made, name, CREATE)
        create(made, "b", CREATE, server=server)
        yield made


def configure(at: Site, columns: str) -> None:
    """Write the columns of table t into the configuration."""
    lines = at.file.read_text().splitlines()
    at.file.write_text(
        "\n".join(columns if line.startswith("columns = {") else line for line in lines) + "\n"
    )


def held(at: Site, name: str, columns: str) -> Rows:
    """Key -> the values of a replica in these columns."""
    return {row[0]: row[1:] for row in select(at, name, f"SELECT k, {columns} FROM t")}


def all_hold(at: Site, names: str, columns: str, expected: Rows) -> None:
    """Wait until these replicas hold these rows."""
    wait_until(
        lambda: all(held(at, name, columns) == expected for name in names),
        lambda: f"{[held(at, name, columns) for name in names]} is not {expected}",
    )


def waits(at: Site) -> set[tuple[str, str, int]]:
    """Replica, column and number of rows of all that waits, as `level` and `status` say."""
    level, status = at.slackwater("level", "--wait", "1"), at.slackwater("status")
    found = {(one["replica"], one["column"], one["rows"]) for one in level["waited"]}
    shown = {(one["replica"], one["column"], one["rows"]) for one in status["waited"]}
    return found if found == shown and not (found and level["level"]) else set()


def wait_for_waits(at: Site, *expected: tuple[str, str, int]) -> None:
    """Wait until that waits, and nothing else."""
    wait_until(lambda: waits(at) == {*expected}, lambda: f"{waits(at)} is not {expected}")


def apply(at: Site, columns: str) -> None:
    """Have a running hub take these columns of table t over."""
    configure(at, columns)
    assert main(["config", "apply", str(at.file), "--yes"]) == 0


def uncarried(at: Site) -> set[tuple[str, str]]:
    """Replica and key of the rows that are listed because their column is not configured."""
    found = at.slackwater("level", "--wait", "1")["differing"]
    return {(one["replica"], one["key"]) for one in found if one["code"] == "column"}


def is_level(at: Site) -> bool:
    """Whether `level` says yes."""
    return bool(at.slackwater("level", "--wait", "30")["level"])


def test_columns_are_added_in_opposite_order(three: Site, spark: SparkSession) -> None:
    """Nobody is restarted, no command is given, and no value is lost."""
    with three.running(spark), agents(three, "abc"):
        execute(three, "a", "INSERT INTO t VALUES ('old', '0')")
        all_hold(three, "abc", "v", {"old": ("0",)})
        for name in "ac":
            execute(three, name, "ALTER TABLE t ADD COLUMN c TEXT")
        execute(three, "b", "ALTER TABLE t ADD COLUMN d TEXT NOT NULL DEFAULT 'none'")
        wait_for_waits(three, ("a", "d", 0), ("b", "c", 0), ("c", "d", 0))
        execute(three, "a", "INSERT INTO t (k, v, c) VALUES ('of-a', '1', 'red')")
        execute(three, "b", "INSERT INTO t (k, v, d) VALUES ('of-b', '1', 'large')")
        wait_for_waits(three, ("a", "d", 1), ("b", "c", 1), ("c", "d", 1))
        what = [one["what"] for one in three.slackwater("status")["problems"]]
        assert "b waits for column c of table t: 1 row" in what

        execute(three, "b", "ALTER TABLE t ADD COLUMN c TEXT")
        for name in "ac":
            execute(three, name, "ALTER TABLE t ADD COLUMN d TEXT NOT NULL DEFAULT 'none'")
        everything: Rows = {
            "old": ("0", None, "none"),
            "of-a": ("1", "red", "none"),
            "of-b": ("1", None, "large"),
        }
        all_hold(three, "abc", "v, c, d", everything)
        execute(three, "b", "UPDATE t SET c = 'blue' WHERE k = 'old'")
        all_hold(three, "abc", "v, c, d", {**everything, "old": ("0", "blue", "none")})

        assert is_level(three)
        assert three.slackwater("status")["problems"] == []


def test_a_value_in_a_new_column_that_loses_is_gone_at_its_writer(
    three: Site, spark: SparkSession
) -> None:
    """The row that stands was written without the column, and has its default everywhere."""
    configure(three, WITH_C)
    for name in "bc":
        execute(three, name, "ALTER TABLE t ADD COLUMN c TEXT DEFAULT 'none'")
    with three.running(spark):
        with agents(three, "abc"):
            execute(three, "b", "INSERT INTO t (k, v) VALUES ('new', '0')")
            execute(three, "a", "INSERT INTO t (k, v) VALUES ('old', '0')")
            all_hold(three, "bc", "v, c", {"old": ("0", "none"), "new": ("0", "none")})
        execute(three, "a", "UPDATE t SET v = 'of a' WHERE k = 'old'")
        execute(three, "b", "UPDATE t SET v = 'of b', c = 'red' WHERE k = 'old'")
        with agents(three, "ac"):
            all_hold(three, "c", "v, c", {"old": ("of a", "none"), "new": ("0", "none")})
        with agents(three, "abc"):
            all_hold(three, "bc", "v, c", {"old": ("of a", "none"), "new": ("0", "none")})
            execute(three, "a", "ALTER TABLE t ADD COLUMN c TEXT DEFAULT 'none'")
            all_hold(three, "abc", "v, c", {"old": ("of a", "none"), "new": ("0", "none")})
            assert is_level(three)
            assert "red" in str(three.slackwater("conflicts", "list"))


@pytest.mark.more
def test_a_column_is_gone_at_one_replica_and_written_at_the_others(
    three: Site, spark: SparkSession
) -> None:
    """Rows with it wait where it is gone; what is written there keeps its values elsewhere."""
    for name in "abc":
        execute(three, name, "ALTER TABLE t ADD COLUMN c TEXT")
        execute(three, name, "ALTER TABLE t ADD COLUMN d TEXT")
    with three.running(spark), agents(three, "abc"):
        execute(three, "a", "INSERT INTO t VALUES ('old', '0', 'red', 'x')")
        all_hold(three, "abc", "v, c, d", {"old": ("0", "red", "x")})
        execute(three, "b", "ALTER TABLE t RENAME COLUMN d TO gone")
        wait_for_waits(three, ("b", "d", 0))
        execute(three, "a", "INSERT INTO t VALUES ('new', '1', 'blue', 'y')")
        execute(three, "b", "UPDATE t SET v = '2' WHERE k = 'old'")
        wait_for_waits(three, ("b", "d", 1))
        all_hold(three, "ac", "v, c, d", {"old": ("2", "red", "x"), "new": ("1", "blue", "y")})


def test_the_configuration_loses_a_column_and_gets_it_back(three: Site) -> None:
    """What waited for it at a database goes on without it; what has it waits until it is back.

    Nothing but the configuration is changed, and the hub is killed over it.
    """
    configure(three, WITH_C)
    execute(three, "a", "ALTER TABLE t ADD COLUMN c TEXT")
    with agents(three, "abc"):
        with three.hub() as hub:
            hub.waits_for(lambda: "ready at" in hub.output, "it is ready")
            execute(three, "b", "INSERT INTO t VALUES ('old', '0')")
            all_hold(three, "abc", "v", {"old": ("0",)})
            execute(three, "a", "INSERT INTO t VALUES ('of-a', '1', 'red'), ('kept', '1', 'green')")
            execute(three, "a", "INSERT INTO t VALUES ('touched', '1', 'mine')")
            wait_for_waits(three, ("b", "c", 3), ("c", "c", 3))

            apply(three, WITHOUT_C)

            there = {"old": ("0",), "of-a": ("1",), "kept": ("1",), "touched": ("1",)}
            all_hold(three, "bc", "v", there)
            wait_for_waits(three)
            assert is_level(three)
            assert three.slackwater("status")["problems"] == []

            execute(three, "b", "DELETE FROM t WHERE k = 'of-a'")
            execute(three, "b", "UPDATE t SET v = '2' WHERE k = 'touched'")
            there = {"old": ("0",), "kept": ("1",), "touched": ("2",)}
            all_hold(three, "a", "v", there)
            execute(three, "a", "UPDATE t SET v = '2', c = 'blue' WHERE k = 'old'")
            execute(three, "a", "INSERT INTO t VALUES ('one', '1', 'x'), ('two', '1', 'y')")
            execute(three, "a", "UPDATE t SET v = '3' WHERE k = 'old'")
            execute(three, "b", "INSERT INTO t VALUES ('of-b', '1')")
            all_hold(three, "c", "v", {**there, "of-b": ("1",)})
            waiting = {("a", f'{{"k":"{key}"}}') for key in ("old", "one", "two")}
            wait_until(lambda: uncarried(three) == waiting, lambda: f"{uncarried(three)}")
            (problem,) = three.slackwater("status")["problems"]
            assert "a alone has 3 rows" in problem["what"]

            apply(three, WITH_C)
            hub.kill()
        for name in "bc":
            execute(three, name, "ALTER TABLE t ADD COLUMN c TEXT")
        with three.hub() as hub:
            everything: Rows = {
                "old": ("3", "blue"),
                "kept": ("1", "green"),
                "one": ("1", "x"),
                "two": ("1", "y"),
                "of-b": ("1", None),
            }
            all_hold(three, "bc", "v, c", {**everything, "touched": ("2", None)})
            all_hold(three, "a", "v, c", {**everything, "touched": ("2", "mine")})  # nobody else's
            assert is_level(three)
            assert three.slackwater("status")["problems"] == []
            assert three.slackwater("quarantine", "list") == []
            hub.terminate()
            hub.ends_with(0)
    own = [one for one in verdict.changes_of(three) if one["rid"] == three.config().hub.rid]
    assert [one["verdict"] for one in own] == ["accepted"] * 4
