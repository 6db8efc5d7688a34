"""A replica that is sent some columns only: what it lacks, what it writes, and a full copy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.agents_of_kinds import agents, create, execute, place, rows, select
from tests.harness.site import Site, site

WHOLE = "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT, s TEXT)"
EARLY = "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT, s TEXT NOT NULL DEFAULT 'nobody')"
SHORT = "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT)"


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with two replicas; b is not sent s, nor rows where s is 'hidden'."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        text = made.file.read_text().replace('v = "text" }', 'v = "text", s = "text" }')
        filters = 'columns.t = ["k", "v"]\nrows.t = "s IS NULL OR s <> \'hidden\'"\n'
        made.file.write_text(text.replace('consumer = "b"\n', f'consumer = "b"\n{filters}'))
        create(made, "a", WHOLE)
        if server is None:
            create(made, "b", EARLY)
        else:
            create(made, "b", SHORT, server=server)
        yield made


def whole(at: Site) -> dict[str, tuple[str, str]]:
    """What the table holds at a."""
    return {k: (v, s) for k, v, s in select(at, "a", "SELECT k, v, s FROM t")}


@pytest.mark.more
def test_a_replica_has_the_columns_that_it_is_sent(two: Site, spark: SparkSession) -> None:
    """Its own writes keep what it does not see, also where it has a default for it."""
    compared = ("compare", "hub", "b", f"--database=b={place(two, 'b')}", "--settle=0.1")
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('k', 'v', 'secret'), ('l', 'w', 'hidden')")
        hub.waits_for(lambda: rows(two, "b") == {"k": "v"}, "b has what it is sent")
        execute(two, "b", "UPDATE t SET v = 'of b' WHERE k = 'k'")
        execute(two, "b", "INSERT INTO t (k, v) VALUES ('m', 'new')")
        expected = {"k": ("of b", "secret"), "l": ("w", "hidden"), "m": ("new", None)}
        hub.waits_for(lambda: whole(two) == expected, "a keeps what b does not see")
        execute(two, "a", "UPDATE t SET s = 'other' WHERE k = 'k'")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
        execute(two, "a", "UPDATE t SET s = 'hidden' WHERE k = 'm'")
        hub.waits_for(lambda: rows(two, "b") == {"k": "of b"}, "a row leaves by what b lacks")
        two.slackwater("resync", "b", "--full")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level again")

        assert rows(two, "b") == {"k": "of b"}
        assert two.slackwater(*compared)["is_equal"]
        assert two.slackwater("schema")["is_good"]
