"""A site that is given up for good, as docs/recovery.md says it, step by step."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from connectors.sqlite.install.install import install
from connectors.sqlite.install.uninstall import uninstall
from tests.e2e.test_retired import judged, states, without, write
from tests.harness import verdict
from tests.harness.site import Site, site_with_sessions


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas, all of which have sent a hello."""
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        yield made


def test_a_site_is_removed_and_nothing_of_it_is_missing(
    three: Site, spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    """Its last writes are at the others, its file is an ordinary one, and its topics are gone."""
    a, b, c = three.replicas.values()
    last = write(a, "t", "last")
    for _ in range(2):
        three.run_available(spark)
        for replica in (a, b, c):
            replica.catch_up()
    three.run_available(spark)

    said = three.slackwater("retire", "a")
    assert (said["unread"], said["open_changes"], said["lacking"]) == (0, 0, {})
    three.slackwater("retire", "a", "--yes")
    three.run_available(spark)

    database = tmp_path / "a.db"
    with closing(sqlite3.connect(database, isolation_level=None)) as client:
        client.execute("CREATE TABLE t (k TEXT PRIMARY KEY NOT NULL, v TEXT)")
        install(client, 1, [three.config().table_map()["t"]])
    assert uninstall(database)

    without(three, "a")
    assert [one["name"] for one in three.slackwater("config", "check")["replicas"]] == ["b", "c"]
    three.run_available(spark)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    admin.delete_topics([a.changes, a.updates])
    admin.close()

    later = write(b, "t", "later")
    three.run_available(spark)
    c.catch_up()
    three.run_available(spark)
    assert {last.csn, later.csn} <= judged(three)
    assert b.rows == c.rows == verdict.rows_of_changelog(three)
    assert states(three, "replicas") == {"b": "live", "c": "live", "a": "retired: for good"}
    assert not [one for one in three.slackwater("status")["problems"] if "a " in one["what"]]
    with closing(sqlite3.connect(database)) as client:
        left = client.execute("SELECT name FROM sqlite_schema WHERE name LIKE '%slackwater%'")
        assert left.fetchall() == []
