"""The time of a small batch, from start to start, alternating with the minimum that Spark needs.

That minimum is one Delta append by Spark and one Kafka record, in a foreachBatch of the same size.
"""

import time
from itertools import pairwise
from statistics import median

from kafka import KafkaProducer
from pyspark.sql import DataFrame

from connectors.kafka.topics import ensure_topics
from streaming.config.config import Config
from tests.benchmarks import source
from tests.benchmarks.environment import BenchmarkEnvironment, HubKind, HubRun, run_preloaded, wait
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.rounds import Round, middle, ratio
from tests.benchmarks.sizes import Sizes

EVENTS = 1_000


def batch_1000(environment: BenchmarkEnvironment, sizes: Sizes) -> Numbers:
    """The median batch time of the hub and of the floor, on the same input; a turn warms up."""
    each = sizes.batches * EVENTS // len(WRITERS)
    rounds, peak_mib = list[Round](), 0
    for turn in range(sizes.rounds + 1):
        kind = HubKind(f"batch_1000_{turn}", events_per_batch=EVENTS)
        run = run_preloaded(environment, kind, new_load(10), each)
        floor_s = _floor(environment, run.config, turn, sizes.batches)
        peak_mib = max(peak_mib, run.memory.peak_mib)
        rounds.append({"hub": median(batch_times(run)), "floor": median(floor_s)})
    del rounds[0]
    return {
        "batch_1000": {
            "p50_s": round(middle(rounds, "hub"), 3),
            "floor_p50_s": round(middle(rounds, "floor"), 3),
            "ratio_to_floor": ratio(rounds, "hub", "floor"),
            "batches": sizes.batches * sizes.rounds,
            "peak_mib": peak_mib,
            "rounds": rounds,
        }
    }


def batch_times(run: HubRun) -> list[float]:
    """Seconds from the start of a batch to the start of the next, of the later half of a run."""
    starts = [batch.planned_s for batch in run.probe.working]
    return _later_half([b - a for a, b in pairwise(starts)])


def _later_half(values: list[float]) -> list[float]:
    """What is left without the start of a query."""
    return values[len(values) // 2 :]


def _floor(
    environment: BenchmarkEnvironment, config: Config, turn: int, batches: int
) -> list[float]:
    """The batch times of a query that only appends and sends one record."""
    name = f"floor{turn}"
    table, topic = str(environment.folder / name / "table"), f"{name}.updates"
    ensure_topics(environment.bootstrap, {}, [topic], config.limits.record_bytes)
    producer, starts = KafkaProducer(bootstrap_servers=environment.bootstrap), list[float]()

    def micro_batch(records: DataFrame, batch: int) -> None:
        if len(starts) >= batches:  # stopping a query at work tears its batch apart, with noise
            return
        starts.append(time.time())
        records.write.format("delta").mode("append").save(table)
        producer.send(topic, value=b"%d" % batch)
        producer.flush()

    query = (
        source.stream(environment.spark, config, EVENTS)
        .writeStream.option("checkpointLocation", str(environment.folder / name / "query"))
        .trigger(processingTime=f"{config.hub.trigger_ms} milliseconds")
        .foreachBatch(micro_batch)
        .start()
    )
    wait(lambda: len(starts) >= batches or not query.isActive, "the batches of the floor")
    if failure := query.exception():
        raise failure
    query.processAllAvailable()
    query.stop()
    producer.close()
    return _later_half([b - a for a, b in pairwise(starts)])
