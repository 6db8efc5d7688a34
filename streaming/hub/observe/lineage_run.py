"""A run of a hub as OpenLineage's events; needs the package of the extra `lineage`."""

import logging
import threading
from datetime import UTC, datetime
from importlib.metadata import version

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
    set_producer,
)
from openlineage.client.facet_v2 import (
    RunFacet,
    error_message_run,
    job_type_job,
    processing_engine_run,
)
from openlineage.client.transport.http import HttpConfig, HttpTransport
from openlineage.client.uuid import generate_new_uuid

from checkpoints.tables import TableName
from streaming.config.config import Config
from streaming.core.access.root import S3, BucketRoot

LOG = logging.getLogger("slackwater")

RUNNING_EVERY_S = 60.0
"""How often a hub says that it still runs."""
TIMEOUT_S = 3.0
"""How long the receiver may take for an event."""
PRODUCER = "urn:slackwater"


class LineageRun:
    """One run of a job that has the hub's name, from its start until it ends."""

    def __init__(self, config: Config, every_s: float = RUNNING_EVERY_S) -> None:
        set_producer(PRODUCER)
        self.config = config
        self.run_id = str(generate_new_uuid())
        self.every_s = every_s
        self._client = OpenLineageClient(transport=_transport(config))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._emit_often, name="lineage", daemon=True)

    def start(self) -> None:
        """Tell that it runs, now and again."""
        self._thread.start()

    def end(self, error: BaseException | None) -> None:
        """Tell how it ended; `error`: with what, if not in order."""
        self._ended.set()
        self._thread.join(TIMEOUT_S)
        if error is None:
            self._tell(RunState.COMPLETE)
        elif isinstance(error, Exception):
            text = f"{type(error).__name__}: {error}"
            facet = error_message_run.ErrorMessageRunFacet(text, "PYTHON")
            self._tell(RunState.FAIL, errorMessage=facet)
        else:  # a signal while it started
            self._tell(RunState.ABORT)

    def event(self, state: RunState, **facets: RunFacet) -> RunEvent:
        """What is told of the run now."""
        config = self.config
        kind = job_type_job.JobTypeJobFacet("STREAMING", "SLACKWATER", "HUB")
        engine = processing_engine_run.ProcessingEngineRunFacet(version("pyspark"), "Spark")
        sources, targets = datasets(config)
        return RunEvent(
            eventTime=datetime.now(UTC).isoformat(),
            run=Run(self.run_id, {"processing_engine": engine, **facets}),
            job=Job(config.lineage.namespace, config.hub.name, {"jobType": kind}),
            eventType=state,
            inputs=[InputDataset(*one) for one in sources],
            outputs=[OutputDataset(*one) for one in targets],
        )

    def _emit_often(self) -> None:
        self._tell(RunState.START)
        while not self._ended.wait(self.every_s):
            self._tell(RunState.RUNNING)

    def _tell(self, state: RunState, **facets: RunFacet) -> None:
        try:
            self._client.emit(self.event(state, **facets))
        except Exception as error:  # noqa: BLE001 - whatever its transport raises
            LOG.warning("lineage.url does not take an event (%s): %s", state.value, error)


def datasets(config: Config) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Namespace and name of each topic that a hub reads; of each topic and table that it writes.

    Source: OpenLineage's naming of data sets, for Kafka, for files and for S3.
    """
    kafka = f"kafka://{config.kafka.bootstrap_servers.partition(',')[0].strip()}"
    read = [(kafka, config.changes_topic(one.name)) for one in config.replicas]
    sent = [(kafka, config.updates_topic(one.name)) for one in config.agreements]
    return read, [*sent, *(_table(config, name) for name in TableName)]


def _table(config: Config, table: TableName) -> tuple[str, str]:
    root = config.hub.state
    if isinstance(root, BucketRoot):
        return f"{S3}{root.bucket}", f"{root.prefix}/{table.value}".lstrip("/")
    return "file", (root.absolute() / table.value).as_posix()


def _transport(config: Config) -> HttpTransport:
    token = config.lineage.access_token
    auth = {"auth": {"type": "api_key", "apiKey": token}} if token else {}
    settings = {"url": config.lineage.url, "timeout": TIMEOUT_S, "retry": {"total": 0}, **auth}
    return HttpTransport(HttpConfig.from_dict(settings))
