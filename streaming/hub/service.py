"""A hub at work in its surroundings: one state, one Spark query, and an orderly end."""

import logging
import os
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from checkpoints.commit import faults
from checkpoints.commit.epochs import Plan
from checkpoints.config import documents
from checkpoints.maintenance.background import Maintenance
from checkpoints.maintenance.pins import keep_pinned
from checkpoints.root import local_folder
from checkpoints.store import StateStore, storage_errors
from connectors.kafka.options import LiveOptions, principal_of
from connectors.kafka.topics import Topics
from streaming.carriers.carrier import Carrier
from streaming.carriers.read import end_offsets, stream
from streaming.carriers.warm_up import WarmExecutors
from streaming.config.config import Config
from streaming.config.errors import check
from streaming.config.history import config_history, history_faults
from streaming.core.intake.input_lost import TopicFacts, heads, unreadable
from streaming.core.model.errors import HubError, SourceError
from streaming.facts.readiness import HubStage
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.lost_input import Read
from streaming.hub.batch.pipeline import hold, process, tend
from streaming.hub.batch.rest import NOTHING_HELD, read_once
from streaming.hub.batch.settings import BatchSettings, Effects
from streaming.hub.batch.source import Source, furthest, last_records, ranges
from streaming.hub.column_waits import ColumnWaits
from streaming.hub.configured import settings_of, with_retired
from streaming.hub.in_force import ConfigInForce
from streaming.hub.memory import keep_memory
from streaming.hub.observe.report import HubReport
from streaming.hub.observe.view import HubView
from streaming.hub.opening import Opening
from streaming.hub.packets.traffic import packet_folders, packet_importer
from streaming.hub.query import failure, remove_stale, start
from streaming.hub.resync.source import StateSource
from streaming.hub.standby.window import StandbyWindow
from streaming.hub.topics.first_read import FirstRead
from streaming.hub.topics.found_topics import topics_of
from streaming.hub.topics.originals import originals
from streaming.hub.topics.poll import CONNECT_MS, TopicPoll
from streaming.hub.topics.topic_look import TopicLook
from streaming.hub.topics.updates import UpdatesTopics
from streaming.hub.topics.usable import PausedTopics, Unreadable, Unwritable
from streaming.jvm.master import is_local_master
from streaming.operator.going_on import WaitingColumns
from streaming.operator.inbox import CommandInbox

LOG = logging.getLogger("slackwater")

IDLE_S = 0.2
AT_ONCE_S = 0.01
"""The wait for input where batches left some that they may not take at once."""
SCRATCH = "spark"


class Service:
    """A hub with its surroundings: the state root, the topics, the session and the clock.

    `options`: [kafka.options] as they are now, for connections that are opened while it works.
    `in_force`: has the version of the configuration, and finds the one that is to follow; None: it
    has its own.
    """

    def __init__(
        self,
        config: Config,
        spark: SparkSession,
        reach: faults.FaultHook = faults.no_fault,
        view: HubView | None = None,
        followed: StandbyWindow | None = None,
        options: LiveOptions | None = None,
        in_force: ConfigInForce | None = None,
    ) -> None:
        self.config = config
        self.in_force = in_force or ConfigInForce(config)
        self.options = options or LiveOptions(config.kafka.options)
        self.view = view or HubView(config)
        self.spark = spark
        self.source = Source(spark, config)
        rows_h = config.retention.rows_h(config.hub.replay_window_h)
        self.store = StateStore(config.hub.state, rows_h)
        self.maintenance = Maintenance(spark, self.store)
        self.name = f"{os.getpid()}-{uuid.uuid4().hex[:12]}"
        root, workers = config.hub.state, config.limits.resync_workers
        self.resyncs = StateSource(spark, root, self.name, workers)
        self.turn = threading.Lock()
        self.commands = CommandInbox(self.store)
        self.unreadable = Unreadable(principal_of(config.kafka.options))
        self.report = HubReport({replica.rid: replica.name for replica in config.replicas})
        self.packet_folders = packet_folders(config)
        self.settings, self.hub = self._open(self.view.phases.noting(reach), followed)
        self.in_force.opened(self.hub.ledger.last.config_version)
        self.importer = packet_importer(config, self.options.now, lambda: self.hub)
        self.hub.place_at = self.importer.place_at
        self.unwritable = Unwritable(self.settings.updates_topics)
        self.column_waits = self._column_waits()
        self.paused = PausedTopics(self.settings.topics, self.settings.open_transactions)
        keep_pinned(self.store, _now_ms())
        is_local = is_local_master(spark.sparkContext.master or "")
        self.warm = None if is_local else WarmExecutors(spark, root)
        topics, others = [*self.settings.topics], [*self.settings.updates_topics]
        self.poll = TopicPoll(
            *(config.hub.state, self.name, self._topic_look(), topics, others),
            broker=config.kafka.bootstrap_servers,
            principal=self.unreadable.principal,
            at_rest=lambda: self.hub.held.at_rest,
            packets=lambda: {**self.packet_folders.problems, **self.importer.problems},
            prefix=config.changes_topic(""),
            no_others=[*self.settings.retired_topics, config.changes_topic(config.hub.name)],
        )
        self.first_read = FirstRead(self._read_for_nobody)
        self.view.hubs_seen = self.poll.hubs_seen
        self.view.opened(self.hub)

    def _open(
        self, reach: faults.FaultHook, followed: StandbyWindow | None
    ) -> tuple[BatchSettings, Hub]:
        """The settings and the hub, once the topics are there and the state is open."""
        config = self.config
        history = config_history(documents(config.hub.state))
        check(history_faults(config, history))
        settings = self._at_work(with_retired(config, settings_of(config), history))
        self.configured = {*settings.topics, *settings.updates_topics}
        self.topics = self._topic_look()
        found = topics_of(config, settings)
        self.updates = UpdatesTopics(config, found.ids, self.topics.look)
        at_start = found, self.source, self._outlets, followed, self.in_force.version
        opening = Opening(config, settings, history, *at_start)
        try:
            return settings, opening.open(self.store, self.name, reach, _now_ms())
        except BaseException:
            self._disconnect()  # what it published of the last batch is delivered
            raise

    def _disconnect(self) -> None:
        self.updates.close()
        self.topics.close()

    def _at_work(self, settings: BatchSettings) -> BatchSettings:
        """Settings that know which batches the executors carry."""
        carried = partial(
            self.source.is_carried_by_executors,
            limits=self.config.limits,
            topology=settings.topology,
        )
        return replace(settings, is_carried_by_executors=carried)

    def _topic_look(self) -> TopicLook:
        changes = [self.config.changes_topic(one.name) for one in self.config.replicas]
        return TopicLook(self._connected, self.configured, self.config.limits.record_bytes, changes)

    def _connected(self) -> Topics:
        return Topics(self.config.kafka.bootstrap_servers, self.options.now(), CONNECT_MS)

    def _outlets(self, settings: BatchSettings) -> Effects:
        """Where a hub with these settings reaches out."""
        config, limits = self.config, self.config.limits
        return Effects(
            send=self.updates.send,
            flush=self.updates.flush,
            originals=lambda places: originals(config, settings, places, self.topics.look),
            revalidate=lambda records: self.source.revalidated(records, settings, limits),
            maintenance=self.maintenance,
            resyncs=self.resyncs,
            look=self.topics.look,
            renew=self.updates.renew,
            phases=self.view.phases,
            committed=self.view.committed,
            write_packet=self.packet_folders.write,
        )

    def _column_waits(self) -> ColumnWaits:
        """Lets go on what waits for a column that the configuration has now."""
        outlets, topology = self.hub.outlets, self.settings.topology
        of_hub = self.store, self.config.hub.rid, topology
        looks = WaitingColumns(*of_hub, outlets.revalidate, outlets.originals)
        return ColumnWaits(looks.order, topology.refused_again_ms)

    def run(self, end: threading.Event, *, available_now: bool = False) -> None:
        """Read until stopped, or until `is_superseded`; between two batches, all published."""
        keep_memory()
        try:
            self._find_losses()
            if available_now:
                self.column_waits.look(self.hub.ledger.last, _now_ms())
            self.importer.start(once=available_now)
            self.poll.start()
            self._warm_up(end)
            self.first_read.start()
            self.report.ready(self.hub.state, self.config.kafka.bootstrap_servers)
            while self._read(end, available_now=available_now):
                LOG.info("reading the topics again from where the hub goes on in them")
            if self.failure:
                raise self.failure
            if available_now and not (end.is_set() or self.is_superseded):
                self._drain()
        finally:
            self.view.stage = HubStage.STARTING if self.is_superseded else HubStage.ENDED
            with self.turn:
                self.ended = True
            self.first_read.close()
            self.importer.stop()
            is_end = sys.exception() is None or not self.poll.has_missed
            self.poll.stop(ended=is_end and not self.is_superseded)
            self.maintenance.close()
            self.resyncs.close()
            if self.warm is not None:
                self.warm.close()
            self._disconnect()
        if not self.is_superseded:
            LOG.info("stopped after batch %d", self.hub.state.batch)

    def _warm_up(self, end: threading.Event) -> None:
        """On a cluster: have executors that have started all that a batch needs of them."""
        if self.warm is not None:
            self.warm.wait(end)
            if not end.is_set():
                self._read_for_nobody(last_records(self.settings.updates_topics, self._look()))

    def _read_for_nobody(self, named: Mapping[str, tuple[int, int]]) -> None:
        self.source.warm_up(self.settings, self.config.limits, named)

    def _read(self, end: threading.Event, *, available_now: bool) -> bool:
        """Let one query read until it or the hub ends; whether another one has to go on.

        A query keeps its own place in every topic. Another one is needed when input was lost.
        """
        self.is_misplaced, self.holds = False, not available_now
        query = self._start(available_now=available_now)
        self.view.query = query is not None
        try:
            while not (end.is_set() or self._is_over or self._has_to_read_anew()):
                wait_s = AT_ONCE_S if self.hub.waiting(self.shown, self.paused.rids) else IDLE_S
                if end.wait(wait_s) if query is None else query.awaitTermination(wait_s):  # type: ignore[arg-type]
                    break
                self._idle()
                if query is None and available_now:
                    break
        except StreamingQueryException as error:
            if self.ended or not (self.is_misplaced or self._find_losses() or self.is_misplaced):
                raise failure(error, self.store.root) from error
        finally:
            self.view.query = False
            with self.turn:
                checkpoint, self.query_number = self._checkpoint(), self.query_number + 1
            if query is not None:
                query.stop()
            shutil.rmtree(checkpoint, ignore_errors=True)
        if self.broke is not None and self.failure is None:
            raise HubError(f"a batch failed: {self.broke!r}") from self.broke
        return self.is_misplaced and not (end.is_set() or self._is_over)

    @property
    def _is_over(self) -> bool:
        """Return whether it plans no further batch."""
        return self.failure is not None or self.is_superseded

    is_superseded = False
    """The next batch is to be planned by another configuration, so by another service."""
    ended = False
    """A batch failed, so that no other may follow, or the service ended."""
    broke: BaseException | None = None
    """Why a batch failed, which its query may be stopped before it says."""
    failure: HubError | None = None
    query_number = 0
    holds = False
    """What says nothing new is held; a hub that ends with its input leaves nothing unread."""
    is_misplaced = False
    """The query reads topics at places that the hub left, because input was lost, or other topics
    than the hub may read."""
    polled: Mapping[str, TopicFacts] | None = None
    shown: Mapping[str, int]
    """Topic -> up to where there is something; a batch may have left some of that."""
    spark_read: Mapping[str, int]
    """Topic -> the offset after the last micro-batch."""

    # -- batches ----------------------------------------------------------------------------

    def _start(self, *, available_now: bool) -> StreamingQuery | None:
        """Start a query at the committed offsets; Spark's own checkpoint is only its scratch.

        None: no topic is there.
        """
        remove_stale(self._checkpoint().parent)
        limits, last = self.config.limits, self.hub.ledger.last
        self._begin_behind_commit()
        there = {
            topic: rid
            for topic, rid in self.settings.topics.items()
            if last.topic_ids[topic] and topic not in self.unreadable.topics
        }
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
        writer = records.writeStream.queryName("slackwater").foreachBatch(
            partial(self._micro_batch, self.query_number)
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self.config.hub.trigger_ms} milliseconds")
        return start(writer, self._checkpoint(), self.store.root)

    def _begin_behind_commit(self) -> None:
        """Read from the last commit on; what was held is read again."""
        self.spark_read = self.shown = dict(self.hub.ledger.last.offsets)
        self.hub.held = NOTHING_HELD

    def _micro_batch(self, query_number: int, records: DataFrame, batch_id: int) -> None:
        with self.turn:
            is_old = query_number != self.query_number or self.is_misplaced
            if self.ended or is_old or self.is_superseded:
                return
            try:
                with storage_errors(self.store.root):
                    before, ends = self.spark_read, end_offsets(self._checkpoint(), batch_id)
                    self.spark_read, self.shown = ends, furthest(self.shown, ends)
                    if self.hub.leaves(self.shown, _now_ms()):
                        self.shown = self._ends()
                    is_shorter = any(end < before.get(topic, 0) for topic, end in ends.items())
                    topics = self._look() if is_shorter else None
                    self._process(lambda plan: self._of_micro_batch(records, before, plan), topics)
            except HubError as error:
                self.failure = error  # raised by `run`, without the stack of Spark and the JVM

    def _idle(self) -> None:
        """Do what is due although no input came: pages, a lagging covers, an operator's command."""
        if not self.turn.acquire(timeout=IDLE_S):
            if self.warm is not None:
                self.warm.look()  # the batch under way may wait for executors
            return
        try:
            if not self.ended:
                if self.warm is not None:
                    self.warm.keep()
                self.hub.resyncs.follow(self.hub.state, self.hub.upkeep.rows_epoch)
                if self.hub.waiting(self.shown, self.paused.rids):
                    self.shown = self._ends()
                if not self._process(self.planned):
                    tend(self.hub, _now_ms())
                self.column_waits.follow(self.hub.ledger.last, _now_ms())
                self.report.tick(self.hub.state, self.hub.behind(self.poll.ends))
        finally:
            self.turn.release()

    def _drain(self) -> None:
        """Publish what is left for agreements that are catching up, and purge what is old."""
        while self._process(self.planned):
            pass
        tend(self.hub, _now_ms())
        self.hub.purging.finish()  # nothing is looked for while something is deleted
        tend(self.hub, _now_ms())
        self.hub.upkeep.materialized(wait=True)
        if self.hub.purging.found_at_end(self.hub.state, self.hub.upkeep.rows_epoch):
            self._process(self.planned)
        self.hub.purging.finish()

    def planned(self, plan: Plan) -> Carrier:
        """The records of a plan of the present configuration, read by its offsets."""
        read = partial(self.source.planned, settings=self.settings, limits=self.config.limits)
        return self.hub.held.read(plan, read)

    def _process(self, read: Read, topics: Mapping[str, TopicFacts] | None = None) -> bool:
        """Run the next batch if one is due; whether one was. `topics`: as they are now."""
        topics = self._suspected() if topics is None else topics
        self._note_writable()
        commands = self.commands.after(self.hub.ledger.last.command_number)
        if self.in_force.is_superseded(self.store, self.commands.applied):
            self.is_superseded = True
            return False
        plan = self.hub.next_plan(self.shown, _now_ms(), commands, topics)
        unread = self.poll.with_more(plan.offsets_to)
        self.hub.unread = frozenset(self.settings.topics[topic] for topic in unread)
        if not self.hub.is_due(plan):
            return False
        before, done = self.hub.state, self._run_batch(plan, read_once(read))
        if done is not None:
            self.hub.writable = frozenset()
            if self.hub.undelivered:
                self.poll.early.set()
            self.is_misplaced |= any(topic in self.settings.topics for topic in done.lost)
            self.report.batch(before, self.hub.state, self.hub.ledger.last.counts)
            self.report.sent_again([t for t in done.lost if t in self.settings.updates_topics])
            self.view.paused = self.paused.note(self.hub.paused())
        return done is not None

    def _run_batch(self, plan: Plan, read: Read) -> Plan | None:
        """Run a batch; None: what it reads says nothing new, so it is held.

        If it fails there is none after it, whichever thread has the next turn.
        """
        try:
            if self.holds and hold(self.hub, plan, read):
                self.poll.early.set()
                return None
            return process(self.hub, plan, read)
        except BaseException as error:
            self.ended, self.broke = True, error  # the hub in memory is not the committed one
            raise

    def _suspected(self) -> Mapping[str, TopicFacts]:
        """The topics as they are now, if the last poll found that something is lost."""
        polled, self.polled = self.polled, self.poll.facts
        if self.polled is polled:
            return {}
        is_missing = any(one.is_gone for one in self.polled.values())
        return self._look() if is_missing or self.hub.losses(heads(self.polled)) else {}

    def _look(self) -> Mapping[str, TopicFacts]:
        found = self.topics.look([*self.settings.topics, *self.settings.updates_topics])
        self.is_misplaced |= self.unreadable.note(unreadable(found) & self.settings.topics.keys())
        return found

    def _note_writable(self) -> None:
        """Take over whose topics may be written again, of those that are away because of that."""
        again, known = self.unwritable.note(self.poll.facts), self.hub.state.agreements
        self.hub.writable |= {name for name in again & known.keys() if known[name].is_unwritable}

    def _ends(self) -> Mapping[str, int]:
        """Where the topics end now, for a batch that does not take what Spark offers.

        Spark offers no more than a full batch, of each topic by how much waits there.
        """
        try:
            found = self.topics.look_once([*self.shown])
        except SourceError:
            return self.shown
        return furthest(self.shown, {t: one.end for t, one in found.items() if one.is_readable})

    def _has_to_read_anew(self) -> bool:
        """Return whether another query has to go on, also because other topics may be read now."""
        if self.poll.facts:
            self.is_misplaced |= self.unreadable.note(self.poll.unreadable)
        return self.is_misplaced

    def _find_losses(self) -> bool:
        """Record what is lost of the topics now, by a batch without input; whether any is."""
        with self.turn:
            if self.ended:
                return False
            self._begin_behind_commit()
            topics = self._look()
            is_lost = bool(self.hub.losses(topics))
            if is_lost:
                self._process(self.planned, topics)
        return is_lost

    def _of_micro_batch(self, records: DataFrame, before: Mapping[str, int], plan: Plan) -> Carrier:
        """The records of a plan out of a micro-batch; read anew where it is not that of Spark."""
        held, new = self.hub.held, self.hub.held.beyond(plan)
        read = ranges(new.offsets_from, new.offsets_to)
        if not held.is_in(plan) or read != ranges(before, self.spark_read):
            return self.planned(plan)
        settings, limits = self.settings, self.config.limits
        carried = partial(self.source.carried, records, settings=settings, limits=limits)
        found = held.read(plan, carried)
        self.first_read.can_read(read)
        return found

    def waiting(self) -> int:
        """How many records wait that the next batch would read; 0 while Kafka does not answer."""
        is_silent = self.poll.failing_since_s is not None
        return 0 if is_silent else self.hub.waiting(self.poll.ends, self.paused.rids)

    def is_away(self) -> bool:
        """Return whether Kafka does not answer."""
        return self.poll.is_unanswered

    def _checkpoint(self) -> Path:
        scratch = local_folder(self.config.hub.state) / SCRATCH
        return scratch / f"{self.name}-{self.query_number}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
