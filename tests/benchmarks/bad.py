"""A replica whose records are all broken: how fast they are quarantined, and how long others wait.

The other replicas write good ones at a steady rate meanwhile.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.config.config import Config
from tests.benchmarks import broken
from tests.benchmarks.agents import agents_running
from tests.benchmarks.counting import WrongCountError, count, records_of
from tests.benchmarks.environment import (
    BatchTimes,
    BenchmarkEnvironment,
    HubKind,
    HubProbe,
    running,
    topics_of,
    wait,
    watching,
)
from tests.benchmarks.load import WRITERS, Load, new_load, publish, publish_hellos
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import middle
from tests.benchmarks.sizes import Sizes

GOOD_PER_S = 300
REPLICAS = len(WRITERS) + 1
"""The last one only writes what is broken."""
_HUB_EPOCH = re.compile(rb'"hub_epoch":(\d+)')
_SENT = re.compile(rb'"sent_ms":"(\d+)"')


@dataclass(frozen=True, slots=True)
class _Flood:
    """The result of one flood of broken records."""

    per_s: float
    waited_batches: int
    peak_mib: int


def bad(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The median speed; the longest that a good record waited; the first flood warms up."""
    floods = [_flood(environment, turn, sizes) for turn in range(sizes.rounds + 1)][1:]
    rounds = [{"bad": flood.per_s} for flood in floods]
    return {
        "bad": {
            "per_s": round(middle(rounds, "bad")),
            "good_waited_batches": max(flood.waited_batches for flood in floods),
            "memory_last_to_first": round(floods[-1].peak_mib / max(floods[0].peak_mib, 1), 3),
            "records": sizes.bad_events,
            "good_per_s": GOOD_PER_S,
            "peak_mib": max(flood.peak_mib for flood in floods),
            "rounds": rounds,
        }
    }


def _flood(environment: BenchmarkEnvironment, turn: int, sizes: Sizes) -> _Flood:
    """A new hub finds the broken records in its topic; all of them go to quarantine."""
    config, load, probe = (
        environment.config(HubKind(f"bad{turn}", REPLICAS)),
        new_load(),
        HubProbe(),
    )
    publish_hellos(environment.bootstrap, topics_of(config))
    source = config.replicas[-1]
    values = broken.records(load, source.name, source.rid, sizes.bad_events)
    publish(environment.bootstrap, config.changes_topic(source.name), source.name, values)
    task = replace(
        environment.task(config), per_s=GOOD_PER_S, seconds=sizes.bad_good_s, base_s=load.base_s
    )

    def done() -> bool:
        return probe.judged >= task.changes and probe.quarantined >= sizes.bad_events

    with watching(environment) as memory, agents_running(task), running(environment, config, probe):
        wait(done, "all broken records in quarantine, all good ones judged", probe)
    _count(environment, config, load, task.changes, sizes.bad_events)
    batches = [batch for batch in probe.batches if batch.quarantined]
    seconds = batches[-1].published_s - batches[0].planned_s
    waited = max(_waits(environment, config, probe.batches))
    return _Flood(sizes.bad_events / seconds, waited, memory.peak_mib)


def _count(
    environment: BenchmarkEnvironment, config: Config, load: Load, good: int, bad_events: int
) -> None:
    """WrongCountError unless each good record was delivered and each broken one is kept."""
    count(config, environment.bootstrap, load, good // len(WRITERS))
    kept = StateStore(config.hub.state).read(TableName.QUARANTINE, columns=["csn"]).num_rows
    if kept != bad_events:
        raise WrongCountError(f"{kept} records are in quarantine, {bad_events} were broken")


def _waits(
    environment: BenchmarkEnvironment, config: Config, batches: Sequence[BatchTimes]
) -> Iterator[int]:
    """For each delivery of a good record: how many batches ended between append and its own.

    The batch in progress when it was appended counts.
    """
    ends_s = [batch.published_s for batch in batches]
    place = {batch.hub_epoch: n for n, batch in reversed(list(enumerate(batches)))}
    for agreement in config.agreements:
        for _, value in records_of(environment.bootstrap, config.updates_topic(agreement.name)):
            found = _HUB_EPOCH.search(value)
            if found is None:
                raise WrongCountError(f"an update without a hub epoch: {value[:200]!r}")
            own = place[int(found[1])]
            for sent_ms in _SENT.findall(value):
                sent_s = int(sent_ms) / 1_000
                yield sum(sent_s < end_s for end_s in ends_s[:own])
