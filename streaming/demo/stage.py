"""A demonstration from its first process to its verdict."""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from connectors.kafka.embedded.broker import Broker
from connectors.kafka.topics import Topics
from streaming.config.closed_services import admit, start_broker, users_of
from streaming.config.config import ENV_PREFIX, Config
from streaming.config.rights import HUB, user_of
from streaming.config.sections import HttpConfig
from streaming.config.sources.load import load
from streaming.config.sources.secret_files import FOLDER_VARIABLE
from streaming.core.model.errors import HubError
from streaming.demo.databases.programs import find_or_install
from streaming.demo.databases.servers import (
    SERVERS,
    attach_servers,
    make_servers,
    start_servers,
)
from streaming.demo.folder import REPLICAS, DemoFolder
from streaming.demo.monitor import DemoError, Interrupted, PartMonitor, tail
from streaming.demo.parts import BrokerPart, ProcessPart, end_all, start_agent, start_hub
from streaming.demo.progress import ProgressSteps
from streaming.demo.replicas.acts import (
    BY_PACKETS,
    Act,
    collide,
    lose_origin,
    lose_packet,
    restore,
)
from streaming.demo.replicas.courier import Courier
from streaming.demo.scenario import DemoOptions, DemoScenario, OtherDatabase
from streaming.demo.verdict.checks import check_evidence
from streaming.demo.verdict.evidence import gather
from streaming.demo.verdict.report import facts, show
from streaming.demo.verdict.timing import read_timing, store_timing
from streaming.demo.watch import STATE_POLL_S, are_compared, is_attached, is_level, not_level
from streaming.http.server import free_port
from streaming.jvm.java import check_java
from streaming.terminal.output import write_json

START_S = 600.0
LEVEL_S = 300.0
"""Limits for a machine that is busy; an idle one needs a tenth."""


def perform(monitor: PartMonitor, options: DemoOptions) -> int:
    """Run a demonstration and show it; the exit code. Its folder stays unless it is interrupted."""
    check_java()
    _forget_overrides()
    # failures are raised as errors of the hub
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    servers = SERVERS if options.other is OtherDatabase.POSTGRES else ()
    if servers:
        find_or_install()
    with _place(options.keep, servers) as folder:
        with ProgressSteps() as steps:
            _run(monitor, folder, steps, options)
        holds = _conclude(monitor, folder, steps.seconds, as_json=options.as_json)
        monitor.check()
    return 0 if holds else 1


def verify_kept(monitor: PartMonitor, root: Path, *, as_json: bool) -> int:
    """The verdict on a demonstration that was kept; the exit code."""
    _forget_overrides()
    return 0 if _conclude(monitor, DemoFolder(root), {}, as_json=as_json) else 1


def _conclude(
    monitor: PartMonitor, folder: DemoFolder, seconds: Mapping[str, float], *, as_json: bool
) -> bool:
    """Show what the databases say; servers are started for it once more."""
    with ExitStack() as ends:
        start_servers(folder, monitor, ends)
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
        if upper in (FOLDER_VARIABLE, *sections) or upper.startswith(
            tuple(f"{one}__" for one in sections)
        ):
            del os.environ[name]  # noqa: TID251 as above


@contextmanager
def _place(keep: Path | None, servers: Sequence[str]) -> Iterator[DemoFolder]:
    """The folder of a demonstration; a temporary one is removed if it is interrupted."""
    root = keep or Path(tempfile.mkdtemp(prefix="slackwater-demo-"))
    folder = DemoFolder(root)
    folder.make(servers)
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


def _run(
    monitor: PartMonitor, folder: DemoFolder, steps: ProgressSteps, options: DemoOptions
) -> None:
    """Start everything, wait for the workload, and end writers, agents, hub and broker in order."""
    with ExitStack() as ends:
        if folder.servers:
            with steps.step("PostgreSQL servers"):
                make_servers(folder)
                start_servers(folder, monitor, ends)
        with steps.step("closed broker" if options.secure else "broker"):
            start = start_broker if options.secure else Broker.start
            broker = BrokerPart(folder.broker, monitor, start)
            ends.callback(broker.end)
            monitor.wait(
                broker.is_ready, START_S, lambda: f"the broker does not serve: {broker.log}"
            )
            serving = broker.started.result()
            http = HttpConfig()
            port = free_port(http.host, http.port)
            is_by_packets = options.scenario is DemoScenario.PACKETS
            by_packets = BY_PACKETS if is_by_packets else None
            config = folder.configure(serving.bootstrap_servers, port, by_packets)
            if options.secure:
                admit(folder.broker, serving, users_of(config))
                # this process has the hub's login from here on
                os.environ[FOLDER_VARIABLE] = str(folder.login(user_of(HUB)))  # noqa: TID251
                config = load(folder.config)
            _make_topics(config)
        attach_servers(folder, config.table_map())
        courier = None
        if is_by_packets:
            courier = Courier(folder.hub_packets, folder.packets(BY_PACKETS))
            ends.callback(courier.end)
        with steps.step("hub and agents") as step:
            hub = start_hub(folder, monitor)
            ends.callback(hub.end)
            agents = [start_agent(folder, name, monitor) for name in REPLICAS]
            ends.callback(end_all, agents)
            monitor.wait(
                lambda: is_attached(config), START_S, lambda: not_level(config), STATE_POLL_S
            )
            pids = ", ".join(str(p.process.pid) for p in (hub, *agents))
            page = f"http://{http.host}:{port}/"
            step.show(f"processes {pids}; page at {page}")
        act = Act(monitor, folder, config, steps, ends, options.seconds)
        measured_since_ms = _perform(options.scenario, act, agents, courier)
        with steps.step("until level"):
            monitor.wait(
                lambda: is_level(config, folder), LEVEL_S, lambda: not_level(config), STATE_POLL_S
            )
        with steps.step("compared with the hub"):
            since_s = time.time()  # noqa: TID251  # the hub says by this clock when a round ended
            monitor.wait(
                lambda: are_compared(config, since_s),
                LEVEL_S,
                lambda: f"not all are compared with the hub: see {folder.log('hub')}",
                STATE_POLL_S,
            )
        if options.stay:
            with steps.step(f"stays until Ctrl-C, page at {page}"):
                monitor.wait_for_signal()
        with steps.step("end in order"):
            store_timing(read_timing(config, measured_since_ms), folder.timing)
            end_all(agents)
            hub.end()
            broker.end()
            monitor.check()
            _check_ends([*agents, hub])


def _perform(
    scenario: DemoScenario, act: Act, agents: list[ProcessPart], courier: Courier | None
) -> int:
    """Let the replicas write; since when writes are timed."""
    match scenario:
        case DemoScenario.COLLISIONS:
            return collide(act)
        case DemoScenario.RESTORE:
            return restore(act, agents)
        case DemoScenario.LOST_ORIGIN:
            return lose_origin(act, agents)
        case DemoScenario.PACKETS:
            assert courier is not None  # noqa: S101  # it carries since before the first hello
            return lose_packet(act, courier)


def _check_ends(parts: Sequence[ProcessPart]) -> None:
    """DemoError if a part did not end with exit code 0."""
    for part in parts:
        if code := part.process.returncode:
            raise DemoError(
                f"{part.name} ended with exit code {code}; {part.log} ends with:\n{tail(part.log)}"
            )


def _make_topics(config: Config) -> None:
    changes = [config.changes_topic(replica.name) for replica in config.replicas]
    updates = [config.updates_topic(agreement.name) for agreement in config.agreements]
    with Topics(config.kafka.bootstrap_servers, config.kafka.options) as admin:
        admin.ensure([*changes, *updates], config.limits.record_bytes, changes)
