"""Two data sets at one hub, on a real broker: what consumers are sent and operators see."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from streaming.core.model.change import Change
from streaming.core.records.record import Commit
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site

SERVED = {"a": "t", "b": "u", "c": "t"}
"""The table that each replica is sent; u is in a data set of its own."""


@pytest.fixture
def three(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with three replicas, all of which have sent a hello."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix, "abc") as made:
        made.learn_second_table()
        text = made.file.read_text().replace('name = "u"', 'name = "u"\ndataset = "other"')
        for name, table in SERVED.items():
            text = text.replace(
                f'consumer = "{name}"', f'consumer = "{name}"\ntables = ["{table}"]'
            )
        made.file.write_text(text.replace("[[replicas]]", '[[replicas]]\nwrites = ["*"]'))
        for replica in made.replicas.values():
            replica.hello()
        yield made


def write(replica: ScriptedReplica, table: str, value: str, prim_csn: str | None = None) -> Change:
    """Publish a change of a table of either data set."""
    change = replica.change("k", value)._replace(table=table, prim_csn=prim_csn)
    replica.publish(change)
    return change


def write_in_both(replica: ScriptedReplica, value: str) -> str:
    """Publish a transaction of one change in each data set; its prim_csn."""
    first = replica.change("k", value)
    replica.publish(first._replace(prim_csn=first.csn))
    write(replica, "u", value, first.csn)
    return first.csn


def values(replica: ScriptedReplica) -> dict[str, str]:
    """Table -> what the replica was sent."""
    replica.catch_up()
    return {table: text for (table, _), text in replica.rows.items()}


def test_each_consumer_is_told_of_its_data_set(three: Site, spark: SparkSession) -> None:
    """A transaction in both is seen in both at once; each RUV speaks of its own part."""
    a, b, c = three.replicas.values()
    primary = write_in_both(a, "both")
    behind = write(a, "u", "behind")
    three.run_available(spark)

    assert (values(b), values(c)) == ({}, {})
    pending = three.slackwater("status")["pending"]
    assert (pending["pending"], pending["waiting"], pending["oldest"]) == (2, 1, primary)
    assert pending["oldest_age_s"] > 0

    a.send(Commit(primary))
    three.run_available(spark)
    assert values(b) == {"u": behind.after}
    assert values(c).keys() == {"t"}
    assert b.position.ruv.max_csns() == {1: behind.csn}
    assert c.position.ruv.max_csns() == {1: primary}

    values(a)
    three.run_available(spark)
    assert three.slackwater("level", "--max-age", "600")["level"]
    lines = three.slackwater("ruv", "--dataset", "other")["ruv"]
    assert lines == b.position.ruv.text()


def test_an_operator_ends_a_transaction_in_both_data_sets(three: Site, spark: SparkSession) -> None:
    """What waits behind it in either goes on; its origin gets its rows back."""
    a, b, c = three.replicas.values()
    primary = write_in_both(a, "both")
    behind = write(a, "u", "behind")
    three.run_available(spark)

    three.slackwater("abort", primary)
    three.run_available(spark)

    assert values(b) == {"u": behind.after}
    assert values(c) == {}
    assert values(a) == {"u": behind.after}
    assert three.slackwater("status")["pending"]["pending"] == 0

    a.send(Commit(primary))
    three.run_available(spark)
    assert [row["reason"] for row in three.slackwater("quarantine", "list")] == ["ended"]
    assert values(c) == {}
