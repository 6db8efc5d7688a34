"""A consumer that was away while few rows were written many times: what it is sent, and how fast.

Sending every write instead is what the other consumers were sent meanwhile. They go on writing at a
steady rate while it is brought what it lacks.
"""

import re
import time
from dataclasses import replace
from statistics import quantiles

from streaming.core.model.statuses import AgreementStatus
from streaming.core.state.hub_state import HubState
from tests.benchmarks.agents import AgentTask, agents_running, report_of
from tests.benchmarks.counting import WrongCountError, records_of
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    running,
    topics_of,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, Load, new_load, preload, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

ROWS = 999
AWAY = "reader0"
LIVE_PER_S = 500
_CSN = re.compile(rb'"csn":"([0-9a-f]{12})')


def absence(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Three writers write ROWS rows over and over; then a fourth replica says hello.

    WrongCountError if it is sent more than two items for each row.
    """
    kind = HubKind("absence", replicas=len(WRITERS) + 1)
    config, probe = environment.config(kind), HubProbe()
    load, topics = new_load(own_rows=ROWS // len(WRITERS)), topics_of(config)
    each = sizes.absence_events // len(WRITERS)
    publish_hellos(environment.bootstrap, {name: topics[name] for name in WRITERS})
    preload(environment.bootstrap, topics, load, 0, each)
    task = replace(environment.task(config), names=tuple(WRITERS))
    alone = _live(task, sizes, load, each)
    beside = _live(task, sizes, load, each + alone.changes // len(WRITERS))
    events = each * len(WRITERS)
    with running(environment, config, probe) as service:
        with agents_running(task):
            wait(lambda: probe.judged >= events, "the hub judged everything", probe)
        with agents_running(alone):
            _wait_for(probe, events + alone.changes)
        away = replace(task, names=(AWAY,), result=f"{task.result}.{AWAY}")
        with watching(environment) as memory, agents_running(away), agents_running(beside):
            began_s = time.time()
            publish_hellos(environment.bootstrap, {AWAY: topics[AWAY]})
            wait(lambda: is_back(service.hub.state, AWAY), "who was away is back", probe)
            seconds = time.time() - began_s
            _wait_for(probe, events + alone.changes + beside.changes)
    before = load.csn(0, each)
    sent = {name: _items(environment, config.updates_topic(name), before) for name in task.names}
    items = _items(environment, config.updates_topic(AWAY), before)
    if not ROWS <= items <= 2 * ROWS:
        raise WrongCountError(f"{AWAY} was sent {items} items for {ROWS} rows")
    alone_s, beside_s = _p99_s(alone), _p99_s(beside)
    return {
        "absence": {
            "events": events,
            "rows": ROWS,
            "items": items,
            "items_ratio_to_rows": round(items / ROWS, 3),
            "items_of_who_was_there": min(sent.values()),
            "seconds_to_level": round(seconds, 1),
            "others_p99_s": alone_s,
            "others_p99_s_meanwhile": beside_s,
            "others_p99_ratio": round(beside_s / alone_s, 3),
            "peak_mib": memory.peak_mib,
        }
    }


def _live(task: AgentTask, sizes: Sizes, load: Load, first: int) -> AgentTask:
    """The same replicas at work at a steady rate, from this change of each on."""
    late = replace(task, is_late=True, first=first, result=f"{task.result}.{first}")
    return replace(late, per_s=LIVE_PER_S, seconds=sizes.absence_s, base_s=load.base_s)


def _wait_for(probe: HubProbe, judged: int) -> None:
    wait(lambda: probe.judged >= judged, f"the hub judged {judged} changes", probe)


def is_back(state: HubState, name: str) -> bool:
    """Whether a consumer that was away, or that is new, has acknowledged all that it lacked."""
    agreement = state.agreements[name]
    is_level = agreement.status is AgreementStatus.IN_SYNC and agreement.resync is None
    return is_level and agreement.acked_covers > 0


def _items(environment: BenchmarkEnvironment, topic: str, before: str) -> int:
    """How many items of changes a topic has whose CSNs are below this one."""
    end = before[:12].encode()
    values = (value for _, value in records_of(environment.bootstrap, topic))
    return sum(csn < end for value in values for csn in _CSN.findall(value))


def _p99_s(task: AgentTask) -> float:
    return round(quantiles(report_of(task).latencies_ms, n=100)[98] / 1_000, 3)
