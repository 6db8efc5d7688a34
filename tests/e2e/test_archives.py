"""A replica that is sent no deletes: it keeps what others delete, and is level all the same."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.databases import kind_of, parse_dsn
from connectors.kafka.embedded.broker import Broker
from tests.harness.agents_of_kinds import agents, create, execute, place, rows
from tests.harness.site import Site, site

ARCHIVE = 'send = ["insert", "update"]'


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with two replicas; b is an archive, perhaps on a server."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        create(made, "a")
        create(made, "b", server=server)
        sends(made, ARCHIVE)
        yield made


def sends(at: Site, send: str) -> None:
    """Give the agreement of b this line."""
    text = at.file.read_text()
    before = text[: text.rindex("[[agreements]]")]
    at.file.write_text(before + f'[[agreements]]\nname = "b"\nconsumer = "b"\n{send}\n')


def saved(at: Site) -> list[str]:
    """The keys of the rows that b has saved."""
    address = parse_dsn(place(at, "b"))
    return [one.key for one in kind_of(address.scheme).saved_rows(address.place)]


@pytest.mark.more
def test_an_archive_keeps_what_others_delete(two: Site, spark: SparkSession) -> None:
    """A copy deletes nothing there; it is level and equal, until it is none any more."""
    compared = ("compare", "hub", "b", f"--database=b={place(two, 'b')}", "--settle=0.1")
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('k', 'v'), ('l', 'w'), ('m', 'x'), ('n', 'z')")
        hub.waits_for(lambda: len(rows(two, "b")) == 4, "b has what was inserted")
        execute(two, "a", "DELETE FROM t WHERE k <> 'm'")
        execute(two, "a", "UPDATE t SET v = 'y' WHERE k = 'm'")
        kept = {"k": "v", "l": "w", "m": "y", "n": "z"}
        hub.waits_for(lambda: rows(two, "b") == kept, "b has the update and keeps the rows")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
        found = two.slackwater(*compared)
        assert (found["is_equal"], found["archive"]) == (True, "b")

        two.slackwater("resync", "b", "--full")
        execute(two, "a", "INSERT INTO t VALUES ('l', 'again')")
        kept |= {"l": "again"}
        hub.waits_for(lambda: rows(two, "b") == kept, "a copy and a row that came again")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
        execute(two, "b", "UPDATE t SET v = 'of b' WHERE k = 'k'")
        hub.waits_for(
            lambda: [one["loser"] for one in two.slackwater("conflicts", "list")] == ["b"],
            "b had not seen the delete",
        )
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")
        assert rows(two, "a") == {"l": "again", "m": "y"}
        assert rows(two, "b") == kept | {"k": "of b"}
        assert two.slackwater(*compared)["is_equal"]

    sends(two, "")
    with two.running(spark) as hub, agents(two, "ab"):
        hub.waits_for(lambda: rows(two, "b") == rows(two, "a"), "b is no archive any more")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level again")
        assert two.slackwater(*compared)["is_equal"]
        assert '{"k":"n"}' in saved(two)
