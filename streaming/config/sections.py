"""The other sections of the configuration: the hub, its services and its limits."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from connectors.log_format import LogFormat
from streaming.config.options import Options, masked
from streaming.config.section import (
    Endpoint,
    Name,
    NonNegative,
    NumberOrAuto,
    Place,
    Positive,
    Section,
    SectionWithSecret,
    Url,
)
from streaming.core.access.port_access import PortAccess
from streaming.core.access.root import S3Access
from streaming.core.model.change import HUB_RID
from streaming.core.records.quarantine_budget import QuarantineLimits

_BROKER = re.compile(r"^(\[[0-9a-fA-F:.]+\]|[^\s,:\[\]]+):[0-9]{1,5}$")


class HubConfig(Section):
    """The hub itself."""

    name: Name = "hub"
    """Its name, in the topic of the changes that an operator makes at the hub."""
    rid: int = Field(default=HUB_RID, ge=1, le=HUB_RID)
    """Its own replica id, for those changes."""
    state: Place = Path("state")
    """The folder of the Delta tables, or s3://bucket/prefix, see [s3].

    A relative one is in this file's folder, or in that of the variable SLACKWATER_STATE_FOLDER.
    """
    topic_prefix: str = Field(default="slackwater.", pattern="^[a-zA-Z0-9._-]*$", max_length=40)
    """What all its topics start with."""
    trigger_ms: int = Field(default=100, ge=0)
    """Milliseconds from the start of one batch to the start of the next; 0: at once."""
    covers_interval_ms: Positive = 1_000
    """The shortest interval at which an empty batch reports to a consumer that it is complete."""
    batch_timeout_s: NonNegative = 600
    """A batch under way for so many seconds hangs, and so does a hub that reads nothing for so long
    while records wait: the hub writes all its stacks to its log and exits with 3; 0: it waits. Time
    in which Kafka does not answer does not count."""
    ack_timeout_s: Positive = 300
    """A consumer that acknowledges nothing for so many seconds counts as away: it is sent nothing
    more until it answers again, and then the last version of each row that it lacks."""
    heartbeat_timeout_s: int = Field(default=30, ge=12)
    """A replica that sends nothing for so many seconds may hold anything, so `slackwater
    level` cannot say yes. Its agent sends a heartbeat at least every 10 seconds."""
    replay_window_h: Positive = 168
    """How many hours back the full state can be read as it was: for `slackwater rows --as-of`, and
    as the start of a replay once the changelog before it is purged."""


class KafkaConfig(Section):
    """The brokers and how to reach them."""

    bootstrap_servers: str
    """Where to find the brokers: host:port, several separated by commas."""
    options: Options = Field(default={})
    """Options for every Kafka client, by their plain names: security.protocol, sasl.mechanism."""

    @field_validator("bootstrap_servers")
    @classmethod
    def _host_and_port(cls, value: str) -> str:
        servers = [server.strip() for server in value.split(",")]
        if "@" in value:
            raise PydanticCustomError(
                "login", "give host:port; a login belongs in [kafka.options], as sasl.username"
            )
        if not all(_BROKER.match(server) for server in servers):
            raise PydanticCustomError("broker", "give host:port, several separated by commas")
        return ",".join(servers)

    @field_validator("options")
    @classmethod
    def _no_second_address(cls, value: dict[str, str]) -> dict[str, str]:
        if "bootstrap.servers" in value:
            raise PydanticCustomError("twice", "give the brokers as kafka.bootstrap_servers")
        return value

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        yield "bootstrap_servers", self.bootstrap_servers
        yield "options", masked(self.options)


class HttpConfig(SectionWithSecret):
    """What a hub serves over HTTP, read only: metrics, health, status, events."""

    port: int = Field(default=9470, ge=0, le=65535)
    """The port; 0: none."""
    host: str = "127.0.0.1"
    """The address that it listens at. Whoever may read sees what conflicts hold, so one that is not
    of loopback needs `token`, or `client_ca` with `certificate` and `key`."""
    token: str | None = None
    """What a client gives as `Authorization: Bearer`, 16 characters at least; the page asks for it
    once. Set it through a secret file, SLACKWATER_HTTP__TOKEN, which is read again when it is
    changed, or through the environment."""
    certificate: Path | None = None
    """A file with the port's certificate and those above it (PEM), for TLS; a relative path is
    in this file's folder."""
    key: Path | None = None
    """The file with its key (PEM), without a passphrase."""
    client_ca: Path | None = None
    """A file with an authority (PEM): a client with a certificate of it may read."""
    names: tuple[str, ...] = ()
    """Names by which clients ask for it, such as one in a cluster's DNS. Addresses, `localhost`,
    `host` and the name of the machine are known; under any other name nothing is answered."""

    @property
    def access(self) -> PortAccess:
        """Who may read the port."""
        return PortAccess(self.token, self.certificate, self.key, self.client_ca, self.names)


class LogConfig(Section):
    """The log of a hub and of its agents, on standard error."""

    format: LogFormat = LogFormat.AUTO
    """text for people, json for programs; auto: text on a terminal, else json."""
    level: Literal["debug", "info", "warning"] = "info"
    """From which level on its own lines are written; debug: one for each hub epoch."""


class TracesConfig(Section):
    """Traces for OpenTelemetry: a span for each batch with its phases; the extra `traces`."""

    endpoint: Url | None = None
    """Where they are sent by OTLP over HTTP, as http://host:4318/v1/traces; by default nowhere.
    Headers and sampling are OpenTelemetry's own variables: OTEL_EXPORTER_OTLP_HEADERS,
    OTEL_TRACES_SAMPLER."""


class LineageConfig(SectionWithSecret):
    """Lineage for OpenLineage: which topics and tables the hub reads and writes; `lineage`."""

    url: Url | None = None
    """The server that gets an event when the hub starts, each minute and when it ends, as
    http://host:5000; by default none."""
    namespace: str = Field(default="slackwater", min_length=1)
    """The namespace of the job, whose name is hub.name."""
    access_token: str | None = None
    """The API key; set it through the environment: SLACKWATER_LINEAGE__ACCESS_TOKEN."""


class S3Config(SectionWithSecret):
    """How the bucket of hub.state is reached; it must honour conditional PUTs (If-None-Match)."""

    endpoint: Endpoint | None = None
    """Its address, as https://host:port; by default Amazon's."""
    region: str = "us-east-1"
    """Its region."""
    access_key_id: str | None = None
    """The access key; by default what the environment or the machine's role has."""
    secret_access_key: str | None = None
    """Its secret; set it through the environment: SLACKWATER_S3__SECRET_ACCESS_KEY."""

    @property
    def access(self) -> S3Access:
        """The section as a value."""
        return S3Access(**self.model_dump())


class FunctionsConfig(Section):
    """Conflict functions of your own: code that runs as the hub."""

    modules: tuple[str, ...] = ()
    """The modules whose functions a table may name, as `our_rules`; no other is imported."""


class LimitsConfig(Section):
    """Bounds on memory, records and batches."""

    offsets_per_batch: Positive = 200_000
    """The most input records of one batch; all of them are in memory at once, several times over,
    so set it lower where records have tens of kilobytes."""
    batch_ms: Positive = 10_000
    """How many milliseconds a batch should take at most, by what records of its replicas took
    lately. A batch that would take longer takes fewer of them."""
    flood_ms: Positive = 1_000
    """While other replicas write: how many milliseconds of a batch the records of replicas should
    take at most that have more than that waiting. It is never more than a batch usually takes, so
    the changes of the others take twice as long at most. What waits is read faster with more."""
    driver_batch_records: NumberOrAuto = "auto"
    """A batch of at most so many records is parsed and carried by the driver, a larger one by the
    executors; 0: every batch. "auto": 50,000 on a cluster, no bound where `spark.master` is local.
    On a cluster the executors' Python (`spark.pyspark.python`, if not the path of the hub's own)
    needs the hub's packages."""
    min_partitions: Positive = 1
    """Into how many tasks at least the reading of a batch is cut. There are more anyway: a task
    reads one topic, and 25,000 records at most."""
    chunk_items: Positive = 5_000
    """The most items of one record in an updates topic."""
    chunk_bytes: Positive = 900_000
    """From how many bytes on a record in an updates topic takes no further item."""
    page_items: Positive = 50_000
    """The most rows that an agreement which is behind is sent by one batch."""
    resync_page_rows: Positive = 10_000
    """The most rows of one page of a resync; the batches of other consumers wait for it."""
    resync_pages: Positive = 4
    """How many pages of a resync a consumer is sent ahead of what it has applied."""
    resync_workers: Positive = 4
    """How many tables of resyncs are sorted at once, while the batches go on."""
    record_bytes: Positive = 1_000_000
    """A change of more bytes is quarantined as `size`; the topics take records that large."""
    quarantine_bytes: Positive = 64_000_000
    """From so many bytes on that are kept of a replica's records in quarantine, only 1,024 of a
    further one are kept, with its length and SHA-256; the whole is in its topic."""
    quarantine_records: Positive = 100_000
    """From so many records of a replica in quarantine on it is the same."""
    skew_s: Positive = 86_400
    """A CSN so many seconds ahead of its record's own time is quarantined as `skew`, unless it goes
    on behind the last one of its replica that was no skew."""
    pending_changes: Positive = 100_000
    """Above this many open changes of one replica, they are kept in the table `pending`, and only a
    few of each transaction in memory; they are read back when they become eligible. An open change
    in memory takes about 1 kB besides its images."""
    open_transactions: Positive = 100_000
    """At this many uncommitted transactions of one replica, reading its topic is paused until it
    has fewer; an open transaction takes 5 kB at most. The status shows `paused`; an operator
    aborts a transaction, or starts the hub with a larger limit."""
    window_rows: Positive = 1_000_000
    """The most rows that are kept in memory for judging; older ones are looked up in `rows` and
    the changelog behind it."""
    kept_image_bytes: Positive = 64_000_000
    """The most bytes of images of contended rows that are kept in memory; others are looked up in
    the tables."""
    materialize_every_epochs: Positive = 2_000
    """After how many hub epochs `rows` is brought up to date, or earlier if the window is full.
    That takes tens of seconds on a small machine; the batches continue, at half the speed."""
    materialize_every_s: Positive = 300
    """After how many seconds `rows` is brought up to date at the latest, if it lags at all."""
    refused_again_ms: Positive = 10_000
    """After how many milliseconds a refused row of a table with `on_refused = "refresh"` is sent
    again; each further attempt waits twice as long, 360 times that at most."""
    journal_rows: Positive = 1_000
    """How many published rows the journal in a replica's database keeps; up to 1,000 more are there
    until they are trimmed."""
    reflections: Positive = 64
    """The most reflected epochs that are kept of one replica."""

    @property
    def quarantine(self) -> QuarantineLimits:
        """How much of a replica's records quarantine keeps."""
        return QuarantineLimits(self.record_bytes, self.quarantine_bytes, self.quarantine_records)
