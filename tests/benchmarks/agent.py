"""What replication costs a SQLite database: an agent beside plain sqlite3, on the same rows.

The sides take turns: the rows are written plainly, written with the agent's triggers, published,
and applied at another replica.
"""

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from connectors.agent.access import KafkaAccess
from connectors.agent.loop import Agent
from connectors.agent.outage import Outage
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.agent.topics import ChangesTopic, UpdatesTopic
from connectors.kafka.options import LiveOptions
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import ensure_topics
from connectors.sqlite.run import open_store
from streaming.core.model.change import Change
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType, Update
from tests.benchmarks.environment import BenchmarkEnvironment
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes
from tests.reference.wire import encode_update

TABLE = Table(
    "account",
    ("id",),
    {
        "id": ColumnType.INT64,
        "owner": ColumnType.TEXT,
        "balance": ColumnType.DECIMAL,
        "active": ColumnType.BOOL,
        "changed": ColumnType.TIMESTAMP,
    },
)
CREATE = (
    "CREATE TABLE account (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, balance NUMERIC(10,2),"
    " active BOOLEAN DEFAULT TRUE, changed DATETIME DEFAULT CURRENT_TIMESTAMP)"
)
INSERT = "INSERT INTO account VALUES (?, ?, ?, ?, ?)"
TRANSACTION = 100
"""Rows of a local transaction."""
BATCH = 1_000
"""Rows of a batch that is applied."""

AccountRow = tuple[int, str, float, int, str]


def agent(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The speed of each side, and its ratio to plain sqlite3 within a round; the first warms up."""
    rounds = list[Round]()
    for turn in range(sizes.rounds + 1):
        folder = environment.folder / f"agent{turn}"
        folder.mkdir()
        rounds.append(_round(environment.bootstrap, folder, f"agent{turn}.", sizes.agent_rows))
        shutil.rmtree(folder)
    del rounds[0]
    sides = ("written", "published", "applied")
    return {
        "agent": {
            **{f"{side}_per_s": round(middle(rounds, side)) for side in ("plain", *sides)},
            **{f"{side}_ratio_to_plain": ratio(rounds, side, "plain") for side in sides},
            "file_ratio_to_plain": ratio(rounds, "file_bytes", "plain_bytes"),
            "rows": sizes.agent_rows,
            "rounds": rounds,
        }
    }


def _round(bootstrap: str, folder: Path, prefix: str, rows: int) -> Round:
    accounts = [
        (
            id_,
            f"owner {id_}",
            id_ / 100,
            id_ % 2,
            f"2024-02-29 23:{id_ // 60 % 60:02}:{id_ % 60:02}",
        )
        for id_ in range(1, rows + 1)
    ]
    plain, one, other = (folder / f"{name}.db" for name in ("plain", "one", "other"))
    for database in (plain, one, other):
        with closing(sqlite3.connect(database)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(CREATE)
    found = {"plain": rows / _write(plain, accounts)}
    with _agent(bootstrap, prefix, one, 1) as writer:
        found["written"] = rows / _write(one, accounts)
        changes = [e.record for e in writer.store.unpublished(rows, 2**40)]
        found["published"] = rows / _publish(writer)
    with _agent(bootstrap, prefix, other, 2) as reader:
        _send(bootstrap, prefix, reader.session, [c for c in changes if isinstance(c, Change)])
        found["applied"] = rows / _apply(reader, rows)
    if len({_content(database) for database in (plain, one, other)}) > 1:
        raise SystemExit("the databases differ, so there is no result")
    return {**found, "file_bytes": _bytes(one), "plain_bytes": _bytes(plain)}


def _write(database: Path, accounts: Sequence[AccountRow]) -> float:
    """Write the rows in transactions of 100; the seconds."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        started_s = time.perf_counter()
        for first in range(0, len(accounts), TRANSACTION):
            connection.execute("BEGIN")
            for row in accounts[first : first + TRANSACTION]:
                connection.execute(INSERT, row)
            connection.execute("COMMIT")
        return time.perf_counter() - started_s


def _publish(writer: Agent) -> float:
    started_s = time.perf_counter()
    while writer.publish():
        pass
    return time.perf_counter() - started_s


def _apply(reader: Agent, rows: int) -> float:
    started_s = time.perf_counter()
    while reader.store.position.last * BATCH < rows:
        reader.receive(100)
    return time.perf_counter() - started_s


@contextmanager
def _agent(bootstrap: str, prefix: str, database: Path, rid: int) -> Iterator[Agent]:
    """An agent in a new session, with topics of its own."""
    topics = f"{prefix}changes.{rid}", f"{prefix}updates.{rid}"
    ensure_topics(bootstrap, {}, topics, 10_000_000)
    settings = AgentSettings(
        DatabaseAddress("sqlite", str(database)), f"r{rid}", rid, bootstrap, *topics, (TABLE,)
    )
    outage = Outage(threading.Event(), KafkaAccess(settings, LiveOptions({})))
    updates = UpdatesTopic(topics[1], 0, outage)
    with open_store(settings) as store, closing(ChangesTopic(outage)) as changes:
        try:
            running = Agent(rid, store, changes, updates)
            running.start()
            yield running
        finally:
            updates.close()


def _send(bootstrap: str, prefix: str, session: str, changes: Sequence[Change]) -> None:
    """Publish the changes as the hub does, a batch each BATCH rows."""
    with closing(UpdatesSink(bootstrap, {})) as sink:
        for epoch, first in enumerate(range(0, len(changes), BATCH), 1):
            items = tuple(
                Item(ItemType.CHANGE, c.table, c.key or "", c.op, c.after, c.csn, 1)
                for c in changes[first : first + BATCH]
            )
            update = Update("r2", 1, session, epoch, epoch - 1, epoch, Ruv("5f00"), 0, 1, items)
            sink.send(f"{prefix}updates.2", b"r2", encode_update(update))
        sink.flush()


def _content(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        return hash(tuple(connection.execute("SELECT * FROM account ORDER BY id")))


def _bytes(database: Path) -> float:
    """The size of the file without what SQLite would use again."""
    with closing(sqlite3.connect(database)) as connection:
        pages, free, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
    return float((pages - free) * size)
