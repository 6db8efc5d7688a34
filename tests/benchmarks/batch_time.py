"""The time of a small batch, from start to start, beside the least that Spark alone could do.

That least is one Delta append by Spark and one Kafka record, in a foreachBatch of the same size.
"""

import time
from itertools import pairwise
from statistics import median

from kafka import KafkaProducer
from pyspark.sql import DataFrame

from connectors.kafka.client import ensure_topics, source_options
from streaming.carriers.read import stream
from streaming.config.config import Config
from tests.benchmarks.ground import Ground, HubKind, Run, run_preloaded, topics_of, wait
from tests.benchmarks.load import WRITERS, new_load
from tests.benchmarks.report import Numbers
from tests.benchmarks.sizes import Sizes

EVENTS = 1_000


def batch_1000(ground: Ground, sizes: Sizes) -> Numbers:
    """The median batch time of the hub and of the floor, on the same input; the later half."""
    each = sizes.batches * EVENTS // len(WRITERS)
    run = run_preloaded(ground, HubKind("batch_1000", events_per_batch=EVENTS), new_load(10), each)
    floor_s = _floor(ground, run.config, sizes.batches // 2)
    hub_s = batch_times(run)
    return {
        "batch_1000": {
            "p50_s": round(median(hub_s), 3),
            "floor_p50_s": round(median(floor_s), 3),
            "ratio_to_floor": round(median(hub_s) / median(floor_s), 3),
            "batches": len(hub_s),
            "floor_batches": len(floor_s),
            "peak_mib": run.memory.peak_mib,
        }
    }


def batch_times(run: Run) -> list[float]:
    """Seconds from the start of a batch to the start of the next, of the later half of a run."""
    starts = [batch.planned_s for batch in run.probe.working]
    return later_half([b - a for a, b in pairwise(starts)])


def later_half(values: list[float]) -> list[float]:
    """What a warm JVM did."""
    return values[len(values) // 2 :]


def _floor(ground: Ground, config: Config, batches: int) -> list[float]:
    """The batch times of a query that only appends and sends one record."""
    table, topic = str(ground.folder / "floor" / "table"), "floor.updates"
    ensure_topics(ground.bootstrap, {}, [topic], config.limits.record_bytes)
    producer, starts = KafkaProducer(bootstrap_servers=ground.bootstrap), list[float]()

    def micro_batch(records: DataFrame, batch: int) -> None:
        if len(starts) > batches:  # stopping a query at work tears its batch apart, with noise
            return
        starts.append(time.time())
        records.write.format("delta").mode("append").save(table)
        producer.send(topic, value=b"%d" % batch)
        producer.flush()

    topics = {name: WRITERS[writer] for writer, name in topics_of(config).items()}
    records = stream(
        ground.spark,
        source_options(ground.bootstrap, config.kafka.options),
        topics,
        dict.fromkeys(topics, 0),
        offsets_per_batch=EVENTS,
        min_partitions=config.limits.min_partitions,
    )
    query = (
        records.writeStream.option("checkpointLocation", str(ground.folder / "floor" / "query"))
        .trigger(processingTime=f"{config.hub.trigger_ms} milliseconds")
        .foreachBatch(micro_batch)
        .start()
    )
    wait(lambda: len(starts) > batches or not query.isActive, "the batches of the floor")
    if failure := query.exception():
        raise failure
    query.processAllAvailable()
    query.stop()
    producer.close()
    return later_half([b - a for a, b in pairwise(starts)])
