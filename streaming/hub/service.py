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
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints import faults
from checkpoints.commit import Ledger, create_state, open_ledger
from checkpoints.config import commands, documents, settings_document, store_configuration
from checkpoints.epochs import Checkpoint, Plan, plan_of
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
from streaming.core.intake.input_lost import TopicFacts, heads
from streaming.core.model.command import Command
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.errors import HubError
from streaming.core.model.membership import adopted, retired_of, sending_only
from streaming.core.model.state import HubState
from streaming.core.model.topology import Subscription, Topology
from streaming.core.model.wording import as_count
from streaming.hub.hub import Hub, resume
from streaming.hub.lost import Read
from streaming.hub.originals import originals
from streaming.hub.pipeline import bring_rows_up, process
from streaming.hub.poll import CONNECT_MS, TopicPoll
from streaming.hub.publishing import publish
from streaming.hub.report import HubReport
from streaming.hub.settings import BatchSettings, Effects
from streaming.hub.source import Source, ranges
from streaming.hub.stopping import StopSignals
from streaming.hub.topic_look import TopicLook
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
        updates_topics={config.updates_topic(a.name): a.name for a in config.agreements},
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
        topics, others = [*self.settings.topics], [*self.settings.updates_topics]
        self.poll = TopicPoll(config.hub.state, self.name, self._topic_look(), topics, others)

    def run(self, end: threading.Event, *, available_now: bool = False) -> None:
        """Read until stopped; it stops between two batches, with everything published."""
        _keep_memory()
        try:
            self._find_losses()
            self.poll.start()
            self.report.ready(self.hub.state, self.config.kafka.bootstrap_servers)
            while self._read(end, available_now=available_now):
                LOG.info("reading the topics again from where the hub goes on in them")
            if self.failure:
                raise self.failure
            if available_now and not end.is_set():
                self._drain()
                self.hub.upkeep.materialized(wait=True)
        finally:
            with self.turn:
                end.set()
                self.ended = True
            self.poll.stop()
            self.maintenance.close()
            self.sink.close()
            self.topics.close()
        LOG.info("stopped after batch %d", self.hub.state.batch)

    def _read(self, end: threading.Event, *, available_now: bool) -> bool:
        """Let one query read until it or the hub ends; whether another one has to go on.

        A query keeps its own place in every topic. Another one is needed when input was lost.
        """
        self.is_misplaced = False
        query = self._start(available_now=available_now)
        try:
            while not (end.is_set() or self.failure or self.is_misplaced):
                if end.wait(IDLE_S) if query is None else query.awaitTermination(IDLE_S):  # type: ignore[arg-type]
                    break
                self._idle()
                if query is None and available_now:
                    break
        except StreamingQueryException as error:
            if not (self.is_misplaced or self._find_losses()):
                raise _reason(error) from error
        finally:
            with self.turn:
                checkpoint, self.query_number = self._checkpoint(), self.query_number + 1
            if query is not None:
                query.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)
        return self.is_misplaced and not (end.is_set() or self.failure)

    ended = False
    failure: HubError | None = None
    query_number = 0
    is_misplaced = False
    """The query reads topics at places that the hub left, because input was lost."""
    polled: Mapping[str, TopicFacts] | None = None
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
        record_bytes = config.limits.record_bytes
        self.topics = self._topic_look()
        with Topics(kafka.bootstrap_servers, kafka.options) as admin:
            admin.ensure([*topics, *updates], record_bytes)
            ids = admin.ids([*topics, *updates])
            first = admin.first_offsets(topics)
        self.updates_ids = {topic: ids[topic] for topic in updates}
        self.sink = UpdatesSink(kafka.bootstrap_servers, kafka.options)
        create_state(self.store, self._genesis(), self.name)
        ledger = open_ledger(self.store, self.name, self.at)
        hub = self._finished(ledger, ids)
        version = store_configuration(self.store, config.document(), _now_ms())
        self._adopt(hub, self.settings, first, ids, version)
        self._tell_retired(hub.state)
        return hub

    def _topic_look(self) -> TopicLook:
        configured = {*self.settings.topics, *self.settings.updates_topics}
        return TopicLook(self._connected, configured, self.config.limits.record_bytes)

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

    def _adopt(
        self,
        hub: Hub,
        settings: BatchSettings,
        first: Mapping[str, int],
        ids: Mapping[str, str],
        version: int,
    ) -> None:
        """Let the state know the replicas, agreements and topics of a configuration.

        A topic that it knows already keeps its id, by which a loss is found.
        """
        last = hub.ledger.last
        sending = self.settings.topology.subscriptions
        state = adopted(last.state, settings.topology, settings.topics.values(), sending)
        hub.reconfigured = last.state.batch > 0 and retired_of(state) != retired_of(last.state)
        hub.settings = settings
        hub.outlets = self._outlets(settings)
        hub.state = state
        hub.ledger.last = replace(
            last,
            state=state,
            offsets={**first, **last.offsets},
            topic_ids={**ids, **last.topic_ids},
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
            flush=self._flush,
            originals=lambda places: originals(self.config, settings, places, self.topics.look),
            revalidate=lambda records: self.source.revalidated(
                records, settings, self.config.limits
            ),
            maintenance=self.maintenance,
            look=self.topics.look,
            renew=self._renew_sink,
        )

    def _flush(self) -> None:
        """Wait until the sink in use has delivered everything."""
        self.sink.flush()

    def _renew_sink(self) -> bool:
        """Take a new sink if an updates topic was made anew since; whether one was."""
        updates = self.settings.updates_topics
        now = self.topics.look(updates)
        is_other = any(one.id and one.id != self.updates_ids[t] for t, one in now.items())
        self.updates_ids = {topic: one.id for topic, one in now.items()}
        if is_other:
            self.sink.close()
            kafka = self.config.kafka
            self.sink = UpdatesSink(kafka.bootstrap_servers, kafka.options)
        return is_other

    # -- batches ----------------------------------------------------------------------------

    def _start(self, *, available_now: bool) -> StreamingQuery | None:
        """Start a query at the committed offsets; Spark's own checkpoint is only its scratch.

        None: no topic is there.
        """
        _remove_stale(self._checkpoint().parent)
        limits, last = self.config.limits, self.hub.ledger.last
        self.shown = dict(last.offsets)
        there = {t: rid for t, rid in self.settings.topics.items() if last.topic_ids[t]}
        if not there:
            return None
        records = stream(
            self.spark,
            self.source.options,
            there,
            last.offsets,
            offsets_per_batch=limits.offsets_per_batch,
            min_partitions=limits.min_partitions,
        )
        writer = (
            records.writeStream.queryName("slackwater")
            .option("checkpointLocation", self._checkpoint().absolute().as_uri())
            .foreachBatch(partial(self._micro_batch, self.query_number))
        )
        if available_now:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{self.config.hub.trigger_ms} milliseconds").start()

    def _micro_batch(self, query_number: int, records: DataFrame, batch_id: int) -> None:
        with self.turn:
            if self.ended or query_number != self.query_number or self.is_misplaced:
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

    def _process(self, read: Read, topics: Mapping[str, TopicFacts] | None = None) -> bool:
        """Run the next batch if one is due; whether one was. `topics`: as they are now."""
        topics = self._suspected() if topics is None else topics
        plan = self.hub.next_plan(self.shown, _now_ms(), self._commands(), topics)
        is_due = self.hub.is_due(plan)
        if is_due:
            before = self.hub.state
            plan = process(self.hub, plan, read)
            self.is_misplaced |= any(topic in self.settings.topics for topic in plan.lost)
            self.report.batch(before, self.hub.state, self.hub.ledger.last.counts)
            self.report.sent_again([t for t in plan.lost if t in self.settings.updates_topics])
            self._tell_paused()
        return is_due

    def _suspected(self) -> Mapping[str, TopicFacts]:
        """The topics as they are now, if the last poll or Spark found that something is lost."""
        polled, self.polled = self.polled, self.poll.facts
        offsets = self.hub.ledger.last.offsets
        is_suspected = any(end < offsets[topic] for topic, end in self.shown.items())
        if self.polled is not polled:
            is_missing = any(not one.id for one in self.polled.values())
            is_suspected |= is_missing or bool(self.hub.losses(heads(self.polled)))
        return self._look() if is_suspected else {}

    def _look(self) -> Mapping[str, TopicFacts]:
        return self.topics.look([*self.settings.topics, *self.settings.updates_topics])

    def _find_losses(self) -> bool:
        """Record what is lost of the topics now, by a batch without input; whether any is."""
        with self.turn:
            if self.ended:
                return False
            self.shown = dict(self.hub.ledger.last.offsets)
            topics = self._look()
            is_lost = bool(self.hub.losses(topics))
            if is_lost:
                self._process(self.planned, topics)
        return is_lost

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
        return self.config.hub.state / CHECKPOINTS / f"{self.name}-{self.query_number}"


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
