"""Throughput: preloaded changes through the hub, beside only reading them and the naive peer."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from connectors.kafka.client import end_offsets, source_options
from streaming.carriers.read import batch
from streaming.config.config import Config
from streaming.stages.parse import FIELDS
from tests.benchmarks import naive
from tests.benchmarks.ground import (
    EVENTS_PER_BATCH,
    Ground,
    HubKind,
    Run,
    fill,
    topics_of,
    work_off,
)
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers, plain
from tests.benchmarks.sizes import Sizes

SHARED_OF_1000 = 15
"""Two of three of these come second: one percent of all is in conflict."""


def throughput(ground: Ground, sizes: Sizes) -> Numbers:
    """The medians of several runs; before them one micro-batch each warms hub and peer up.

    The peer comes when the hub is done, on the same topics: its memory is not the hub's.
    """
    warm_up, few = _hub(ground, HubKind("warm_up"), min(EVENTS_PER_BATCH, sizes.events))
    hubs = [_hub(ground, HubKind(f"throughput{n}"), sizes.events) for n in range(sizes.runs)]
    runs = [found for _, found in hubs]
    if sizes.naive_runs:
        _peer(ground, warm_up, few["events"])
    for config, found in hubs[: sizes.naive_runs]:
        found.update(_peer(ground, config, min(sizes.naive_events, found["events"])))
    speed = _medians(runs)
    peers = {"ratio_to_naive": round(speed["hub"] / speed["naive"], 2)} if "naive" in speed else {}
    return {
        "throughput": {
            **{f"{name}_per_s": round(speed[name]) for name in _SPEEDS if name in speed},
            "ratio_to_bound": _ratio_to_bound(speed),
            **peers,
            **_rest(speed),
            "runs": [{name: plain(value) for name, value in run.items()} for run in runs],
        }
    }


_SPEEDS = ("read_and_parse", "hub", "naive")


def executors(ground: Ground, sizes: Sizes) -> Numbers:
    """The same when the executors carry the rows: the median of several runs behind a warm-up."""
    kind = HubKind("executors_warm_up", driver_batch_records=0)
    _hub(ground, kind, min(EVENTS_PER_BATCH, sizes.events))
    kinds = [replace(kind, name=f"executors{n}") for n in range(sizes.runs)]
    runs = [found for _, found in (_hub(ground, one, sizes.events) for one in kinds)]
    speed = _medians(runs)
    return {
        "executors": {
            "hub_per_s": round(speed["hub"]),
            "ratio_to_bound": _ratio_to_bound(speed),
            **_rest(speed),
        }
    }


def _medians(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each number; of memory the peak."""
    found = {name: [run[name] for run in runs if name in run] for name in runs[0]}
    return {n: max(several) if n == "peak_mib" else median(several) for n, several in found.items()}


def _ratio_to_bound(speed: Mapping[str, float]) -> float:
    return round(speed["hub"] / speed["read_and_parse"], 3)


def _rest(speed: Mapping[str, float]) -> dict[str, float]:
    return {name: plain(value) for name, value in speed.items() if name not in _SPEEDS}


def _hub(ground: Ground, kind: HubKind, events: int) -> tuple[Config, dict[str, float]]:
    """One run of the hub, behind what only reads and parses its input."""
    each = events // len(WRITERS)
    config, load = ground.config(kind), new_load(SHARED_OF_1000)
    fill(ground, config, load, each)
    bound = _bound(ground, config, each * len(WRITERS))
    run = work_off(ground, config, load, each)
    return config, {"read_and_parse": bound, **_facts(run)}


def _peer(ground: Ground, config: Config, events: float) -> dict[str, float]:
    """One run of the naive peer on a hub's input."""
    name = f"naive_{config.hub.topic_prefix.rstrip('.')}"
    peer = naive.run(ground, config, name, round(events))
    return {
        "naive": peer.events_per_s,
        "naive_delivered": peer.delivered,
        "naive_batches": peer.batches,
    }


def _facts(run: Run) -> dict[str, float]:
    return {
        "hub": run.events_per_s,
        "events": run.counted.written,
        "contended_percent": run.counted.contended_percent,
        "delivered": run.counted.delivered,
        "refreshes": run.counted.refreshes,
        "agents_cpu_s": round(run.seen.cpu_s, 2),
        "peak_mib": run.memory.peak_mib,
    }


def _bound(ground: Ground, config: Config, events: int) -> float:
    """Events a second of reading, and taking apart with the hub's schema."""
    topics = {topic: WRITERS[writer] for writer, topic in topics_of(config).items()}
    ends = end_offsets(ground.bootstrap, {}, list(topics))
    source = source_options(ground.bootstrap, config.kafka.options)
    records = batch(ground.spark, source, topics, dict.fromkeys(topics, 0), ends)
    schema = ", ".join(f"`{name}` {kind}" for name, kind in FIELDS.items())
    received = F.from_json(F.col("value").cast("string"), schema).alias("said")
    parsed = records.select("topic", "offset", "timestamp", received)
    return events / _seconds(parsed.select("topic", "offset", "timestamp", "said.*"))


def _seconds(frame: DataFrame) -> float:
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started
