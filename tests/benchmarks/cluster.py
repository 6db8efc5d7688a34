"""A hub on a Spark cluster of this machine, beside the same hub with Spark in its own process.

The cluster is real processes: a master and workers of one core each. They share the cores with
the driver, the broker and the agents, so it says what the cluster's way costs, not what it brings.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from streaming.config.config import Config
from tests.benchmarks.agents import agents_running, report_of
from tests.benchmarks.committed import hub_epoch, judged
from tests.benchmarks.counting import count
from tests.benchmarks.environment import (
    EVENTS_PER_BATCH,
    BenchmarkEnvironment,
    HubKind,
    fill,
    topics_of,
)
from tests.benchmarks.load import WRITERS, new_load, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import middle, ratio
from tests.benchmarks.sizes import Sizes
from tests.harness.hub_process import HubProcess
from tests.harness.spark_cluster import EXECUTOR_MEMORY, HOST, spark_cluster

LOCAL, CLUSTER = "local", "cluster"
PER_S = 2_000
"""Changes a second of latency."""
SHARED_OF_1000 = 10


@dataclass(frozen=True, slots=True)
class HubAt:
    """A hub of its own as a process, whose Spark is at `master`; empty: in the process."""

    environment: BenchmarkEnvironment
    kind: HubKind
    master: str = ""
    cores: int = 2

    def config(self) -> Config:
        """Write its configuration."""
        config = self.environment.config(self.kind)
        spark = {
            "spark.master": self.master,
            "spark.driver.host": HOST,
            "spark.executor.memory": EXECUTOR_MEMORY,
            "spark.cores.max": str(self.cores),
        }
        lines = [f'"{name}" = "{value}"' for name, value in spark.items()] if self.master else []
        file = self.environment.folder / f"{self.kind.name}.toml"
        file.write_text("\n".join([file.read_text(), "[http]\nport = 0", "[spark]", *lines, ""]))
        return config

    @contextmanager
    def running(self) -> Iterator[HubProcess]:
        """The hub at work; it ends in order with the block."""
        with HubProcess(self.environment.folder / f"{self.kind.name}.toml") as hub:
            yield hub
            hub.terminate()
            hub.ends_with(0)


def cluster(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Latency by turns with a local hub; changes a second that one worker carries, and two.

    ValueError: there are no more events than a batch takes, and the first batch is not counted.
    """
    if sizes.cluster_events <= EVENTS_PER_BATCH:
        raise ValueError(f"--cluster-events must be more than {EVENTS_PER_BATCH:,}, a batch")
    with spark_cluster(environment.folder / "cluster") as running:
        rounds = [
            {
                where: _latency(environment, f"{where}{turn}", master, sizes)
                for where, master in ((LOCAL, ""), (CLUSTER, running.address))
            }
            for turn in range(sizes.cluster_rounds)
        ]
        carried = {
            f"workers_{cores}_per_s": _carried(environment, running.address, cores, sizes)
            for cores in (1, 2)
        }
    return {
        "cluster": {
            **{f"{where}_p50_s": round(middle(rounds, where), 3) for where in (LOCAL, CLUSTER)},
            "p50_ratio_to_local": ratio(rounds, CLUSTER, LOCAL),
            **carried,
            "two_workers_ratio_to_one": round(
                carried["workers_2_per_s"] / carried["workers_1_per_s"], 2
            ),
            "rounds": rounds,
        }
    }


def _latency(environment: BenchmarkEnvironment, name: str, master: str, sizes: Sizes) -> float:
    """The median of seconds from a replica's topic to the others'."""
    at = HubAt(environment, HubKind(name), master)
    config, load = at.config(), new_load(SHARED_OF_1000)
    publish_hellos(environment.bootstrap, topics_of(config))
    task = environment.writing(config, load, PER_S, sizes.cluster_s, sizes.warm_up_s)
    with at.running() as hub:
        hub.waits_for(lambda: bool(hub_epoch(config)), "it has processed the hellos")
        with agents_running(task):
            hub.waits_for(lambda: judged(config) >= task.changes, "it has judged everything")
    count(config, environment.bootstrap, load, task.changes // len(WRITERS))
    return median(report_of(task).latencies_ms) / 1_000


def _carried(environment: BenchmarkEnvironment, master: str, cores: int, sizes: Sizes) -> int:
    """Changes a second in batches that executors carry; the first batch warms them up."""
    kind = HubKind(f"carried{cores}", driver_batch_records=0)
    at, load = HubAt(environment, kind, master, cores), new_load(SHARED_OF_1000)
    config, each = at.config(), sizes.cluster_events // len(WRITERS)
    fill(environment, config, load, each)
    task = environment.task(config)
    with at.running() as hub, agents_running(task):
        hub.waits_for(lambda: judged(config) > 0, "its first batch is committed")
        first, began_s = judged(config), time.monotonic()
        hub.waits_for(lambda: judged(config) >= each * len(WRITERS), "everything is judged")
        seconds = time.monotonic() - began_s
    count(config, environment.bootstrap, load, each)
    return round((each * len(WRITERS) - first) / seconds)
