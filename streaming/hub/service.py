"""The hub as a process: one state, one Spark query, and an orderly end."""

import gc
import logging
import os
import re
import shutil
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints import faults
from checkpoints.commit import Ledger, create_state, open_ledger
from checkpoints.config import commands, documents, settings_document, store_configuration
from checkpoints.epochs import Checkpoint, Plan, plan_of, plan_topic_ids
from checkpoints.lock import only_hub
from checkpoints.maintenance import Maintenance
from checkpoints.store import StateStore, storage_errors
from checkpoints.tables import TableName
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import Topics
from streaming.carriers.carrier import Carrier
from streaming.carriers.offsets import end_offsets
from streaming.carriers.read import stream
from streaming.config.config import Config
from streaming.config.functions import loaded
from streaming.config.history import check_history, config_history
from streaming.core.model.command import Command
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.errors import HubError, SourceError
from streaming.core.model.membership import adopted, retired_of, sending_only
from streaming.core.model.state import HubState
from streaming.core.model.topology import Subscription, Topology
from streaming.core.model.wording import as_count
from streaming.hub.hub import Hub, resume
from streaming.hub.pipeline import Read, bring_rows_up, process
from streaming.hub.poll import CONNECT_MS, TopicPoll
from streaming.hub.publishing import publish
from streaming.hub.report import HubReport
from streaming.hub.retired import check_readable, originals
from streaming.hub.settings import BatchSettings, Effects
from streaming.hub.source import Source, ranges
from streaming.hub.stopping import StopSignals
from streaming.hub.upkeep import MaterializeEvery
from streaming.jvm.java import check_java
from streaming.stages.publish import ChunkLimits

LOG = logging.getLogger("slackwater")

FAULT_VARIABLE = "SLACKWATER_FAULT"
IDLE_S = 0.2
COLLECT_AFTER = (50_000, 10, 10)
"""Python looks for cycles after so many new objects, 700 by default: a large batch adds a row to
the window for each of its changes, and all would be looked at time and again."""
KEPT_MS = 10_000
"""How long Arrow keeps memory that is free: each batch needs as much as the one before, and what
comes from the system anew is cleared page by page, which takes longer than to fill it."""
CHECKPOINTS = "spark"
STALE_CHECKPOINT_S = 86_400


def topology_of(config: Config, *, judges: bool = True) -> Topology:
    """What the pure core needs of the configuration; users' functions only where it judges."""
    rids = {replica.name: replica.rid for replica in config.replicas}
    tables = config.table_map()
    return Topology(
        tables,
        {
            a.name: Subscription(a.name, rids[a.consumer], config.tables_of(a))
            for a in config.agreements
        },
        loaded(tables.values()) if judges else {},
        config.limits.reflections,
        config.limits.page_items,
        config.hub.covers_interval_ms,
        record_bytes=config.limits.record_bytes,
    )


def settings_of(config: Config, *, judges: bool = True) -> BatchSettings:
    """What a batch needs of the configuration; what only publishes a batch does not judge."""
    return BatchSettings(
        topology_of(config, judges=judges),
        {config.changes_topic(replica.name): replica.rid for replica in config.replicas},
        {config.hub.rid: "hub", **{replica.rid: replica.name for replica in config.replicas}},
        config.hub.rid,
        ChunkLimits(config.limits.chunk_items, config.limits.chunk_bytes),
        config.limits.offsets_per_batch,
        config.limits.pending_changes,
        config.limits.open_transactions,
        config.limits.window_rows,
        config.limits.kept_image_bytes,
        MaterializeEvery(config.limits.materialize_every_epochs, config.limits.materialize_every_s),
    )


def run(config: Config, stop: StopSignals, *, available_now: bool = False) -> None:
    """Run the hub until a signal stops it.

    HubError: it could not start or go on, with the reason. StopRequested: it was stopped while it
    started. `available_now`: process what is there, publish all of it, then end.
    """
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s")
    LOG.setLevel(logging.INFO)
    logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what matters comes as an error of ours
    with storage_errors(config.hub.state), only_hub(config.hub.state):
        check_history(config, config_history(documents(config.hub.state)))
        _run_on_spark(config, stop, available_now=available_now)


def _run_on_spark(config: Config, stop: StopSignals, *, available_now: bool) -> None:
    """Start Spark, which takes seconds: what can be refused without it has been refused."""
    check_java()
    from streaming.jvm.session import started  # noqa: PLC0415 - only now is Java known to be there

    at = faults.from_text(os.environ.get(FAULT_VARIABLE))
    settings = {**_scratch(config), **config.spark}
    with started(f"slackwater {config.hub.name}", settings) as spark:
        service = Service(config, spark, at)
        stop.started()
        service.run(stop.end, available_now=available_now)


def _scratch(config: Config) -> dict[str, str]:
    """Where Spark creates the folder that a MERGE needs; by default the current folder."""
    warehouse = config.hub.state / CHECKPOINTS / "warehouse"
    return {"spark.sql.warehouse.dir": warehouse.absolute().as_uri()}


class Service:
    """A hub with its surroundings: the state root, the topics, the session and the clock."""

    def __init__(self, config: Config, spark: SparkSession, at: faults.At = faults.nowhere) -> None:
        self.config = config
        self.spark = spark
        self.settings = settings_of(config)
        self.source = Source(spark, config)
        self.store = StateStore(config.hub.state)
        self.maintenance = Maintenance(spark, self.store)
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self.at = at
        self.turn = threading.Lock()
        self.looked_at_s = 0.0
        self.looked_at_version: int | None = None
        self.paused: AbstractSet[int] = frozenset()
        self.report = HubReport({replica.rid: replica.name for replica in config.replicas})
        self.hub = self._open()
        self.poll = TopicPoll(config.hub.state, self.name, self._connected, [*self.settings.topics])

    def run(self, end: threading.Event, *, available_now: bool = False) -> None:
        """Read until stopped; it stops between two batches, with everything published."""
        _keep_memory()
        query = self._start(available_now=available_now)
        self.poll.start()
        self.report.ready(self.hub.state, self.config.kafka.bootstrap_servers)
        try:
            while not (end.is_set() or self.failure or query.awaitTermination(IDLE_S)):  # type: ignore[arg-type]
                self._idle()
            if self.failure:
                raise self.failure
            if available_now and not end.is_set():
                self._drain()
                self.hub.upkeep.materialized(wait=True)
        except StreamingQueryException as error:
            raise _reason(error) from error
        finally:
            with self.turn:
                end.set()
                self.ended = True
            try:
                query.stop()
            finally:
                self.poll.stop()
                self.maintenance.close()
                self.sink.close()
                shutil.rmtree(self._checkpoint(), ignore_errors=True)
        LOG.info("stopped after batch %d", self.hub.state.batch)

    ended = False
    failure: HubError | None = None
    shown: Mapping[str, int]
    """Topic -> the offset after the last micro-batch; a batch may have left some of that."""

    # -- start ------------------------------------------------------------------------------

    def _open(self) -> Hub:
        """Found or open the state, finish what a dead hub left, take over the configuration."""
        config, kafka = self.config, self.config.kafka
        self.history = config_history(documents(config.hub.state))
        check_history(config, self.history)
        self.settings = self._with_retired(config, self.settings)
        topics = list(self.settings.topics)
        updates = [config.updates_topic(a.name) for a in config.agreements]
        with Topics(kafka.bootstrap_servers, kafka.options) as admin:
            admin.ensure([*topics, *updates], config.limits.record_bytes)
            ids = admin.ids([*topics, *updates])
            first = admin.first_offsets(topics)
        self.sink = UpdatesSink(kafka.bootstrap_servers, kafka.options)
        create_state(self.store, self._genesis(), self.name)
        ledger = open_ledger(self.store, self.name, self.at)
        self._check_topics(ledger, ids)
        hub = self._finished(ledger, ids)
        version = store_configuration(self.store, config.document(), _now_ms())
        self._adopt(hub, self.settings, first, ids, version)
        self._tell_retired(hub.state)
        return hub

    def _connected(self) -> Topics:
        kafka = self.config.kafka
        return Topics(kafka.bootstrap_servers, kafka.options, CONNECT_MS)

    def _genesis(self) -> Checkpoint:
        """The state before the first batch; its replicageneration names the initial load."""
        now_ms = _now_ms()
        generation = format_csn(CsnParts(now_ms // 1000, 0, self.config.hub.rid, 0))
        state = HubState(1, generation)
        return Checkpoint(state, {}, {}, 0, at_ms=now_ms)

    def _finished(self, ledger: Ledger, ids: Mapping[str, str]) -> Hub:
        """Finish the batch of a hub that died: from its plan, or only its publishing.

        It is judged under the configuration of its plan, which may be newer than the last commit.
        """
        unfinished, version = ledger.unfinished, ledger.last.config_version
        if unfinished is None:
            config = self._config_of(version)
            hub = resume(ledger, settings_of(config, judges=False), self._outlets(self.settings))
            publish(hub, sending_only(hub.state, self.settings.topology.subscriptions))
            return hub
        plan = plan_of(unfinished, {c.number: c for c in commands(self.store, 0)})
        config = self._config_of(plan.config_version)
        settings = self._with_retired(config, settings_of(config))
        check_readable(plan, plan_topic_ids(unfinished), self.config)
        hub = resume(ledger, settings, self._outlets(settings))
        self._adopt(hub, settings, plan.offsets_from, ids, plan.config_version)
        LOG.info("finishing batch %d of a hub that died", plan.batch)
        process(hub, plan, lambda p: self.source.planned(p, settings, config.limits))
        return hub

    def _with_retired(self, config: Config, settings: BatchSettings) -> BatchSettings:
        names = {**self.history.names, **settings.names}
        return replace(settings, names=names, retired_topics=self.history.retired_topics(config))

    def _config_of(self, version: int) -> Config:
        """The configuration that was stored as this version; before the first, the present one."""
        document = settings_document(self.store, version) if version else None
        return Config.from_document(document) if document else self.config

    def planned(self, plan: Plan) -> Carrier:
        """The records of a plan of the present configuration, read by its offsets."""
        return self.source.planned(plan, self.settings, self.config.limits)

    def _check_topics(self, ledger: Ledger, ids: Mapping[str, str]) -> None:
        plan = ledger.unfinished
        known_ids = plan_topic_ids(plan) if plan else ledger.last.topic_ids
        for topic, known in known_ids.items():
            if topic in ids and ids[topic] != known:
                raise SourceError(
                    f"topic {topic} was made anew (id {ids[topic]}, was {known}): its offsets mean"
                    " other records now; the hub must not read on from its old place"
                )

    def _adopt(
        self,
        hub: Hub,
        settings: BatchSettings,
        first: Mapping[str, int],
        ids: Mapping[str, str],
        version: int,
    ) -> None:
        """Let the state know the replicas, agreements and topics of a configuration."""
        last = hub.ledger.last
        sending = self.settings.topology.subscriptions
        state = adopted(last.state, settings.topology, settings.topics.values(), sending)
        hub.reconfigured = last.state.batch > 0 and retired_of(state) != retired_of(last.state)
        kept_ids = {t: one for t, one in last.topic_ids.items() if t in last.offsets}
        hub.settings = settings
        hub.outlets = self._outlets(settings)
        hub.state = state
        hub.ledger.last = replace(
            last,
            state=state,
            offsets={**first, **last.offsets},
            topic_ids=kept_ids | dict(ids),
            config_version=version,
        )

    def _tell_retired(self, state: HubState) -> None:
        """Say what is in the state and not in the configuration."""
        rids, agreements = retired_of(state)
        names = [f"replica {self.history.names.get(rid, rid)}" for rid in sorted(rids)]
        names += [f"agreement {name}" for name in sorted(agreements)]
        if names:
            LOG.info("retired, for they are not configured any more: %s", ", ".join(names))

    def _outlets(self, settings: BatchSettings) -> Effects:
        topic = self.config.updates_topic
        return Effects(
            send=lambda agreement, key, value: self.sink.send(
                topic(agreement), key.encode(), value
            ),
            flush=self.sink.flush,
            originals=lambda places: originals(self.config, settings, places),
            revalidate=lambda records: self.source.revalidated(
                records, settings, self.config.limits
            ),
            maintenance=self.maintenance,
        )

    # -- batches ----------------------------------------------------------------------------

    def _start(self, *, available_now: bool) -> StreamingQuery:
        """Start the query at the committed offsets; Spark's own checkpoint is only its scratch."""
        _remove_stale(self._checkpoint().parent)
        limits = self.config.limits
        self.shown = dict(self.hub.ledger.last.offsets)
        records = stream(
            self.spark,
            self.source.options,
            self.settings.topics,
            self.hub.ledger.last.offsets,
            offsets_per_batch=limits.offsets_per_batch,
            min_partitions=limits.min_partitions,
        )
        writer = (
            records.writeStream.queryName("slackwater")
            .option("checkpointLocation", self._checkpoint().absolute().as_uri())
            .foreachBatch(self._micro_batch)
        )
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.config.hub.trigger_ms} milliseconds").start()

    def _micro_batch(self, records: DataFrame, batch_id: int) -> None:
        with self.turn:
            if self.ended:
                return
            try:
                with storage_errors(self.store.root):
                    before, self.shown = self.shown, end_offsets(self._checkpoint(), batch_id)
                    self._process(lambda plan: self._of_micro_batch(records, before, plan))
            except HubError as error:
                self.failure = error  # raised by `run`, without the stack of Spark and the JVM
                self.ended = True  # the hub in memory is not the committed one: no batch after it
            except BaseException:
                self.ended = True
                raise

    def _idle(self) -> None:
        """Do what is due although no input came: pages, a lagging covers, an operator's command."""
        with self.turn:
            if not self.ended:
                if not self._process(self.planned):
                    bring_rows_up(self.hub, _now_ms())
                self.report.tick(self.hub.state, self._unread())

    def _drain(self) -> None:
        """Publish what is left for agreements that are catching up."""
        while self._process(self.planned):
            pass

    def _process(self, read: Read) -> bool:
        """Run the next batch if one is due; whether one was."""
        plan = self.hub.next_plan(self.shown, _now_ms(), self._commands())
        is_due = self.hub.is_due(plan)
        if is_due:
            before = self.hub.state
            process(self.hub, plan, read)
            self.report.batch(before, self.hub.state, self.hub.ledger.last.counts)
            self._tell_paused()
        return is_due

    def _of_micro_batch(self, records: DataFrame, before: Mapping[str, int], plan: Plan) -> Carrier:
        """The records of a plan out of a micro-batch; read anew where it is not that of Spark."""
        if ranges(plan.offsets_from, plan.offsets_to) != ranges(before, self.shown):
            return self.planned(plan)
        return self.source.carried(records, plan, self.settings, self.config.limits)

    def _unread(self) -> int:
        """How many records the topics held at the last poll that no batch has read."""
        offsets = self.hub.ledger.last.offsets
        return sum(max(0, end - offsets.get(t, end)) for t, end in self.poll.ends.items())

    def _tell_paused(self) -> None:
        """Say whose topic is not read any more, and whose is again."""
        paused = self.hub.paused()
        if paused.keys() == self.paused:
            return
        names = {rid: topic for topic, rid in self.settings.topics.items()}
        for rid in paused.keys() - self.paused:
            LOG.warning(
                "%s is paused: its replica has %s, limits.open_transactions is"
                " %d; end the oldest (`slackwater status` names it, `slackwater abort` ends it) or"
                " start the hub with a larger limit",
                names[rid],
                as_count(paused[rid], "open transaction"),
                self.settings.open_transactions,
            )
        for rid in self.paused - paused.keys():
            LOG.info("%s is no longer paused", names[rid])
        self.paused = paused.keys()

    def _commands(self) -> Sequence[Command]:
        """The operator's commands since the last one taken; looked for once a second."""
        now_s = time.monotonic()
        if now_s - self.looked_at_s < 1:
            return ()
        self.looked_at_s = now_s
        version = self.store.refreshed(TableName.CONFIG).version()
        if version == self.looked_at_version:
            return ()
        self.looked_at_version = version
        return commands(self.store, self.hub.ledger.last.command_number)

    def _checkpoint(self) -> Path:
        return self.config.hub.state / CHECKPOINTS / self.name


def _keep_memory() -> None:
    """Let a process that only works on batches deal with memory as that needs it."""
    gc.set_threshold(*COLLECT_AFTER)
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
        pa.jemalloc_set_decay_ms(KEPT_MS)


def _reason(error: StreamingQueryException) -> HubError:
    """What ended the query, without the JVM's part of the story."""
    message = re.split(r"JVM stacktrace|=== Streaming Query ===", str(error))[0]
    return HubError(message.strip())


def _remove_stale(folder: Path) -> None:
    """Remove what hubs that were killed left of Spark's scratch."""
    if not folder.exists():
        return
    for one in folder.iterdir():
        if time.time() - one.stat().st_mtime > STALE_CHECKPOINT_S:
            shutil.rmtree(one, ignore_errors=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
