"""Replicas that are sent some columns only, or masked ones: what they have, and may write."""

import hashlib
import hmac
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


KEY = "a key that is long enough"


@pytest.fixture
def three(
    tmp_path: Path,
    broker: Broker,
    topic_prefix: str,
    server: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    """A hub with three replicas.

    b is not sent s, nor rows where s is 'hidden'; c is sent v as a constant, and s as a hash.
    """
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        text = made.file.read_text().replace('v = "text" }', 'v = "text", s = "text" }')
        filters = 'columns.t = ["k", "v"]\nrows.t = "s IS NULL OR s <> \'hidden\'"\n'
        text = text.replace('consumer = "b"\n', f'consumer = "b"\n{filters}')
        masks = 'masks.t = { v = "constant:***", s = "hash" }\n'
        made.file.write_text(text.replace('consumer = "c"\n', f'consumer = "c"\n{masks}'))
        monkeypatch.setenv("SLACKWATER_MASKING__HASH_SECRET", KEY)
        create(made, "a", WHOLE)
        create(made, "c", WHOLE)
        if server is None:
            create(made, "b", EARLY)
        else:
            create(made, "b", SHORT, server=server)
        yield made


def whole(at: Site, name: str = "a") -> dict[str, tuple[str, str]]:
    """What the table holds at a, or another one."""
    return {k: (v, s) for k, v, s in select(at, name, "SELECT k, v, s FROM t")}


def masked(rows_of_a: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """The same rows as they are sent to c."""
    return {k: ("***", s and _hash(s)) for k, (_, s) in rows_of_a.items()}


def _hash(text: str) -> str:
    return hmac.new(KEY.encode(), text.encode(), hashlib.sha256).hexdigest()


def is_equal(at: Site, name: str) -> bool:
    """Whether the hub and a replica have what that is sent."""
    database = f"--database={name}={place(at, name)}"
    return bool(at.slackwater("compare", "hub", name, database, "--settle=0.1")["is_equal"])


@pytest.mark.more
def test_a_replica_has_the_columns_that_it_is_sent(three: Site, spark: SparkSession) -> None:
    """Its own writes keep what it does not see, also where it has a default for it."""
    with three.running(spark) as hub, agents(three, "abc"):
        execute(three, "a", "INSERT INTO t VALUES ('k', 'v', 'secret'), ('l', 'w', 'hidden')")
        hub.waits_for(lambda: rows(three, "b") == {"k": "v"}, "b has what it is sent")
        execute(three, "b", "UPDATE t SET v = 'of b' WHERE k = 'k'")
        execute(three, "b", "INSERT INTO t (k, v) VALUES ('m', 'new')")
        expected = {"k": ("of b", "secret"), "l": ("w", "hidden"), "m": ("new", None)}
        hub.waits_for(lambda: whole(three) == expected, "a keeps what b does not see")
        execute(three, "a", "UPDATE t SET s = 'other' WHERE k = 'k'")
        hub.waits_for(lambda: three.slackwater("level")["level"], "all are level")
        execute(three, "a", "UPDATE t SET s = 'hidden' WHERE k = 'm'")
        hub.waits_for(lambda: rows(three, "b") == {"k": "of b"}, "a row leaves by what b lacks")
        for name in "bc":
            three.slackwater("resync", name, "--full")
        hub.waits_for(lambda: three.slackwater("level")["level"], "all are level again")

        assert rows(three, "b") == {"k": "of b"}
        assert whole(three, "c") == masked(whole(three))
        assert is_equal(three, "b")
        assert is_equal(three, "c")
        assert three.slackwater("schema")["is_good"]
        execute(three, "c", "UPDATE t SET v = 'of c'")
        hub.waits_for(lambda: len(three.slackwater("quarantine", "list")) == 3, "c may not write")
        assert whole(three)["k"] == ("of b", "other")
