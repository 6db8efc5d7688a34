"""A DELETE without WHERE and a bad UPDATE, under load: undone for everybody, good writes kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Thread

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from tests.harness.agents_of_kinds import agents, create, execute, execute_each, rows
from tests.harness.site import RunningHub, Site, site

NAMES = "abc"
SEEDS = {f"s{n:03}": f"seed {n}" for n in range(200)}
ORDER = ("--yes", "--who", "me", "--why", "a bad release")


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str, server: str | None) -> Iterator[Site]:
    """A hub with three replicas, whose databases are there and empty; b is of any kind."""
    limits = {"chunk_items": 500}
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, NAMES, limits) as made:
        create(made, "a")
        create(made, "b", server=server)
        create(made, "c")
        yield made


@contextmanager
def load(at: Site) -> Iterator[dict[str, str]]:
    """Clients of all replicas at work, until the block ends; what they have inserted so far."""
    end, written = Event(), dict[str, str]()

    def work() -> None:
        for number in count():
            if end.wait(0.05):
                return
            name, key = NAMES[number % 3], f"f{number:06}"
            execute(at, name, "INSERT INTO t VALUES (?, ?)", key, f"of {name}")
            written[key] = f"of {name}"

    client = Thread(target=work)
    client.start()
    try:
        yield written
    finally:
        end.set()
        client.join()


def epoch(at: Site) -> str:
    """The last hub epoch."""
    return str(at.slackwater("sql", "SELECT max(hub_epoch) AS n FROM hub_epochs")["rows"][0]["n"])


def are_everywhere(at: Site, hub: RunningHub, wanted: dict[str, str]) -> None:
    """Wait until every replica holds these rows, and maybe others."""
    for name in NAMES:
        hub.waits_for(partial(_holds, at, name, wanted), f"{name} has them")


def _holds(at: Site, name: str, wanted: dict[str, str]) -> bool:
    return wanted.items() <= rows(at, name).items()


@pytest.mark.more
def test_bad_statements_are_undone_and_good_writes_stay(three: Site, spark: SparkSession) -> None:
    """Somebody deletes everything, another one spoils half of it, and nobody stops working."""
    with three.running(spark) as hub, agents(three, NAMES):
        insert = "INSERT INTO t VALUES (?, ?)"
        execute_each(three, "a", insert, list(SEEDS.items()))
        are_everywhere(three, hub, SEEDS)
        with load(three) as written:
            hub.waits_for(lambda: len(written) > 20, "there is load")
            before = epoch(three)
            execute(three, "a", "DELETE FROM t")
            hub.waits_for(lambda: "s000" not in rows(three, "c"), "everything is gone at c")
            execute(three, "c", insert, "s000", "written since")
            hub.waits_for(lambda: "s000" in rows(three, "b"), "b has what c wrote")

            deleted = ("undo", "--table=t", "--to", before, "--by=a", "--op=delete")
            planned = three.slackwater(*deleted)
            assert planned["insert"] >= len(SEEDS) - 1
            assert [one["key"] for one in planned["first_kept"]] == ['{"k":"s000"}']
            three.slackwater(*deleted, *ORDER)
            are_everywhere(three, hub, SEEDS | {"s000": "written since"})

            before = epoch(three)
            execute(three, "b", "UPDATE t SET v = 'spoilt' WHERE k LIKE ?", "s%")
            hub.waits_for(lambda: rows(three, "c")["s002"] == "spoilt", "c has what b spoilt")
            execute(three, "c", "UPDATE t SET v = 'mended' WHERE k = 's001'")
            hub.waits_for(lambda: rows(three, "b")["s001"] == "mended", "b has what c mended")
            spoilt = ("undo", "--table=t", "--to", before, "--by=b", "--where", "k LIKE 's%'")
            three.slackwater(*spoilt, *ORDER)
            right = SEEDS | {"s000": "written since", "s001": "mended"}
            are_everywhere(three, hub, right)
        are_everywhere(three, hub, right | written)
        hub.waits_for(lambda: three.slackwater("level")["level"], "all are level")

        assert all(rows(three, name) == right | written for name in NAMES)
    asked = (
        "SELECT app, count(DISTINCT prim_csn) AS n FROM hub_changelog WHERE rid = 65534 GROUP BY 1"
    )
    assert three.slackwater("sql", asked)["rows"] == [{"app": "undo: me", "n": 2}]
    ordered = three.slackwater("sql", "SELECT argument FROM hub_config WHERE command = 'undo'")
    assert all("a bad release" in row["argument"] for row in ordered["rows"])
    assert three.slackwater("verify")["sound"]
    assert three.slackwater("replay")["equal"]
