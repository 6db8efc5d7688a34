"""What `status` shows of conflicts and of the epochs in flight, from a real run."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from checkpoints.tables import TableName
from connectors import wire
from connectors.kafka.embedded.broker import Broker
from streaming.cli.main import main
from streaming.core.records.record import Applied
from tests.harness import verdict
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site
from tests.reference.wire import decode_update


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas, greeted; a lagging covers is moved once an hour."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        text = made.file.read_text()
        made.file.write_text(text.replace("covers_interval_ms = 1", "covers_interval_ms = 3600000"))
        for replica in made.replicas.values():
            replica.hello()
        yield made


NO_HUB = 1
"""What `status` exits with when the hub has ended."""


def shown(pair: Site, *arguments: str, code: int = 0) -> str:
    """What a command prints for people, with its exit code."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*arguments, "--config", str(pair.file)]) == code
    return out.getvalue()


def applied_in_topic(replica: ScriptedReplica, start: int, end: int | None = None) -> list[Applied]:
    """Each `applied` in its topic, from one offset up to another."""
    values = [value for _, value in replica.ends.read(replica.changes, start)]
    received = [wire.decode(value)[1] for value in values[: None if end is None else end - start]]
    return [record for record in received if isinstance(record, Applied)]


def covers_sent(pair: Site, name: str) -> list[int]:
    """The covers of each batch in a replica's updates topic."""
    return sorted({decode_update(value).covers for _, value in pair.updates(name)})


def span(first: int, last: int) -> str:
    """A range of hub epochs as it is printed."""
    return str(first) if first == last else f"{first}-{last}"


def counters(pair: Site, name: str) -> dict[str, int]:
    """What `status` counts of a replica's changes in table t."""
    found = pair.slackwater("status")["counters"]
    return next((of["counters"] for of in found if (of["replica"], of["table"]) == (name, "t")), {})


def standing(pair: Site, name: str) -> tuple[int, int, int, bool]:
    """MRE, last conflict epoch, last stable epoch of a replica, and if conflicts are handled."""
    (one,) = [one for one in pair.slackwater("status")["replicas"] if one["name"] == name]
    return (
        one["mre"],
        one["last_conflict_epoch"],
        one["last_stable_epoch"],
        one["conflict_handling"],
    )


@pytest.mark.more
def test_the_picture_of_a_real_run(pair: Site, spark: SparkSession) -> None:
    """An operator trusts the five facts as far as they hold what the topics hold."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.write("k0", "v")
    pair.run_available(spark)
    b.catch_up()
    pair.run_available(spark)
    for number in range(1, 5):
        a.write(f"k{number}", "v")
        pair.run_available(spark)
    b.write("own", "v")
    pair.run_available(spark)
    read_to = b.ends.end(b.changes)
    b.catch_up(limit=2)

    facts = pair.slackwater("status", "--replica", "b")
    text = shown(pair, "status", "--replica", "b")

    current = pair.slackwater("status")["hub_epoch"]
    read, unread = applied_in_topic(b, 0, read_to), applied_in_topic(b, read_to)
    mre, back, out = read[-1].covers, unread[-1].covers, covers_sent(pair, "b")[-1]
    assert mre < back < out < current, "a range is empty: the run is not what it should be"
    assert (facts["hub_epoch"], facts["mre"]) == (current, mre)
    assert facts["unread"] == {"first": mre + 1, "last": back}
    assert facts["sent"] == {"first": back + 1, "last": out}
    assert facts["unsent"] == {"first": out + 1, "last": current}
    epoch = read[-1].epoch
    assert [line.partition("  ")[2].strip() for line in text.splitlines()[1:]] == [
        str(current),
        f"{mre}, reflected in its epoch {epoch}; counts for its changes from epoch {epoch + 1} on",
        f"{span(out + 1, current)}; nothing for it in {span(out + 1, current)}",
        span(back + 1, out),
        span(mre + 1, back),
    ]


def test_a_reflection_counts_from_the_next_epoch(pair: Site, spark: SparkSession) -> None:
    """Within one epoch nobody knows what came first, so the older MRE judges: the safe side."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    pair.run_available(spark)
    a.write("k", "v")
    pair.run_available(spark)
    b.catch_up()
    pair.run_available(spark)
    facts = pair.slackwater("status", "--replica", "b")

    same = b.change("same", "v")._replace(epoch=facts["mre_epoch"])
    later = b.change("later", "v")._replace(epoch=facts["mre_counts_from"])
    b.publish(same)
    b.publish(later)
    pair.run_available(spark)

    judged = {row["csn"]: row["mre"] for row in verdict.rows_of(pair.state, TableName.CHANGELOG)}
    assert judged[later.csn] == facts["mre"]
    assert judged[same.csn] < facts["mre"]


def test_a_conflict_is_counted_and_shown_until_it_is_reflected(
    pair: Site, spark: SparkSession
) -> None:
    """NDB's last_conflict_epoch test: above the MRE right after detection, equal when synced."""
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.write("k", "a's")
    b.write("k", "b's")
    pair.run_available(spark)
    detected = pair.slackwater("status")["hub_epoch"]

    assert counters(pair, "b") == {"conflict_fn_epoch": 1, "conflict_refresh": 1}
    assert counters(pair, "a") == {}
    assert standing(pair, "b") == (0, detected, 0, True)
    assert "conflict handling in progress: b\n" in shown(pair, "status", code=NO_HUB)

    b.catch_up()
    pair.run_available(spark)
    assert standing(pair, "b") == (detected, detected, detected, False)
    assert "in progress" not in shown(pair, "status", code=NO_HUB)

    a.write("k", None)
    b.write("k", None)
    pair.run_available(spark)
    assert counters(pair, "b") == {
        "conflict_epoch_delete_delete": 1,
        "conflict_fn_epoch": 2,
        "conflict_refresh": 2,
    }
    mre, last, stable, handling = standing(pair, "b")
    assert mre == stable == detected < last
    assert handling


def test_a_rejected_transaction_is_counted_as_ndb_counts_it(
    pair: Site, spark: SparkSession
) -> None:
    """NDB's own example: two rows in a transaction, one of them in conflict; both are rejected."""
    text = pair.file.read_text()
    pair.file.write_text(text.replace('function = "EPOCH"', 'function = "EPOCH_TRANS"'))
    a, b = pair.replicas["a"], pair.replicas["b"]
    a.write("k", "a's")
    b.write("k", "b's", inside="both")
    b.write("l", "b's", inside="both")
    b.commit("both")

    pair.run_available(spark)

    assert counters(pair, "b") == {
        "conflict_fn_epoch_trans": 1,
        "conflict_refresh": 2,
        "conflict_trans_conflict_commit": 1,
        "conflict_trans_reject": 1,
        "conflict_trans_row_conflict": 1,
        "conflict_trans_row_reject": 2,
    }
