"""Driver and executors carry the same batches to the same tables and the same topics."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkpoints import query
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from connectors.kafka.broker import Broker
from tests.harness import verdict
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site, site

FUNCTIONS = {"t": "EPOCH", "u": "EPOCH_TRANS", "w": "MAX(v)"}
ROUNDS, ACTIONS = 3, 150
START_S = 1_700_000_000
TIMES = {"time", "at", "topic"}
"""Columns in which two hubs differ: when a record was written, and in which topic."""


COMPARED = [
    *(TableName.CHANGELOG, TableName.CONFLICTS, TableName.QUARANTINE, TableName.PENDING),
    *(TableName.EVENTS, TableName.ROWS),
]


@pytest.fixture
def both(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Mapping[str, Site]]:
    """Two hubs, one of which lets the executors carry whatever comes."""
    limits = {"chunk_items": 7, "materialize_every_epochs": 2}
    with (
        site(
            tmp_path / "driver",
            broker.bootstrap_servers,
            f"{topic_prefix}driver.",
            "abc",
            {**limits, "driver_batch_records": 1_000_000},
            FUNCTIONS,
        ) as driver,
        site(
            tmp_path / "executors",
            broker.bootstrap_servers,
            f"{topic_prefix}executors.",
            "abc",
            {**limits, "driver_batch_records": 0},
            FUNCTIONS,
        ) as executors,
    ):
        yield {"driver": driver, "executors": executors}


def test_both_carriers_write_and_send_the_same(
    both: Mapping[str, Site], spark: SparkSession
) -> None:
    """With conflicts, transactions, pending ones, quarantine, refreshes and merged images."""
    for at in both.values():
        happen(at, spark)

    by_driver, by_executors = (checked_records(at) for at in both.values())
    for name, rows in by_driver.items():
        assert rows == by_executors[name], name
    of_everything(both["driver"])
    assert not by_spark(both["driver"])
    assert len(by_spark(both["executors"])) == ROUNDS


def happen(at: Site, spark: SparkSession) -> None:
    """A story of everything, always the same; each round is one batch."""
    random = Random(5)
    replicas = list(at.replicas.values())
    for replica in replicas:
        replica.clock_s = START_S
        replica.hello()
    at.run_available(spark)
    for number in range(ROUNDS):
        acts = ACTS if number else PLAIN
        for _ in range(ACTIONS):
            act = random.choices(list(acts), list(acts.values()))[0]
            act(random.choice(replicas), random)
        at.run_available(spark)
        for replica in replicas:
            if random.random() < 0.7:
                replica.catch_up()


def some_row(random: Random) -> str:
    """A row of any table; few, so that replicas meet, or one of many."""
    table = random.choice(["", "u.", "w."])
    return f"{table}k{random.randint(1, 9) if random.random() < 0.3 else random.randint(10, 500)}"


def write(replica: ScriptedReplica, random: Random) -> None:
    """Insert or update."""
    replica.write(some_row(random), f'"quoted" é {random.randint(1, 999)}')


def delete(replica: ScriptedReplica, random: Random) -> None:
    """Delete."""
    replica.write(some_row(random), None)


def transact(replica: ScriptedReplica, random: Random) -> None:
    """A transaction of some rows: it commits, aborts, or goes on."""
    label = random.choice(["x", "y"])
    for _ in range(random.randint(1, 3)):
        replica.write(some_row(random), f"{random.randint(1, 999)}", inside=label)
    if random.random() < 0.6:
        replica.commit(label)
    elif random.random() < 0.3:
        replica.abort(label)


def write_a_part(replica: ScriptedReplica, random: Random) -> None:
    """An image without all columns."""
    change = replica.change(some_row(random), "x")
    replica.publish(change._replace(after=change.key))


def repeat(replica: ScriptedReplica, random: Random) -> None:
    """Send earlier records again."""
    if replica.published:
        replica.send(random.choice(replica.published[-30:]))


def reuse(replica: ScriptedReplica, random: Random) -> None:
    """A known CSN with other content."""
    if replica.published:
        old = random.choice(replica.published)
        replica.send(replica.change(some_row(random), "reused")._replace(csn=old.csn))


def say_nonsense(replica: ScriptedReplica, random: Random) -> None:
    """What is no record."""
    replica.send_bytes(random.choice([b"", b"{", b'{"v":1,"kind":"change"}', None]))


PLAIN: dict[Callable[[ScriptedReplica, Random], None], int] = {write: 90, delete: 10}
ACTS = PLAIN | {transact: 8, write_a_part: 4, repeat: 4, reuse: 1, say_nonsense: 2}


def checked_records(at: Site) -> dict[str, list[Any]]:
    """All tables, and all topics, except what distinguishes two hubs."""
    store, generation = StateStore(at.state), verdict.last_commit(at)["replicageneration"]
    found: dict[str, list[Any]] = {}
    for name in COMPARED:
        table = query.select(store.table(name), name)
        told = [column for column in table.column_names if column not in TIMES]
        rows = map(repr, table.select(told).to_pylist())
        found[name] = sorted(row.replace(generation, "") for row in rows)
    for replica in at.replicas:
        found[f"updates.{replica}"] = [
            (key, value.decode().replace(generation, "")) for key, value in at.updates(replica)
        ]
    return found


def of_everything(at: Site) -> None:
    """A tame story would prove nothing."""
    log = StateStore(at.state).read(TableName.CHANGELOG)
    kinds = Counter(log["kind"].to_pylist()) + Counter(log["verdict"].to_pylist())
    assert min(kinds[kind] for kind in ("refresh", "rejected")) > 10
    assert kinds["accepted"] > 200
    assert len(set(filter(None, log["prim_csn"].to_pylist()))) > 5
    for name in (TableName.QUARANTINE, TableName.PENDING, TableName.ROWS, TableName.EVENTS):
        assert query.select(query.open_table(at.state, name), name).num_rows > 10, name


def by_spark(at: Site) -> list[dict[str, Any]]:
    """The commits of the changelog that executors made."""
    history = StateStore(at.state).table(TableName.CHANGELOG).history()
    return [one for one in history if "Spark" in one.get("engineInfo", "")]
