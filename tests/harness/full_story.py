"""A story of everything that a hub may be told, always the same: to compare hubs by their results.

With conflicts, transactions, pending ones, quarantine, refreshes and merged images.
"""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from pyspark.sql import SparkSession

from checkpoints import query
from checkpoints.reading.reader import open_state
from checkpoints.rows import materialize
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from tests.harness import verdict
from tests.harness.scripted import ScriptedReplica
from tests.harness.site import Site

FUNCTIONS = {"t": "EPOCH", "u": "EPOCH_TRANS", "w": "MAX(v)"}
"""Table -> its conflict function."""
ROUNDS, ACTIONS = 3, 150
START_S = 1_700_000_000
TIMES = {"time", "at", "topic"}
"""Columns in which two hubs differ: when a record was written, and in which topic."""

COMPARED = [
    *(TableName.CHANGELOG, TableName.CONFLICTS, TableName.QUARANTINE, TableName.PENDING),
    *(TableName.EVENTS, TableName.ROWS),
]


def happen(at: Site, run: Callable[[], None]) -> None:
    """The story, always the same; `run` lets a hub work off what is there: a batch each round."""
    random = Random(5)
    replicas = list(at.replicas.values())
    for replica in replicas:
        replica.clock_s = START_S
        replica.hello()
    run()
    for number in range(ROUNDS):
        acts = ACTS if number else PLAIN
        for _ in range(ACTIONS):
            act = random.choices(list(acts), list(acts.values()))[0]
            act(random.choice(replicas), random)
        run()
        for replica in replicas:
            if random.random() < 0.7:
                replica.catch_up()


def bring_rows_up(at: Site, spark: SparkSession) -> None:
    """Merge into `rows` what is behind it: a hub that ends gives up a merge that is under way."""
    commit = open_state(at.state).commit
    assert commit is not None
    materialize(spark, StateStore(at.state), commit.rows_epoch, commit.state.hub_epoch)


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
