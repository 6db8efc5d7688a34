"""Throughput in alternation: the hub, Spark alone that reads and parses, and the naive peer."""

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from streaming.config.config import Config
from tests.benchmarks import naive, source
from tests.benchmarks.environment import (
    BenchmarkEnvironment,
    HubKind,
    HubRun,
    fill,
    process_backlog,
)
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers, plain
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15
"""Two of three of these come second: one percent of all is in conflict."""

HUB, BOUND, NAIVE, NAIVE_10M = "hub", "read_and_parse", "naive", "naive_10m"


def throughput(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """Changes a second of the hub, of Spark's from_json alone, and of the peer in two tables.

    A whole turn warms them up. Memory is that of the first hub: a peer's stays in the JVM.
    """
    sides = ([NAIVE, NAIVE_10M] if sizes.naive_rows else [NAIVE]) if sizes.naive_rounds else []
    past = naive.table(environment, NAIVE_10M, sizes.naive_rows if NAIVE_10M in sides else 0)
    rounds, hubs = list[Round](), list[HubRun]()
    for turn in range(sizes.rounds + 1):
        run, found = _hub_and_bound(environment, HubKind(f"throughput{turn}"), sizes.events)
        for side in sides if turn <= sizes.naive_rounds else ():
            rows = past if side == NAIVE_10M else None
            peer = naive.run(environment, run.config, f"{side}{turn}", sizes.naive_events, rows)
            found[side] = peer.events_per_s
        if turn:
            rounds.append(found)
        hubs.append(run)
    return {
        "throughput": {
            **{f"{side}_per_s": round(middle(rounds, side)) for side in (HUB, BOUND, *sides)},
            "ratio_to_bound": ratio(rounds, HUB, BOUND),
            **{f"ratio_to_{side}": ratio(rounds, HUB, side) for side in sides},
            "naive_10m_rows": sizes.naive_rows,
            **_facts(hubs[1:]),
            "peak_mib": hubs[0].memory.peak_mib,
            "rounds": rounds,
        }
    }


def executors(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The same, without peers, when the executors carry the rows."""
    kind = HubKind("", driver_batch_records=0)
    turns = [
        _hub_and_bound(environment, replace(kind, name=f"executors{turn}"), sizes.events)
        for turn in range(sizes.rounds + 1)
    ][1:]
    rounds = [found for _, found in turns]
    return {
        "executors": {
            "hub_per_s": round(middle(rounds, HUB)),
            "ratio_to_bound": ratio(rounds, HUB, BOUND),
            **_facts([run for run, _ in turns]),
            "peak_mib": max(run.memory.peak_mib for run, _ in turns),
            "rounds": rounds,
        }
    }


def _hub_and_bound(
    environment: BenchmarkEnvironment, kind: HubKind, events: int
) -> tuple[HubRun, dict[str, float]]:
    """One run of the hub, and of what only reads and parses its input."""
    each = events // len(WRITERS)
    config, load = environment.config(kind), new_load(SHARED_OF_1000)
    fill(environment, config, load, each)
    run = process_backlog(environment, config, load, each)
    return run, {HUB: run.events_per_s, BOUND: _bound(environment, config, each * len(WRITERS))}


def _bound(environment: BenchmarkEnvironment, config: Config, events: int) -> float:
    """Events a second of reading, and parsing every member of a change."""
    records = source.whole(environment.spark, config)
    parsed = records.select("topic", "offset", "timestamp", source.parsed().alias("record"))
    started = time.perf_counter()
    whole = parsed.select("topic", "offset", "timestamp", "record.*")
    whole.write.format("noop").mode("overwrite").save()
    return events / (time.perf_counter() - started)


def _facts(runs: Sequence[HubRun]) -> dict[str, float]:
    """The medians of the hub's other counts."""
    facts = [
        {
            "events": run.counted.written,
            "contended_percent": run.counted.contended_percent,
            "delivered": run.counted.delivered,
            "refreshes": run.counted.refreshes,
            "agents_cpu_s": round(run.seen.cpu_s, 2),
        }
        for run in runs
    ]
    return {name: plain(median(one[name] for one in facts)) for name in facts[0]}
