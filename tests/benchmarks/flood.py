"""One replica floods its topic: how much longer the changes of the others take meanwhile.

The others write at a steady rate, first alone and then beside a flood, which another process writes
faster than the hub reads it. It is paced: one that writes as fast as it can takes the machine's
cores from the hub, which no hub can help. Each kind of flood is shown to a hub of its own.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import count
from statistics import quantiles
from subprocess import Popen

from streaming.hub.service import Service
from tests.benchmarks.agents import AgentTask, agents_running, report_of
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    running,
    topics_of,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, Load, new_load, publish, publish_hellos, session_of
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

PER_S = 300
FLOOD_PER_S = 10_000
REPLICAS = len(WRITERS) + 1
"""The last one floods; its rid."""
WIDE = b"x" * 2_000

FloodRecord = Callable[[Load, str, int], bytes]
"""A record of a flood, by its load, the name of its replica, and its number."""


def _junk(_load: Load, _name: str, n: int) -> bytes:
    """No JSON."""
    return b"junk %d " % n + b"x" * 80


def _valid(load: Load, name: str, n: int) -> bytes:
    """A plain change of a row that nobody else writes."""
    return _as_of(replace(load, own_rows=1_000_000), name, n)


def _dear(load: Load, name: str, n: int) -> bytes:
    """A wide change that is in conflict with a row of another replica."""
    return _as_of(load, name, n).replace(b"customer", WIDE)


def _as_of(load: Load, name: str, n: int) -> bytes:
    """The change of another writer, as this replica would write it."""
    text = load.change("alpha", n).replace(session_of("alpha"), session_of(name))
    return text.replace(load.csn(WRITERS["alpha"], n), load.csn(REPLICAS, n)).encode()


KINDS: Mapping[str, FloodRecord] = {
    "junk": _junk,
    "valid": _valid,
    "dear": _dear,
}
"""The records of each kind of flood."""


def flood(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The others' latency alone and beside each kind; the ratio is that of the worst kind."""
    found = {kind: _flood(environment, kind, sizes.flood_s) for kind in sizes.floods}
    worst = max(one["p99_s"] / one["usual_p99_s"] for one in found.values())
    named = {f"{kind}_{name}": value for kind, one in found.items() for name, value in one.items()}
    return {"flood": {"others_p99_ratio": round(worst, 3), **named}}


def _flood(environment: BenchmarkEnvironment, kind: str, seconds: float) -> dict[str, float]:
    """The others' latency alone and beside the flood; before that they warm the hub up."""
    config = environment.config(HubKind(f"flood_{kind}", REPLICAS))
    topic = config.changes_topic(config.replicas[-1].name)
    publish_hellos(environment.bootstrap, topics_of(config))
    load, probe, first, numbers = new_load(), HubProbe(), 0, dict[str, float]()
    flooding = _flooding(environment.bootstrap, topic, kind, load)
    turns = (("warm_", nullcontext()), ("usual_", nullcontext()), ("", flooding))
    with watching(environment) as memory, running(environment, config, probe) as service:
        for name, beside in turns:
            task = _live(environment.task(config), seconds, load, first)
            first += task.changes // len(WRITERS)
            with agents_running(task), beside:
                judged = partial(_are_judged, service, load, first - 1)
                wait(judged, "the others' changes are judged", probe)
            cuts = quantiles(report_of(task).latencies_ms, n=100)
            numbers[f"{name}p50_s"] = round(cuts[49] / 1_000, 3)
            numbers[f"{name}p99_s"] = round(cuts[98] / 1_000, 3)
        read_per_s = round(service.hub.read_to[topic] / seconds)
    return {**numbers, "read_per_s": read_per_s, "peak_mib": memory.peak_mib}


def _live(task: AgentTask, seconds: float, load: Load, first: int) -> AgentTask:
    """The writers at a steady rate, from this change of each on."""
    late = replace(task, is_late=True, first=first, result=f"{task.result}.{first}")
    return replace(late, per_s=PER_S, seconds=seconds, base_s=load.base_s)


def _are_judged(service: Service, load: Load, last: int) -> bool:
    """Whether the hub has judged this change of each writer, and all before it."""
    largest = service.hub.state.largest
    return all(largest.get(rid, "") >= load.csn(rid, last) for rid in WRITERS.values())


@contextmanager
def _flooding(bootstrap: str, topic: str, kind: str, load: Load) -> Iterator[None]:
    """The flood, written by a process of its own until the end."""
    arguments = bootstrap, topic, kind, str(load.base_s)
    process = Popen([sys.executable, "-m", "tests.benchmarks.flood", *arguments])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def main(bootstrap: str, topic: str, kind: str, base_s: str) -> None:
    """Write the flood, until the process is killed."""
    load, name = Load(int(base_s)), topic.rpartition(".")[2]
    publish(bootstrap, topic, name, _paced(partial(KINDS[kind], load, name)))


def _paced(record: Callable[[int], bytes]) -> Iterator[bytes]:
    """The records of a flood, without end, so many in a second."""
    began_s = time.monotonic()
    for n in count():
        if n % 100 == 0:
            time.sleep(max(0.0, began_s + n / FLOOD_PER_S - time.monotonic()))
        yield record(n)


if __name__ == "__main__":
    main(*sys.argv[1:])
