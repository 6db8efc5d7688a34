"""What a standby does before it takes over: it reads as the hub reads, and writes nothing.

The first query of a JVM, and the first records that it reads and parses, take seconds. A standby
that has read some is as quick as the hub was; nothing is judged, written or sent. It reads what the
hub sent, for a changes topic may hold what no JVM can read. Then it keeps the window up with what
the hub commits.
"""

import logging
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from connectors.kafka.topics import Topics
from streaming.carriers.parse import parse_on_driver
from streaming.carriers.read import stream
from streaming.config.config import Config
from streaming.core.intake.input_lost import TopicFacts
from streaming.core.model.errors import HubError
from streaming.hub.batch.source import Source, last_records, limits_of
from streaming.hub.configured import settings_of
from streaming.hub.query import start
from streaming.hub.standby.window import StandbyWindow

LOG = logging.getLogger("slackwater")

WARM = "is warm"
"""In the log of a standby that has read the last records."""
EVERY_S = 5.0
"""The time between two looks at topics that have no records, or are not there."""
FOLLOWS_S = 2.0
"""The time between two looks at what the hub has committed."""
ENDS_S = 10.0
"""The longest wait for its end: a batch that is being read, and the end of its query."""
BATCHES = 10
"""After so many micro-batches it is."""
RECORDS = 100
"""Of each topic in a micro-batch."""


class Rehearsal:
    """Reads the last records, then what is committed, in a thread of its own until it is stopped.

    `window`: kept up with the commits.
    """

    def __init__(self, config: Config, spark: SparkSession) -> None:
        self._config = config
        self._spark = spark
        self._source = Source(spark, config)
        self._settings = settings_of(config)
        self.window = StandbyWindow(config.hub.state, self._settings.window_rows)
        self._batches = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="rehearsal", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End it without waiting; what it is reading is read to no end."""
        self._over.set()

    def close(self) -> None:
        """End it, and wait until nothing of it uses Spark, which may end then."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join(ENDS_S)

    def _work(self) -> None:
        is_warm, wait_s = False, 0.0
        while not self._over.wait(wait_s):
            try:
                if not is_warm and (is_warm := self._has_read()):
                    LOG.info(
                        "%s: it has read the last records that the hub sent, as a hub reads", WARM
                    )
                self.window.follow()
            except (HubError, OSError, Py4JError, PySparkException) as error:
                LOG.debug("stands by, and could not read yet: %s", str(error).split("\n")[0])
            wait_s = FOLLOWS_S if is_warm else EVERY_S

    def _has_read(self) -> bool:
        """Read the last records of the topics until it is warm; False: there are none."""
        ends = self._ends()
        if ends:
            named = last_records(ends, ends)
            self._source.warm_up(self._settings, self._config.limits, named)
        more = bool(ends)
        while more and not self._is_over():
            before = self._batches
            self._read(ends)
            more = self._batches > before
        return self._batches >= BATCHES

    def _ends(self) -> Mapping[str, TopicFacts]:
        """The updates topics with records; they are looked at only, the hub creates them."""
        kafka = self._config.kafka
        with Topics(kafka.bootstrap_servers, kafka.options) as admin:
            found = admin.look([*self._settings.updates_topics])
        return {name: one for name, one in found.items() if one.is_readable and one.end > one.first}

    def _read(self, ends: Mapping[str, TopicFacts]) -> None:
        """Parse the last records as a hub does, until there are no more or it is warm."""
        topics, tables = dict.fromkeys(ends, 0), self._settings.topology.tables
        first = {n: max(one.first, one.end - RECORDS * BATCHES) for n, one in ends.items()}
        limits = limits_of(self._config.limits, self._settings)

        def parse(records: DataFrame, _: int) -> None:
            if self._is_over():
                return
            try:
                parse_on_driver(records, topics, tables, limits)
            except (Py4JError, PySparkException):
                if not self._is_over():  # the end of the query cuts off what is being read
                    raise
            self._batches += 1

        records = stream(
            self._spark,
            self._source.options,
            topics,
            first,
            offsets_per_batch=RECORDS * len(ends),
            min_partitions=self._config.limits.min_partitions,
        )
        with tempfile.TemporaryDirectory(prefix="slackwater-") as scratch:
            writer = records.writeStream.foreachBatch(parse).trigger(availableNow=True)
            query = start(writer, Path(scratch), self._config.hub.state)
            while not self._is_over() and not query.awaitTermination(1):
                pass
            query.stop()

    def _is_over(self) -> bool:
        return self._over.is_set() or self._batches >= BATCHES
