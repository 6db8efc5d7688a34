"""A replica that is shown some rows only: what comes and goes, and what another filter does."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from connectors.sqlite.apply import saved_rows
from tests.harness.agents_of_kinds import agents, create, execute, place, rows
from tests.harness.site import Site, site


@pytest.fixture
def two(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas; b is not shown what is hidden."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "ab") as made:
        for name in "ab":
            create(made, name)
        shows(made, "v <> 'hidden'")
        yield made


def shows(at: Site, condition: str) -> None:
    """Give the agreement of b this condition."""
    text = at.file.read_text()
    before = text[: text.rindex("[[agreements]]")]
    of_b = f'[[agreements]]\nname = "b"\nconsumer = "b"\nrows.t = "{condition}"\n'
    at.file.write_text(before + of_b)


@pytest.mark.more
def test_a_replica_holds_exactly_the_rows_that_it_is_shown(two: Site, spark: SparkSession) -> None:
    """Whoever writes them; another condition brings the table anew."""
    compared = ("compare", "hub", "b", f"--database=b={place(two, 'b')}", "--settle=0.1")
    with two.running(spark) as hub, agents(two, "ab"):
        execute(two, "a", "INSERT INTO t VALUES ('k', 'v'), ('l', 'hidden'), ('m', 'x')")
        hub.waits_for(lambda: rows(two, "b") == {"k": "v", "m": "x"}, "b has what it is shown")
        execute(two, "a", "UPDATE t SET v = 'hidden' WHERE k = 'k'")
        execute(two, "a", "UPDATE t SET v = 'in' WHERE k = 'l'")
        hub.waits_for(lambda: rows(two, "b") == {"l": "in", "m": "x"}, "one left and one came")
        execute(two, "b", "UPDATE t SET v = 'hidden' WHERE k = 'm'")
        hub.waits_for(lambda: rows(two, "b") == {"l": "in"}, "b has hidden its own row")
        hub.waits_for(lambda: rows(two, "a")["m"] == "hidden", "a has it")
        execute(two, "b", "INSERT INTO t VALUES ('k', 'of b')")
        hub.waits_for(lambda: rows(two, "b") == {"l": "in"}, "b had not seen the row")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level")

        assert rows(two, "a") == {"k": "hidden", "l": "in", "m": "hidden"}
        assert two.slackwater(*compared)["is_equal"]
        assert two.slackwater("conflicts", "list")[0]["loser"] == "b"

    shows(two, "v = 'hidden'")
    with two.running(spark) as hub, agents(two, "ab"):
        hidden = {"k": "hidden", "m": "hidden"}
        hub.waits_for(lambda: rows(two, "b") == hidden, "b has a copy by the new filter")
        hub.waits_for(lambda: two.slackwater("level")["level"], "all are level again")
        assert two.slackwater(*compared)["is_equal"]
        assert saved_rows.listed(place(two, "b")) == [], "what is only hidden is no loss"
