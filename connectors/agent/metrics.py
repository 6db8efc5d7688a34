"""What an agent counts, and its metrics for Prometheus, at a port of its own if it is given one."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from connectors.live_value import LiveAccess
from connectors.metrics_server import metrics_served
from connectors.tls import tls_faults
from streaming.core.access.port_access import EVERYBODY, LOOPBACK
from streaming.core.model.errors import ConfigError


@dataclass(slots=True)
class AgentCounts:
    """What an agent has done since it started, and what it has before it; any thread may look.

    `backlog`: journal entries that are not known to be in the changes topic, looked up every
    second. `batches`, `items`, `refused`: of the hub, applied; items that the database refused.
    `uncarried`, `saved`: rows that are only in this database, looked up every second.
    `outbox_records`, `outbox_bytes`: of an agent that works on packets, records of its outbox that
    the hub is not known to have, and the size of that file.
    `log_held_bytes`, `log_room_bytes`: what the database's server keeps of its log for the agent,
    and how much more is written before it removes what the agent needs; 0 and inf: no log is kept.
    `held_since_s`: since when, by the monotonic clock, the agent waits for the database, which is
    applying what it received or is blocked by somebody's transaction.
    """

    published: int = 0
    backlog: int = 0
    batches: int = 0
    items: int = 0
    refused: int = 0
    sessions: int = 0
    covers: int = 0
    uncarried: int = 0
    saved: int = 0
    outbox_records: int = 0
    outbox_bytes: int = 0
    log_held_bytes: int = 0
    log_room_bytes: float = math.inf
    held_since_s: float | None = None

    def held_s(self) -> float:
        """How long the agent waits for the database; 0: it does not."""
        since_s = self.held_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s


@dataclass(frozen=True, slots=True)
class AgentMetric:
    """A metric of an agent; a name that ends in `_total` is a counter's."""

    name: str
    help: str
    query: str
    value: Callable[[AgentCounts], float]
    unit: str = ""


METRICS = (
    AgentMetric(
        "slackwater_agent_published_total",
        "Journal entries that the agent has published.",
        "rate(slackwater_agent_published_total[5m])",
        lambda of: of.published,
    ),
    AgentMetric(
        "slackwater_agent_journal_backlog",
        "Journal entries that are not known to be in the changes topic: lost with this database.",
        "slackwater_agent_journal_backlog > 10000",
        lambda of: of.backlog,
    ),
    AgentMetric(
        "slackwater_agent_outbox_records",
        "Records of the outbox that the hub is not known to have; 0: Kafka reaches the agent.",
        "slackwater_agent_outbox_records > 10000",
        lambda of: of.outbox_records,
    ),
    AgentMetric(
        "slackwater_agent_outbox_bytes",
        "The size of the outbox's file: room in it is used again, and it does not shrink.",
        "slackwater_agent_outbox_bytes",
        lambda of: of.outbox_bytes,
        unit="bytes",
    ),
    AgentMetric(
        "slackwater_agent_batches_total",
        "Batches of the hub that the agent has applied.",
        "rate(slackwater_agent_batches_total[5m])",
        lambda of: of.batches,
    ),
    AgentMetric(
        "slackwater_agent_items_total",
        "Rows and ranges of the hub's batches that the agent has applied.",
        "rate(slackwater_agent_items_total[5m])",
        lambda of: of.items,
    ),
    AgentMetric(
        "slackwater_agent_refused_total",
        "Items that the database refused.",
        "increase(slackwater_agent_refused_total[1h]) > 0",
        lambda of: of.refused,
    ),
    AgentMetric(
        "slackwater_agent_uncarried_rows",
        "Rows that are not replicated until they are corrected: no replica can take their values.",
        "slackwater_agent_uncarried_rows > 0",
        lambda of: of.uncarried,
    ),
    AgentMetric(
        "slackwater_agent_saved_rows",
        "Rows that were overwritten and were nowhere else; `slackwater agent saved` has them.",
        "slackwater_agent_saved_rows > 0",
        lambda of: of.saved,
    ),
    AgentMetric(
        "slackwater_agent_log_held_bytes",
        "What the server of the database keeps of its log for the agent; 0: its log is not read.",
        "slackwater_agent_log_held_bytes",
        lambda of: of.log_held_bytes,
        unit="bytes",
    ),
    AgentMetric(
        "slackwater_agent_log_room_bytes",
        "How much more log may be written before its server removes what the agent has not read.",
        "slackwater_agent_log_room_bytes < 1e9",
        lambda of: of.log_room_bytes,
        unit="bytes",
    ),
    AgentMetric(
        "slackwater_agent_sessions_total",
        "Sessions that the agent has begun; more than one: it lost its place and found it again.",
        "increase(slackwater_agent_sessions_total[1h]) > 1",
        lambda of: of.sessions,
    ),
    AgentMetric(
        "slackwater_agent_covers_epoch",
        "The hub epoch up to which the database has everything that it was sent.",
        "scalar(max(slackwater_hub_epoch)) - slackwater_agent_covers_epoch",
        lambda of: of.covers,
    ),
    AgentMetric(
        "slackwater_agent_held_seconds",
        "How long the agent waits for its database, which applies or is blocked; 0: it does not.",
        "slackwater_agent_held_seconds > 60",
        AgentCounts.held_s,
        unit="seconds",
    ),
)


class AgentCollector(Collector):
    """The metrics with the values of the moment in which they are scraped."""

    def __init__(self, replica: str, counts: AgentCounts) -> None:
        self._replica, self._counts = replica, counts

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield each metric with its value."""
        for one in METRICS:
            is_counter = one.name.endswith("_total")
            kind = CounterMetricFamily if is_counter else GaugeMetricFamily
            family = kind(
                one.name.removesuffix("_total"), one.help, labels=("replica",), unit=one.unit
            )
            family.add_metric((self._replica,), one.value(self._counts))
            yield family


@contextmanager
def served_metrics(
    port: int,
    replica: str,
    counts: AgentCounts,
    host: str = LOOPBACK,
    readers: LiveAccess | None = None,
) -> Iterator[None]:
    """Serve the counts as long as the block takes; port 0: do not. ConfigError: it may not be.

    `readers`: who may read them; None: everybody.
    """
    if not port:
        yield
        return
    readers = readers or LiveAccess(EVERYBODY)
    access = readers.latest
    if faults := [*access.faults(host, "--metrics-host"), *tls_faults(access)]:
        raise ConfigError("; ".join(faults))
    registry = CollectorRegistry()
    registry.register(AgentCollector(replica, counts))
    with metrics_served(registry, host, port, readers):
        yield
