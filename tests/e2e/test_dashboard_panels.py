"""Every question of every dashboard, asked of a real Prometheus that scrapes a hub at work."""

import math
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import pytest
from pyspark.sql import SparkSession

from checkpoints.config import store_comparison
from checkpoints.store import StateStore
from connectors.kafka.embedded.broker import Broker
from deploy.dashboards.__main__ import BOARDS
from deploy.dashboards.board import Board, Panel
from streaming.facts.consumers.compared import ComparedRound
from tests.harness.busy_hub import collide, fall_behind, leave_open, say_hello, spoil
from tests.harness.hub_process import wait_until
from tests.harness.prometheus import JOB, Prometheus, prometheus
from tests.harness.served_hub import free_port, serving
from tests.harness.site import Site, site
from tests.harness.sqlite_agents import at_work, create, database, execute

pytestmark = pytest.mark.more

NOTHING_OF_IT = {
    *("Resync", "Rows", "Tables left"),  # no resync is under way
    *("Refused rows", "Differing rows"),  # every database took every row
    *("Paused", "Clock ahead"),  # no replica is in trouble
    *(
        "Under way",
        "Memory for judging",
        "Kafka",
        "Purge",
    ),  # between two batches; nothing is purged
    *("In quarantine now", "Budget of quarantine", "Bytes in quarantine"),  # of this replica
    "Late and twice",  # this replica sent nothing late, and nothing twice
    *("Unread records", "Unreadable"),  # the hub has read all, and may
    "Who holds the purge",  # nobody: nothing is old
    "Level",  # the third consumer is behind
    *("Refused", "Refused in an hour"),  # of the agent, whose database took every row
    *("Journal backlog", "Largest backlog"),  # it has published all
    "Log kept",  # its journal is no server's log
    *("Changes not sent by origin", "Packets, topics"),  # all is sent, and nobody is fed by packets
    *("Uncarried", "Saved"),  # what it wrote was taken, and nothing of it was overwritten
}
"""Panels that may be at 0 under this workload; they have data all the same."""

COMMITS = 25
"""A table's log gets its first checkpoint after twenty."""

SPAN = "1h"
"""What rates are taken over: all that was done here, however long a slow machine takes to ask."""


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker, spark: SparkSession
) -> Iterator[Prometheus]:
    """It has seen conflicts, quarantine, open changes and a consumer that lags happen.

    The fourth replica is a database with an agent, which cannot be written to in the end.
    """
    folder, ports = tmp_path_factory.mktemp("dashboards"), [free_port(), free_port()]
    with (
        site(folder / "hub", broker.bootstrap_servers, "dashboards.", "abcd") as at,
        prometheus(folder, ports) as running,
        serving(at, spark, ports[0]) as hub,
        agent_of_d(at, ports[1]),
        ExitStack() as opened,
    ):
        say_hello(at, hub)
        compared = ComparedRound("c", 9, 2, more_differ=False, in_flight=1, seconds=3.5)
        store_comparison(StateStore(at.state), compared.text(), 1_700_000_000_000)
        hub.reads_its_tables()
        running.scrapes(2)
        round_ = 0
        while hub.port.value("slackwater_batches_total") < COMMITS:
            collide(at, hub, str(round_))
            round_ += 1
        spoil(at, hub)
        wait_until(
            lambda: (
                bool(running.ask("slackwater_delta_checkpoint_timestamp_seconds"))
                and any(one.value for one in running.ask("slackwater_quarantine_records"))
            ),
            lambda: "the tables are read again, and scraped",
        )
        execute(at, "d", "INSERT INTO t VALUES ('of d', 'd')")
        is_seen(running, "slackwater_agent_published_total")
        writer = opened.enter_context(closing(sqlite3.connect(database(at, "d"))))
        writer.execute("BEGIN IMMEDIATE")
        fall_behind(at, hub)
        leave_open(at, hub)
        for metric in ("slackwater_pending_changes", "slackwater_agent_held_seconds"):
            is_seen(running, metric)
        running.scrapes(20)
        yield running


def is_seen(server: Prometheus, metric: str) -> None:
    """Wait until a metric that is not 0 has been scraped."""
    wait_until(lambda: any(one.value for one in server.ask(metric)), lambda: metric)


@contextmanager
def agent_of_d(at: Site, port: int) -> Iterator[None]:
    """The agent of the fourth replica, which is no script."""
    del at.replicas["d"]
    create(at, "d")
    with at_work(at, "d", "--metrics-port", str(port)):
        yield


def answers(server: Prometheus, expr: str) -> list[float]:
    """The values that a panel of this question shows now."""
    for name, value in (
        ("$job", JOB),
        ("$agreement", "c"),
        ("$replica", "b"),
        ("$__rate_interval", SPAN),
    ):
        expr = expr.replace(name, value)
    return [one.value for one in server.ask(expr)]


PANELS = [(board, panel) for board in BOARDS for row in board.rows for panel in row.panels]


@pytest.mark.parametrize(
    ("board", "panel"), PANELS, ids=lambda one: one.uid if isinstance(one, Board) else one.title
)
def test_a_panel_shows_data(server: Prometheus, board: Board, panel: Panel) -> None:
    """A question that has no answer is found at night otherwise; `board` tells where to mend it."""
    found = {query.scoped: answers(server, query.scoped) for query in panel.queries}

    for query, values in found.items():
        assert values, f"{board.uid}: {query}"
        assert not any(map(math.isnan, values)), f"{board.uid}: {query}"
    assert panel.title in NOTHING_OF_IT or any(map(any, found.values())), f"{board.uid}: {found}"
