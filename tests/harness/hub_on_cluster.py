"""A hub whose Spark is a cluster, and what happens to it while replicas write."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from tests.harness import verdict
from tests.harness.commits import last_commit
from tests.harness.hub_process import QUICK_JAVA, HubProcess
from tests.harness.site import Site
from tests.harness.spark_cluster import EXECUTOR_MEMORY, HOST

PAUSE_S = 0.1
"""Between two rounds of writing: some hundred changes a second, on a machine that is idle."""


def use_cluster(at: Site, address: str, cores: int | None = None) -> None:
    """Let the hubs of a site run on a cluster, on so many of its cores at most."""
    options = {
        "spark.master": address,
        "spark.driver.host": HOST,
        "spark.executor.memory": EXECUTOR_MEMORY,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        **({} if cores is None else {"spark.cores.max": str(cores)}),
    }
    lines = "".join(f'"{name}" = "{value}"\n' for name, value in options.items())
    at.file.write_text(at.file.read_text().replace("[spark]\n", f"[spark]\n{lines}"))


@dataclass(slots=True)
class WritingReplicas:
    """Replicas that apply and write all the time: rows of their own, and one that all write."""

    at: Site
    rounds: int = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write as long as the block takes."""
        end = threading.Event()

        def write() -> None:
            while not end.wait(PAUSE_S):
                self._write_once()

        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(write)
            try:
                yield
            finally:
                end.set()
            work.result()

    def _write_once(self) -> None:
        self.rounds += 1
        for name, replica in self.at.replicas.items():
            replica.catch_up()
            for number in range(3):
                replica.write(f"{name}{number}", f"{self.rounds}")
            replica.write("contended", f"{name} {self.rounds}")


def batches(at: Site) -> int:
    """How many batches are committed."""
    commit = last_commit(at.state)
    return commit.state.batch if commit else 0


def commits_more(hub: HubProcess, at: Site, count: int) -> None:
    """Wait until so many more batches are committed."""
    before = batches(at)
    hub.waits_for(lambda: batches(at) >= before + count, f"{count} more batches")


def is_ready(hub: HubProcess) -> None:
    """Wait until the hub says that it serves."""
    hub.waits_for(lambda: " ready at hub epoch " in hub.output, "it is ready")


def ends_level(hub: HubProcess, at: Site) -> None:
    """Let everything come to everybody, stop the hub in order, and hold all against all."""

    def is_level() -> bool:
        for replica in at.replicas.values():
            replica.catch_up()
        commit = last_commit(at.state)
        assert commit is not None
        return all(
            replica.position.covers == commit.state.hub_epoch
            and commit.offsets[replica.changes] >= replica.ends.end(replica.changes)
            for replica in at.replicas.values()
        )

    hub.waits_for(is_level, "all replicas are level")
    hub.terminate()
    hub.ends_with(0)
    for replica in at.replicas.values():
        replica.catch_up()
        verdict.check_level(replica, at)
    verdict.check(at)
