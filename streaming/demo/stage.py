"""A demonstration from its first process to its verdict."""

import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from checkpoints.reader import Reader, open_state
from connectors.kafka.topics import Topics
from streaming.cli.output import as_count, as_counts, write_json
from streaming.config.config import ENV_PREFIX, Config
from streaming.core.model.errors import HubError, StateError
from streaming.core.model.table import DEFAULT_DATASET
from streaming.demo.evidence import gather
from streaming.demo.folder import REPLICAS, DemoFolder
from streaming.demo.journals import last_write, published_all
from streaming.demo.monitor import DemoError, Interrupted, PartMonitor, tail
from streaming.demo.parts import BrokerPart, ProcessPart, end_all
from streaming.demo.progress import ProgressSteps
from streaming.demo.report import facts, show
from streaming.demo.timing import read_timing, store_timing
from streaming.demo.verdict import check_evidence
from streaming.demo.workload import Workload
from streaming.facts.lag import Lag, lags
from streaming.jvm.java import check_java

START_S = 600.0
WORKLOAD_S = 600.0
LEVEL_S = 300.0
"""Limits for a machine that is busy; an idle one needs a tenth."""
STATE_POLL_S = 0.3
"""The interval at which the hub's state is read."""
WARM_UP_EPOCHS = 20
"""The hub epochs before the clock runs; by then the hub has used all of its code several times."""


def perform(monitor: PartMonitor, keep: Path | None, seconds: float, *, as_json: bool) -> int:
    """Run a demonstration and show it; the exit code. Its folder stays unless it is interrupted."""
    check_java()
    _forget_overrides()
    logging.getLogger("kafka").setLevel(
        logging.CRITICAL
    )  # failures are raised as errors of the hub
    with _place(keep) as folder:
        with ProgressSteps() as steps:
            _run(monitor, folder, steps, seconds)
        holds = _conclude(folder, steps.seconds, as_json=as_json)
        monitor.check()
    return 0 if holds else 1


def verify_kept(root: Path, *, as_json: bool) -> int:
    """The verdict on a demonstration that was kept; the exit code."""
    _forget_overrides()
    return 0 if _conclude(DemoFolder(root), {}, as_json=as_json) else 1


def _conclude(folder: DemoFolder, seconds: Mapping[str, float], *, as_json: bool) -> bool:
    evidence = gather(folder)
    found = facts(evidence, check_evidence(evidence), seconds, folder.root)
    if as_json:
        write_json(found)
    else:
        show(found)
    return bool(found["holds"])


def _forget_overrides() -> None:
    """Drop the environment's overrides: they are for a production hub and name its broker."""
    sections = tuple(f"{ENV_PREFIX}{name}".upper() for name in Config.model_fields)
    for name in list(os.environ):  # noqa: TID251 for this process alone
        upper = name.upper()
        if upper in sections or upper.startswith(tuple(f"{one}__" for one in sections)):
            del os.environ[name]  # noqa: TID251 as above


@contextmanager
def _place(keep: Path | None) -> Iterator[DemoFolder]:
    """The folder of a demonstration; a temporary one is removed if it is interrupted."""
    root = keep or Path(tempfile.mkdtemp(prefix="slackwater-demo-"))
    folder = DemoFolder(root)
    folder.make()
    try:
        yield folder
    except HubError as error:
        if keep is None and str(root) not in str(error):
            raise HubError(f"{error}\nlogs and data are kept in {root}") from error
        raise
    except Interrupted:
        if keep is None:
            shutil.rmtree(root, ignore_errors=True)
        raise


def _run(monitor: PartMonitor, folder: DemoFolder, steps: ProgressSteps, seconds: float) -> None:
    """Start everything, wait for the workload, and end writers, agents, hub and broker in order."""
    with ExitStack() as ends:
        with steps.step("broker"):
            broker = BrokerPart(folder.broker, monitor)
            ends.callback(broker.end)
            monitor.wait(
                broker.is_ready, START_S, lambda: f"the broker does not serve: {broker.log}"
            )
            assert broker.broker is not None  # noqa: S101 it is ready
            config = folder.configure(broker.broker.bootstrap_servers)
            _make_topics(config)
        with steps.step("hub and agents") as step:
            hub = _start_hub(folder, monitor)
            ends.callback(hub.end)
            agents = [_start_agent(folder, name, monitor) for name in REPLICAS]
            ends.callback(end_all, agents)
            monitor.wait(
                lambda: _is_attached(config), START_S, lambda: _not_level(config), STATE_POLL_S
            )
            step.show(f"processes {', '.join(str(p.process.pid) for p in (hub, *agents))}")
        with steps.step("warm-up", total=WARM_UP_EPOCHS) as step:
            databases = {name: folder.database(name) for name in REPLICAS}
            workload = Workload(databases, REPLICAS, seconds)
            ends.callback(workload.end)

            def is_warm() -> bool:
                workload.check()
                epochs = _hub_epoch(config)
                step.show(as_count(epochs, "hub epoch"), epochs)
                return epochs >= WARM_UP_EPOCHS

            monitor.wait(is_warm, START_S, lambda: _not_level(config), STATE_POLL_S)
        with steps.step("three replicas write", total=seconds) as step:
            measured_since_ms = workload.begin()

            def is_done() -> bool:
                step.show(workload.described(), workload.progress())
                return workload.is_done()

            monitor.wait(is_done, seconds + WORKLOAD_S, lambda: "the replicas still write")
            workload.end()
        with steps.step("until level"):
            monitor.wait(
                lambda: _is_level(config, folder), LEVEL_S, lambda: _not_level(config), STATE_POLL_S
            )
        with steps.step("end in order"):
            store_timing(read_timing(config, measured_since_ms), folder.timing)
            end_all(agents)
            hub.end()
            broker.end()
            monitor.check()
            _check_ends([*agents, hub])


def _check_ends(parts: Sequence[ProcessPart]) -> None:
    """DemoError if a part did not end with exit code 0."""
    for part in parts:
        if code := part.process.returncode:
            raise DemoError(
                f"{part.name} ended with exit code {code}; {part.log} ends with:\n{tail(part.log)}"
            )


def _make_topics(config: Config) -> None:
    topics = [config.changes_topic(replica.name) for replica in config.replicas]
    topics += [config.updates_topic(agreement.name) for agreement in config.agreements]
    with Topics(config.kafka.bootstrap_servers, config.kafka.options) as admin:
        admin.ensure(topics, config.limits.record_bytes)


def _start_hub(folder: DemoFolder, monitor: PartMonitor) -> ProcessPart:
    return ProcessPart.start("the hub", _slackwater("run", folder), folder.log("hub"), monitor)


def _start_agent(folder: DemoFolder, replica: str, monitor: PartMonitor) -> ProcessPart:
    command = _slackwater("agent", folder, "--replica", replica)
    command += ["--database", str(folder.database(replica))]
    return ProcessPart.start(
        f"the agent of {replica}", command, folder.log(f"agent-{replica}"), monitor
    )


def _slackwater(command: str, folder: DemoFolder, *arguments: str) -> list[str]:
    """The command as a user would type it."""
    program = [sys.executable, "-m", "streaming.cli.main"]
    return [*program, command, "--config", str(folder.config), *arguments]


def _reader(config: Config) -> Reader | None:
    """The hub's state as of its last commit; None before there is one."""
    try:
        reader = open_state(config.hub.state)
    except StateError:
        return None
    return reader if reader.commit is not None else None


def _hub_epoch(config: Config) -> int:
    """The last committed hub epoch."""
    reader = _reader(config)
    return 0 if reader is None or reader.commit is None else reader.commit.state.hub_epoch


def _is_attached(config: Config) -> bool:
    """Return whether the hub has received every replica's hello."""
    reader = _reader(config)
    return reader is not None and all(lag.has_hello for lag in lags(config, reader))


def _is_level(config: Config, folder: DemoFolder) -> bool:
    """Return whether every journal is in its topic, judged, and applied by all replicas."""
    databases = [folder.database(name) for name in REPLICAS]
    if not all(map(published_all, databases)):
        return False
    reader = _reader(config)
    if reader is None or reader.commit is None:
        return False
    ruv = reader.commit.state.ruv_of(DEFAULT_DATASET)
    is_known = all(ruv.covers(csn) for csn in map(last_write, databases) if csn)
    return is_known and all(lag.is_level for lag in lags(config, reader))


def _not_level(config: Config) -> str:
    """What is not level, as text."""
    reader = _reader(config)
    if reader is None or reader.commit is None:
        return "the hub has not committed a batch: see its log"
    lines = [_lagging(lag) for lag in lags(config, reader) if not lag.is_level]
    kept = reader.quarantine_counts()
    quarantine = [f"in quarantine: {as_counts(kept)}"] if kept else []
    known = [f"the hub knows: {', '.join(reader.commit.state.ruv_of(DEFAULT_DATASET).text())}"]
    head = f"not all are level with hub epoch {reader.commit.state.hub_epoch}"
    return "\n".join([head, *lines, *quarantine, *known])


def _lagging(lag: Lag) -> str:
    if not lag.has_hello:
        return f"{lag.consumer} has not sent a hello: see its agent's log"
    stopped = ", stopped" if lag.is_stopped else ""
    lacking = ", ".join(map(str, lag.lacking)) or "none"
    return (
        f"{lag.consumer}: {lag.state}{stopped}, acknowledged {lag.acked_covers},"
        f" {as_count(lag.epochs, 'hub epoch')} behind, lacks changes of rid {lacking}"
    )
