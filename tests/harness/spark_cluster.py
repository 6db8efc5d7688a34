"""A Spark standalone cluster of real processes: a master and workers, each killed or started alone.

    python -m tests.harness.spark_cluster FOLDER

starts one with two workers and runs it until it is stopped. The processes come from pyspark's jars.
Their environment has no Python: what executors need of it, the hub has to ship.
"""

import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from connectors.jars import pyspark_jars
from streaming.jvm.java import find_java
from tests.harness.hub_process import QUICK_JAVA, wait_until
from tests.harness.served_hub import free_port

HOST = "127.0.0.1"
WORKER_MEMORY = "1500m"
EXECUTOR_MEMORY = "1200m"
TOOLS = ("bash", "dirname", "readlink", "env", "uname", "ls", "rm", "chmod", "head")
"""What `spark-class` and Hadoop's local files call."""


@dataclass(slots=True)
class SparkCluster:
    """The processes of one cluster; `workers` by name. What is killed can be started again."""

    folder: Path
    port: int
    page_port: int
    master: "subprocess.Popen[bytes] | None" = None
    workers: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """What `spark.master` is for this cluster."""
        return f"spark://{HOST}:{self.port}"

    def start_master(self) -> None:
        """Start the master, which knows its workers and applications from the run before."""
        address = ["--host", HOST, "--port", str(self.port), "--webui-port", str(self.page_port)]
        self.master = self._start("master", "master.Master", *address)
        wait_until(lambda: self._facts() is not None, lambda: "the master serves its page")

    def start_worker(self, name: str, cores: int = 1) -> None:
        """Start a worker; it registers by itself, also with a master that comes later."""
        given = ["--cores", str(cores), "--memory", WORKER_MEMORY, "--host", HOST]
        work = ["--work-dir", str(self.folder / name), "--webui-port", "0"]
        self.workers[name] = self._start(name, "worker.Worker", *given, *work, self.address)
        wait_until(lambda: self.alive() >= len(self.workers), lambda: f"{name} has registered")

    def kill_master(self) -> None:
        """Kill the master; the executors go on."""
        assert self.master is not None
        _kill(self.master)
        self.master = None

    def kill_worker(self, name: str) -> None:
        """Kill a worker; its executors end with it, because they watch it."""
        _kill(self.workers.pop(name))

    def alive(self) -> int:
        """How many workers the master knows to be alive."""
        facts = self._facts() or {"workers": []}
        return sum(worker["state"] == "ALIVE" for worker in facts["workers"])

    def applications(self) -> int:
        """How many applications run."""
        return len((self._facts() or {"activeapps": []})["activeapps"])

    def close(self) -> None:
        """Kill everything."""
        for process in (*self.workers.values(), *([self.master] if self.master else [])):
            _kill(process)

    def _facts(self) -> Any:  # noqa: ANN401 - what the master's page says
        with suppress(OSError, ValueError):
            page = f"http://{HOST}:{self.page_port}/json/"
            with urllib.request.urlopen(page, timeout=5) as answer:
                return orjson.loads(answer.read())
        return None

    def _start(self, name: str, what: str, *arguments: str) -> "subprocess.Popen[bytes]":
        home = pyspark_jars().parent
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}"]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, *arguments],
                cwd=self.folder,
                env=self._environment(home),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _environment(self, home: Path) -> dict[str, str]:
        """Java, a few tools, and nothing else."""
        recovery = f"-Dspark.deploy.recoveryDirectory={self.folder / 'recovery'}"
        options = f"-Dspark.deploy.recoveryMode=FILESYSTEM {recovery} -Dspark.worker.timeout=10"
        return {
            "PATH": str(self.folder / "bin"),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{options} {QUICK_JAVA}",
            "SPARK_LOCAL_IP": HOST,
        }


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A running cluster of one-core workers; it does not outlive the block."""
    tools = folder / "bin"
    tools.mkdir(parents=True)
    for tool in ("java", *TOOLS):
        found = find_java() if tool == "java" else shutil.which(tool)
        assert found, f"{tool} is not on the path"
        (tools / tool).symlink_to(Path(found).resolve())
    (folder / "recovery").mkdir()
    cluster = SparkCluster(folder, free_port(), free_port())
    with ExitStack() as stack:
        stack.callback(cluster.close)
        cluster.start_master()
        for number in range(1, workers + 1):
            cluster.start_worker(f"worker{number}")
        yield cluster


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    with suppress(KeyboardInterrupt), spark_cluster(Path(sys.argv[1]).absolute()) as running:
        sys.stdout.write(f'"spark.master" = "{running.address}"\n')
        sys.stdout.flush()
        signal.pause()
