"""A consumer that was away while few rows were written many times: what it is sent, and how fast.

Sending every write instead is what the other consumers were sent meanwhile.
"""

import time

from streaming.core.model.state import HubState
from tests.benchmarks.agents import agents_running
from tests.benchmarks.counting import records_of
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    running,
    topics_of,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, new_load, preload, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

ROWS = 999
AWAY = "reader0"


def absence(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Three writers write ROWS rows over and over; then a fourth replica says hello."""
    kind = HubKind("absence", replicas=len(WRITERS) + 1)
    config, probe = environment.config(kind), HubProbe()
    load, topics = new_load(own_rows=ROWS // len(WRITERS)), topics_of(config)
    each = sizes.absence_events // len(WRITERS)
    publish_hellos(environment.bootstrap, {name: topics[name] for name in WRITERS})
    preload(environment.bootstrap, topics, load, 0, each)
    task = environment.task(config)
    with agents_running(task), running(environment, config, probe) as service:
        wait(lambda: probe.judged >= each * len(WRITERS), "the hub judged everything", probe)
        with watching(environment) as memory:
            started_s = time.time()
            publish_hellos(environment.bootstrap, {AWAY: topics[AWAY]})
            wait(lambda: _is_level(service.hub.state, AWAY), "who was away is level", probe)
            seconds = time.time() - started_s
    sent = {
        name: sum(
            value.count(b'{"type":"') for _, value in records_of(environment.bootstrap, topic)
        )
        for name, topic in ((n, config.updates_topic(n)) for n in (AWAY, *WRITERS))
    }
    return {
        "absence": {
            "events": each * len(WRITERS),
            "rows": ROWS,
            "items": sent[AWAY],
            "items_ratio_to_rows": round(sent[AWAY] / ROWS, 3),
            "items_of_who_was_there": min(sent[name] for name in WRITERS),
            "seconds_to_level": round(seconds, 1),
            "peak_mib": memory.peak_mib,
        }
    }


def _is_level(state: HubState, name: str) -> bool:
    agreement = state.agreements[name]
    return agreement.session is not None and agreement.acked_covers >= state.hub_epoch
