"""What replication costs a PostgreSQL database: an agent beside pgbench, in both directions.

The turns of a round: pgbench alone; pgbench with its tables captured and an agent that publishes;
a backlog that the agent publishes alone; batches of the hub that it applies alone.
"""

import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict

from connectors.agent.access import KafkaAccess
from connectors.agent.attaching import ReplicaPlace
from connectors.agent.loop import Agent
from connectors.agent.outage import Outage
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.agent.topics import ChangesTopic, UpdatesTopic
from connectors.kafka.options import LiveOptions
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import ensure_topics
from connectors.postgres.install.attach import attach
from connectors.postgres.store import PostgresStore
from deploy import programs
from streaming.core.model.change import Op
from streaming.core.model.csn import Csn, Generator
from streaming.core.model.ruv import Ruv
from streaming.core.model.table import ColumnType, Table
from streaming.core.model.values import json_text
from streaming.core.records.record import Item, ItemType, Update
from tests.benchmarks.environment import BenchmarkEnvironment
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes
from tests.connectors.postgres.scratch_server import running_server
from tests.reference.wire import encode_update

ACCOUNTS = Table(
    "pgbench_accounts",
    ("aid",),
    {
        "aid": ColumnType.INT32,
        "bid": ColumnType.INT32,
        "abalance": ColumnType.INT32,
        "filler": ColumnType.TEXT,
    },
)
CHANGES, UPDATES = "postgres.changes", "postgres.updates"
SCALE, CLIENTS = 10, 4
TRANSACTION = 100
"""Rows of a local transaction of the backlog."""
BATCH = 1_000
"""Rows of a batch that is applied."""

_TPS = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)


def postgres_agent(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The speed of each turn, and what pgbench loses; the first round warms up."""
    rounds = list[Round]()
    with running_server() as server:
        dsn = f"{server} dbname=postgres"
        _pgbench(dsn, "-i", "-q", "-s", str(SCALE))
        plain = [_tps(dsn, sizes.pgbench_s) for _ in range(sizes.rounds + 1)]
        with psycopg.connect(dsn, autocommit=True) as session:
            attach(session, ReplicaPlace("r1", 1), [ACCOUNTS], rows_are_shared=True)
        with _agent(environment.bootstrap, dsn) as running:
            for alone in plain:
                captured = _round(running, environment.bootstrap, dsn, sizes)
                rounds.append({"pgbench": alone, **captured})
    del rounds[0]
    sides = ("pgbench", "pgbench_captured", "published", "applied")
    return {
        "postgres_agent": {
            **{f"{side}_per_s": round(middle(rounds, side)) for side in sides},
            "pgbench_ratio_to_alone": ratio(rounds, "pgbench_captured", "pgbench"),
            "rows": sizes.agent_rows,
            "rounds": rounds,
        }
    }


def _round(running: Agent, bootstrap: str, dsn: str, sizes: Sizes) -> dict[str, float]:
    stop = threading.Event()
    beside = threading.Thread(target=_publish_until, args=(running, stop))
    beside.start()
    found = {"pgbench_captured": _tps(dsn, sizes.pgbench_s)}
    stop.set()
    beside.join()
    _publish(running)
    _write(dsn, sizes.agent_rows)
    found["published"] = sizes.agent_rows / _publish(running)
    _send(running, bootstrap, sizes.agent_rows)
    found["applied"] = sizes.agent_rows / _apply(running, sizes.agent_rows)
    return found


def _pgbench(dsn: str, *arguments: str) -> str:
    at = conninfo_to_dict(dsn)
    program = programs.find("pgbench")
    assert program, "pgbench is not installed: `make programs`"
    where = ("-h", str(at["host"]), "-p", str(at["port"]), "-U", str(at["user"]))
    command = [str(program), *where, *arguments, str(at["dbname"])]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _tps(dsn: str, seconds: float) -> float:
    """Transactions a second of pgbench -N, of which each updates one captured row."""
    said = _pgbench(dsn, "-n", "-N", "-c", str(CLIENTS), "-j", "1", "-T", str(round(seconds)))
    found = _TPS.search(said)
    assert found, said
    return float(found[1])


def _publish_until(running: Agent, stop: threading.Event) -> None:
    while not stop.is_set():
        if not running.publish():
            time.sleep(0.02)


def _publish(running: Agent) -> float:
    """Publish what is committed; the seconds."""
    started_s = time.perf_counter()
    while running.store.backlog():
        running.publish()
    return time.perf_counter() - started_s


def _write(dsn: str, rows: int) -> None:
    with psycopg.connect(dsn, autocommit=True) as client:
        for first in range(0, rows, TRANSACTION):
            client.execute(
                "UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid > %s AND aid <= %s",
                (first, first + TRANSACTION),
            )


def _send(running: Agent, bootstrap: str, rows: int) -> None:
    """Publish rows of another replica as the hub does, a batch each BATCH rows."""
    last, generator = running.store.position.last, Generator(2)
    filler = json_text(" " * 84)
    with closing(UpdatesSink(bootstrap, {})) as sink:
        for epoch in range(last + 1, last + 1 + rows // BATCH):
            items = list[Item]()
            for n in range(BATCH):
                csn, generator = generator.next(time.time_ns() // 10**9)
                items.append(_item((epoch - last - 1) * BATCH + n + 1, csn, filler))
            ruv = Ruv("5f00").with_csn(items[-1].csn or "")
            update = Update(
                "r1", 1, running.session, epoch, epoch - 1, epoch, ruv, 0, 1, tuple(items)
            )
            sink.send(UPDATES, b"r1", encode_update(update))
        sink.flush()


def _item(aid: int, csn: Csn, filler: str) -> Item:
    image = f'{{"aid":{aid},"bid":1,"abalance":{aid},"filler":{filler}}}'
    return Item(ItemType.CHANGE, ACCOUNTS.name, f'{{"aid":{aid}}}', Op.UPDATE, image, csn, 2)


def _apply(running: Agent, rows: int) -> float:
    """Apply what was sent; the seconds."""
    end = running.store.position.last + rows // BATCH
    started_s = time.perf_counter()
    while running.store.position.last < end:
        running.receive(100)
    return time.perf_counter() - started_s


@contextmanager
def _agent(bootstrap: str, dsn: str) -> Iterator[Agent]:
    """An agent in a new session, with topics of its own."""
    topics = CHANGES, UPDATES
    ensure_topics(bootstrap, {}, topics, 10_000_000)
    settings = AgentSettings(
        DatabaseAddress("postgresql", dsn), "r1", 1, bootstrap, *topics, (ACCOUNTS,)
    )
    outage = Outage(threading.Event(), KafkaAccess(settings, LiveOptions({})))
    updates = UpdatesTopic(topics[1], 0, outage)
    with (
        closing(PostgresStore.open(dsn, "r1", [ACCOUNTS])) as store,
        closing(ChangesTopic(outage)) as changes,
    ):
        try:
            running = Agent(1, store, changes, updates)
            running.start()
            yield running
        finally:
            updates.close()
