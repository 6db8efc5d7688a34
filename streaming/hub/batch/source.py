"""The source of a batch's records: a micro-batch of Spark, or the topics by their offsets."""

import uuid
from collections.abc import Iterable, Mapping
from contextlib import closing

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from checkpoints.commit.epochs import Plan
from connectors.kafka.bounded_reader import BoundedReader
from connectors.kafka.options import sink_options, source_options
from streaming.carriers.apart import read_apart
from streaming.carriers.carrier import Carrier, DriverCarrier, is_carried_by_executors
from streaming.carriers.executors import ExecutorsCarrier, Sink
from streaming.carriers.parse import parse_on_driver
from streaming.carriers.read import batch
from streaming.config.config import Config
from streaming.config.sections import LimitsConfig
from streaming.core.intake.input_lost import TopicFacts
from streaming.core.model.errors import SourceError
from streaming.core.records.check import PARSED_TIMES, Limits
from streaming.core.state.topology import Topology
from streaming.hub.batch.settings import BatchSettings
from streaming.jvm.master import is_local_master
from streaming.stages.check import check_records
from streaming.stages.checked import NO_CHECKED
from streaming.stages.groups import grouped

WARM_UP_RECORDS = 100


class Source:
    """The changes topics, as Spark reads them.

    Settings and limits come with each call: a plan is read under the configuration of its version.
    `plan_options`: those for a plan; its group only names the consumers that Spark keeps for the
    next plan, and nobody joins it. Without a group each plan connects anew.
    """

    def __init__(self, spark: SparkSession, config: Config) -> None:
        kafka = config.kafka
        self.kafka = kafka
        self.spark = spark
        self.options = source_options(kafka.bootstrap_servers, kafka.options)
        self.plan_options = {"kafka.group.id": f"slackwater-{uuid.uuid4()}", **self.options}
        self.sink = Sink(sink_options(kafka.bootstrap_servers, kafka.options), config.updates_topic)

    def planned(self, plan: Plan, settings: BatchSettings, limits: LimitsConfig) -> Carrier:
        """The records of a plan, read by its offsets."""
        named = plan.named
        if not named:
            return DriverCarrier(NO_CHECKED)
        records = batch(
            self.spark,
            self.plan_options,
            {topic: settings.topics[topic] for topic in named},
            {topic: first for topic, (first, _) in named.items()},
            {topic: end for topic, (_, end) in named.items()},
            min_partitions=limits.min_partitions,
        )
        return self.carried(records, plan, settings, limits)

    def apart(self, plan: Plan, settings: BatchSettings, limits: LimitsConfig) -> Carrier:
        """The records of a plan that hubs died of, read without the JVM (carriers/apart.py)."""
        topics, tables = settings.topics, settings.topology.tables
        allowed = limits_of(limits, settings)
        bound, kafka = PARSED_TIMES * allowed.record_bytes, self.kafka
        with closing(BoundedReader(kafka.bootstrap_servers, kafka.options, bound)) as reader:
            return DriverCarrier(read_apart(reader, plan, topics, tables, allowed))

    def carried(
        self, records: DataFrame, plan: Plan, settings: BatchSettings, limits: LimitsConfig
    ) -> Carrier:
        """Return these records of a plan; SourceError if Spark delivered other offsets."""
        topics, tables = settings.topics, settings.topology.tables
        allowed = limits_of(limits, settings)
        carrier: Carrier
        if self.is_carried_by_executors(plan, limits, settings.topology):
            carrier = ExecutorsCarrier(records, topics, tables, allowed, self.sink)
        else:
            carrier = DriverCarrier(parse_on_driver(records, topics, tables, allowed))
        _check_range(carrier.facts, plan, topics)
        return carrier

    def is_carried_by_executors(self, plan: Plan, limits: LimitsConfig, topology: Topology) -> bool:
        """Return whether the executors carry the records of a plan; else the driver does.

        A filter reads the images of rows, so where there is one the driver has them.
        """
        if any(one.has_filters for one in topology.subscriptions.values()):
            return False
        is_local = is_local_master(self.spark.sparkContext.master or "")
        return is_carried_by_executors(plan.records, limits.driver_batch_records, is_local=is_local)

    def warm_up(
        self, settings: BatchSettings, limits: LimitsConfig, named: Mapping[str, tuple[int, int]]
    ) -> None:
        """Read these offsets for nobody, on every core, so that the next read is no first one.

        `named`: topic -> [first, end); none: nothing is read.
        """
        if not named:
            return
        first = {topic: first for topic, (first, _) in named.items()}
        ends = {topic: end for topic, (_, end) in named.items()}
        topics = dict.fromkeys(named, 0)
        cores = self.spark.sparkContext.defaultParallelism
        records = batch(self.spark, self.plan_options, topics, first, ends, min_partitions=cores)
        allowed = limits_of(limits, settings)
        parse_on_driver(records, topics, settings.topology.tables, allowed)

    def revalidated(
        self, records: pa.Table, settings: BatchSettings, limits: LimitsConfig
    ) -> pa.Table:
        """CHECKED of records that were in quarantine, under these settings and limits."""
        topics, tables = settings.all_topics, settings.topology.tables
        return check_records(records, topics, tables, limits_of(limits, settings))


def last_records(
    names: Iterable[str], topics: Mapping[str, TopicFacts]
) -> dict[str, tuple[int, int]]:
    """Topic -> [first, end) of its last records, of those that may be read and hold some."""
    found = {name: topics[name] for name in names if name in topics}
    there = {name: one for name, one in found.items() if one.id and one.is_readable}
    firsts = {name: max(one.first, one.end - WARM_UP_RECORDS) for name, one in there.items()}
    return {
        name: (first, there[name].end) for name, first in firsts.items() if first < there[name].end
    }


def ranges(from_: Mapping[str, int], to: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Topic -> [first, end) of the offsets that are new in `to`, where there are any."""
    return {topic: (from_[topic], end) for topic, end in to.items() if end > from_[topic]}


def furthest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Topic -> the larger of two offsets, of the topics that are in `one`."""
    return {topic: max(end, other.get(topic, end)) for topic, end in one.items()}


def limits_of(limits: LimitsConfig, settings: BatchSettings) -> Limits:
    """Return a record's limits under a configuration."""
    columns = settings.topology.columns
    return Limits(record_bytes=limits.record_bytes, writes=settings.writes, columns=columns)


def _check_range(facts: pa.Table, plan: Plan, topics: Mapping[str, int]) -> None:
    """Raise SourceError if Spark delivered offsets that are not in the plan."""
    of_each = grouped(facts, ["rid"]).aggregate([("offset", "min"), ("offset", "max")])
    names = {rid: topic for topic, rid in topics.items()}
    for row in of_each.to_pylist():
        topic, first, last = names[row["rid"]], row["offset_min"], row["offset_max"]
        if not plan.offsets_from[topic] <= first <= last < plan.offsets_to[topic]:
            raise SourceError(
                f"{topic}: Spark delivered offsets {first} to {last}, batch {plan.batch} is"
                f" [{plan.offsets_from[topic]}, {plan.offsets_to[topic]}): run the hub again"
            )
