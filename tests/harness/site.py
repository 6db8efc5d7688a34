"""One hub with its surroundings: a folder, a configuration, topics and scripted replicas."""

import contextlib
import io
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from checkpoints.commit.faults import FaultPoint
from connectors.kafka.topics import ensure_topics
from streaming.cli.main import main
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.errors import HubError
from streaming.hub.service import Service
from tests.harness.commits import last_commit
from tests.harness.hub_process import QUICK_JAVA, HubProcess, wait_until
from tests.harness.scripted import ScriptedReplica
from tests.harness.topics import TopicEnds
from tests.model.hub import HubKilledError

RECORD_BYTES = 20_000
"""limits.record_bytes of every hub here."""

_LIMITS: Mapping[str, object] = {
    "record_bytes": RECORD_BYTES,
    "chunk_items": 2,
    "min_partitions": 1,
}

_TEXT = """\
[hub]
state = "state"
topic_prefix = "{prefix}"
trigger_ms = 20
covers_interval_ms = 1
heartbeat_timeout_s = 3600  # a scripted replica sends none

[kafka]
bootstrap_servers = "{bootstrap}"

[limits]
{limits}

[functions]
modules = ["tests.harness.user_functions", "tests.model.world"]

[http]
port = 0

[log]
format = "text"

[spark]
"spark.driver.memory" = "1g"
"spark.driver.extraJavaOptions" = "{java}"
"""

_TABLE = """
[[tables]]
name = "{name}"
key = ["k"]
columns = {{ k = "text", v = "text" }}
function = "{function}"
"""

_MEMBER = """
[[replicas]]
name = "{name}"
rid = {rid}

[[agreements]]
name = "{name}"
consumer = "{name}"
"""

_SHORT: Mapping[str, int] = {"request.timeout.ms": 1_500, "default.api.timeout.ms": 2_000}

_LOOK_S = 0.02
"""The time between two looks at a hub of this process: a batch takes a tenth of a second."""

_ONE_TABLE: Mapping[str, str] = {"t": "EPOCH"}


@dataclass(frozen=True, slots=True)
class RunningHub:
    """A hub at work; every wait ends at once when the hub does."""

    site: "Site"
    work: "Future[None]"

    def takes(self, *replicas: ScriptedReplica) -> None:
        """Wait until everything that these replicas have sent is in a committed batch."""
        for one in replicas:
            end = one.ends.end(one.changes)
            self.waits_for(partial(self._has_taken, one, end), f"{one.name} is taken")

    def brings(self, *replicas: ScriptedReplica) -> None:
        """Wait until each of these replicas has applied and acknowledged all that the hub has."""
        for one in replicas:
            self.waits_for(partial(self._is_level, one), f"{one.name} is level")
        self.takes(*replicas)

    def waits_for(self, claim: Callable[[], bool], what: str) -> None:
        """Wait until the claim holds."""
        wait_until(lambda: self.work.done() or claim(), lambda: what, every_s=_LOOK_S)
        if self.work.done():
            self.work.result()

    def _has_taken(self, replica: ScriptedReplica, end: int) -> bool:
        commit = last_commit(self.site.state)
        return commit is not None and commit.offsets.get(replica.changes, 0) >= end

    def _is_level(self, replica: ScriptedReplica) -> bool:
        replica.catch_up()
        commit = last_commit(self.site.state)
        return commit is not None and replica.position.covers == commit.state.hub_epoch


@dataclass(slots=True)
class Site:
    """Everything that a test of one hub needs; `replicas` by name, rids from 1."""

    folder: Path
    prefix: str
    ends: TopicEnds
    replicas: dict[str, ScriptedReplica]

    @property
    def file(self) -> Path:
        """The configuration file."""
        return self.folder / "hub.toml"

    @property
    def state(self) -> Path:
        """The state root."""
        return self.folder / "state"

    def config(self) -> Config:
        """The configuration as it is in the file now."""
        return load(self.file)

    def learn_second_table(self) -> None:
        """Add table `u`, of the same columns as `t`, to the configuration."""
        self.file.write_text(self.file.read_text() + _TABLE.format(name="u", function="EPOCH"))

    def hub(self, *arguments: str, fault: str = "") -> HubProcess:
        """Start the hub as a process."""
        return HubProcess(self.file, *arguments, fault=fault)

    def run_available(self, spark: SparkSession) -> None:
        """Let a hub in this process work off what is there; no process has to start for it."""
        Service(self.config(), spark).run(threading.Event(), available_now=True)

    def gives_up_soon(self) -> None:
        """Have Kafka's clients wait two seconds for a broker that is away, and not a minute.

        Spark asks four times for so long before its query fails.
        """
        options = "".join(f'"{name}" = "{ms}"\n' for name, ms in _SHORT.items())
        self.file.write_text(f"{self.file.read_text()}\n[kafka.options]\n{options}")

    def dies(self, spark: SparkSession, fatal: FaultPoint, nth: int = 1) -> None:
        """Let a hub in this process work off what is there until it comes there the nth time."""
        left = nth

        def at(point: FaultPoint) -> None:
            nonlocal left
            left -= point is fatal
            if not left:
                raise HubKilledError

        with pytest.raises((HubKilledError, HubError), match=r"^$|HubKilledError"):
            Service(self.config(), spark, at).run(threading.Event(), available_now=True)

    @contextmanager
    def running(self, spark: SparkSession) -> Iterator["RunningHub"]:
        """A hub in this process, at work in a thread; it ends in order with the block."""
        end = threading.Event()
        service = Service(self.config(), spark)
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(service.run, end)
            try:
                yield RunningHub(self, work)
            except BaseException as error:
                if work.done() and work.exception() is not None:
                    error.add_note(f"the hub ended before: {work.exception()!r}")
                raise
            finally:
                end.set()
            work.result()

    def slackwater(self, *arguments: str) -> Any:  # noqa: ANN401 - whatever the command prints
        """What a command of the product prints with --json, whether it says yes or no."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*arguments, "--config", str(self.file), "--json"])
        assert code in (0, 1, 3), f"slackwater {' '.join(arguments)}: {code}, {err.getvalue()}"
        assert out.getvalue(), f"slackwater {' '.join(arguments)}: {code}, {err.getvalue()}"
        return json.loads(out.getvalue())

    def replica_states(self) -> dict[str, str]:
        """Replica -> its state as `slackwater status` shows it."""
        return {one["name"]: one["state"] for one in self.slackwater("status")["replicas"]}

    def updates(self, name: str) -> list[tuple[str, bytes]]:
        """The (id, bytes) of everything in a replica's updates topic."""
        return self.ends.read(self.replicas[name].updates)


@contextmanager
def site(
    folder: Path,
    bootstrap: str,
    prefix: str,
    names: str = "ab",
    limits: Mapping[str, object] | None = None,
    functions: Mapping[str, str] = _ONE_TABLE,
    options: Mapping[str, str] | None = None,
) -> Iterator[Site]:
    """A site with a replica and an agreement for each letter of `names`, its topics made.

    `functions`: table -> its conflict function; all tables have the same columns. `options`:
    Kafka's for the scripted replicas, and for whoever makes the topics; the hub's are not written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = "\n".join(f"{k} = {v}" for k, v in {**_LIMITS, **(limits or {})}.items())
    text = _TEXT.format(java=QUICK_JAVA, prefix=prefix, bootstrap=bootstrap, limits=known)
    members = "".join(_MEMBER.format(name=n, rid=i) for i, n in enumerate(names, 1))
    tables = "".join(_TABLE.format(name=n, function=f) for n, f in functions.items())
    (folder / "hub.toml").write_text(text + tables + members)
    topics = [f"{prefix}{way}.{name}" for name in names for way in ("changes", "updates")]
    ensure_topics(bootstrap, options or {}, topics, RECORD_BYTES)
    with TopicEnds(bootstrap, options or {}) as ends:
        clock_s = int(time.time())
        replicas = {
            name: ScriptedReplica(
                name, rid, ends, f"{prefix}changes.{name}", f"{prefix}updates.{name}", clock_s
            )
            for rid, name in enumerate(names, 1)
        }
        yield Site(folder, prefix, ends, replicas)


@contextmanager
def site_with_sessions(
    folder: Path, bootstrap: str, prefix: str, names: str = "ab"
) -> Iterator[Site]:
    """A site whose replicas have all said hello."""
    with site(folder, bootstrap, prefix, names) as made:
        for replica in made.replicas.values():
            replica.hello()
        yield made
