"""What the replicas of a demonstration do between their first hello and the end of all writing."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from streaming.config.config import Config
from streaming.core.text.wording import as_count
from streaming.demo.databases.contract import ReplicaDatabase
from streaming.demo.databases.found import database_of
from streaming.demo.folder import REPLICAS, DemoFolder
from streaming.demo.monitor import PartMonitor
from streaming.demo.parts import ProcessPart, retire, send_again, start_agent
from streaming.demo.progress import ProgressSteps
from streaming.demo.replicas.courier import Courier, store_lost_packet
from streaming.demo.replicas.workload import Workload
from streaming.demo.watch import STATE_POLL_S, hub_epoch, not_level

WAIT_S = 600.0
"""A limit for a machine that is busy; an idle one needs a tenth."""
WARM_UP_EPOCHS = 20
"""The hub epochs before the clock runs; by then the hub has used all of its code several times."""
RESTORED = "oslo"
"""The replica whose file is restored from a backup."""
DEAD = "lisbon"
"""The replica that dies for ever."""
AWAY = "berlin"
"""The replica that is away when it does."""
BY_PACKETS = "oslo"
"""The replica that Kafka does not reach."""
BEHIND = 3
"""How many packets wait behind the one that is lost before it is sent again, at least."""
EARLY_WRITES = 5
"""How many transactions the file that was restored takes before its agent starts."""


@dataclass(frozen=True, slots=True)
class Act:
    """A stage on which hub and agents are at work; `ends`: what is called at the end."""

    monitor: PartMonitor
    folder: DemoFolder
    config: Config
    steps: ProgressSteps
    ends: ExitStack
    seconds: float

    def database(self, name: str) -> ReplicaDatabase:
        """A replica's database."""
        return database_of(self.folder, name, REPLICAS[name], self.config.table_map())

    def workload(self, names: Sequence[str]) -> Workload:
        """Let these replicas write ordinary traffic."""
        made = Workload({name: self.database(name) for name in names}, self.seconds)
        self.ends.callback(made.end)
        return made

    def warm_up(self, workloads: Sequence[Workload]) -> None:
        """Wait until the hub has used all of its code."""
        with self.steps.step("warm-up", total=WARM_UP_EPOCHS) as step:

            def is_warm() -> bool:
                for workload in workloads:
                    workload.check()
                epochs = hub_epoch(self.config)
                step.show(as_count(epochs, "hub epoch"), epochs)
                return epochs >= WARM_UP_EPOCHS

            self.monitor.wait(is_warm, WAIT_S, lambda: not_level(self.config), STATE_POLL_S)

    def write_on(self, name: str, workloads: Sequence[Workload]) -> None:
        """Wait while ordinary traffic goes on."""
        began_s = time.monotonic()
        with self.steps.step(name, total=self.seconds) as step:

            def is_over() -> bool:
                for workload in workloads:
                    workload.check()
                passed_s = time.monotonic() - began_s
                step.show(as_count(sum(w.actions for w in workloads), "transaction"), passed_s)
                return passed_s >= self.seconds

            self.monitor.wait(is_over, self.seconds + WAIT_S, lambda: "the replicas still write")


def collide(act: Act) -> int:
    """Three replicas write the same rows at once; since when writes are timed."""
    workload = act.workload(tuple(REPLICAS))
    act.warm_up([workload])
    with act.steps.step("three replicas write", total=act.seconds) as step:
        measured_since_ms = workload.begin()

        def is_done() -> bool:
            step.show(workload.described(), workload.progress())
            return workload.is_done()

        act.monitor.wait(is_done, act.seconds + WAIT_S, lambda: "the replicas still write")
        workload.end()
    return measured_since_ms


def restore(act: Act, agents: list[ProcessPart]) -> int:
    """One replica is restored from a backup under the others' traffic; since when writes are timed.

    `agents`: those at work, in the order of the replicas; the one that is started again is added.
    """
    others = act.workload([name for name in REPLICAS if name != RESTORED])
    own = act.workload([RESTORED])
    act.warm_up([others, own])
    act.folder.back_up(RESTORED)
    measured_since_ms = time.time_ns() // 1_000_000
    act.write_on(f"three replicas write, {RESTORED} beyond its backup", [others, own])
    with act.steps.step(f"{RESTORED} is restored from its backup"):
        _put_back(act, own, agents)
        own = act.workload([RESTORED])
        agents.append(_start_again(act, own))
    act.write_on("three replicas write", [others, own])
    own.end()
    others.end()
    return measured_since_ms


def lose_origin(act: Act, agents: list[ProcessPart]) -> int:
    """One replica is away while another one writes and dies for ever; since when writes are timed.

    `agents`: those at work, in the order of the replicas; those that end are replaced or removed.
    """
    away, dead = (agents[list(REPLICAS).index(name)] for name in (AWAY, DEAD))
    others = act.workload([name for name in REPLICAS if name != DEAD])
    own = act.workload([DEAD])
    act.warm_up([others, own])
    measured_since_ms = time.time_ns() // 1_000_000
    act.write_on("three replicas write", [others, own])
    with act.steps.step(f"{AWAY} goes away"):
        away.end()
        agents.remove(away)
    act.write_on(f"{DEAD} writes what {AWAY} does not get", [others, own])
    with act.steps.step(f"{DEAD} dies"):
        dead.kill()
        agents.remove(dead)
        _write_more(act, own)
        own.end()
    with act.steps.step(f"slackwater retire {DEAD}, and {AWAY} comes back"):
        retire(act.folder, DEAD)
        agents.append(start_agent(act.folder, AWAY, act.monitor))
    act.write_on("two replicas write", [others])
    others.end()
    return measured_since_ms


def lose_packet(act: Act, courier: Courier) -> int:
    """One replica is fed by files, of which one is lost; since when writes are timed.

    What follows waits in the folder of the replica until the lost one is sent again.
    """
    workload = act.workload(tuple(REPLICAS))
    act.warm_up([workload])
    measured_since_ms = time.time_ns() // 1_000_000
    act.write_on(f"three replicas write, {BY_PACKETS} by packets", [workload])
    with act.steps.step(f"a packet to {BY_PACKETS} is lost") as step:
        courier.lose_next()

        def is_stuck() -> bool:
            workload.check()
            courier.check()
            step.show(as_count(courier.waiting(), "packet waits", "packets wait"))
            return courier.lost is not None and courier.waiting() >= BEHIND

        act.monitor.wait(is_stuck, WAIT_S, lambda: "no packet waits", STATE_POLL_S)
    with act.steps.step(f"slackwater chepoch {BY_PACKETS} --actual"):
        asked_ms = time.time_ns() // 1_000_000
        said = send_again(act.folder, BY_PACKETS)
        store_lost_packet(act.folder.lost_packet, BY_PACKETS, courier, asked_ms, said["entries"])
    act.write_on("three replicas write", [workload])
    workload.end()
    return measured_since_ms


def _write_more(act: Act, workload: Workload) -> None:
    """Wait until there is a little that no agent publishes."""
    before = workload.actions

    def is_written() -> bool:
        workload.check()
        return workload.actions >= before + EARLY_WRITES

    act.monitor.wait(is_written, WAIT_S, lambda: "nobody writes")


def _put_back(act: Act, own: Workload, agents: Sequence[ProcessPart]) -> None:
    """End the replica's clients and its agent, once the hub can know all that it wrote."""
    database = act.database(RESTORED)
    own.end()
    act.monitor.wait(database.published_all, WAIT_S, lambda: f"{database.place}: not published")
    agents[list(REPLICAS).index(RESTORED)].end()
    act.folder.put_back(RESTORED)


def _start_again(act: Act, own: Workload) -> ProcessPart:
    """Start the agent when the file was written already; wait until its session starts."""
    database = act.database(RESTORED)
    before = database.agent_session()
    _write_more(act, own)
    agent = start_agent(act.folder, RESTORED, act.monitor)
    act.monitor.wait(
        lambda: database.agent_session() != before, WAIT_S, lambda: f"no session: {agent.log}"
    )
    return agent
