"""A trigger at a receiver that ignores a row makes it different, and everybody says so.

SQLite's alone: PostgreSQL fires no trigger of a user for what its agent applies.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.e2e.test_refused_rows import insert, is_level, lacking, refused, wait_for_rows
from tests.harness.hub_process import wait_until
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import agents, create, execute


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas; `b` has triggers that let no row of a kind come or go."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        for name in "abc":
            create(made, name)
        for event, row in (("INSERT", "NEW"), ("DELETE", "OLD")):
            execute(
                made,
                "b",
                f"CREATE TRIGGER keep_{event} BEFORE {event} ON t WHEN {row}.v = '{event}'"
                " BEGIN SELECT RAISE(IGNORE); END",
            )
        execute(made, "b", "CREATE TABLE stat (what TEXT PRIMARY KEY, k TEXT)")
        execute(
            made,
            "b",
            "CREATE TRIGGER count AFTER INSERT ON t BEGIN"
            " INSERT OR REPLACE INTO stat VALUES ('last', NEW.k); END",
        )
        yield made


@pytest.mark.more
def test_what_a_trigger_ignores_is_listed_until_it_stands(three: Site, spark: SparkSession) -> None:
    """A missing row and one that stays; the files, `level`, `status` and the list agree."""
    with three.running(spark), agents(three, "abc"):
        for key, value in (("1", "one"), ("2", "DELETE"), ("3", "three")):
            insert(three, "a", key, value)
        kept = {"1": "one", "2": "DELETE", "3": "three"}
        wait_for_rows(three, dict.fromkeys("abc", kept))
        assert is_level(three)

        insert(three, "a", "4", "INSERT")
        execute(three, "c", "DELETE FROM t WHERE k = '2'")
        wait_until(lambda: len(refused(three)) == 2, lambda: f"two refusals: {refused(three)}")

        others = {"1": "one", "3": "three", "4": "INSERT"}
        wait_for_rows(three, {"a": others, "b": kept, "c": others})
        assert lacking(three) == {("b", '{"k":"2"}'), ("b", '{"k":"4"}')}
        assert {(row["code"], row["text"].split(" of ")[0]) for row in refused(three)} == {
            ("trigger", "the row is not there: trigger keep_INSERT"),
            ("trigger", "the row is still there: trigger keep_DELETE"),
        }
        problems = [one["what"] for one in three.slackwater("status")["problems"]]
        assert problems == ["the database of b refuses 2 rows"]

        execute(three, "b", "DROP TRIGGER keep_INSERT")
        execute(three, "b", "DROP TRIGGER keep_DELETE")
        three.slackwater("conflicts", "retry", "--all")

        wait_for_rows(three, dict.fromkeys("abc", others))
        assert is_level(three)
