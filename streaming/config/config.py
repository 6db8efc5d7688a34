"""The configuration as a whole: its sections, and what must hold between them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from streaming.config.cluster import AgreementConfig, ReplicaConfig, TableConfig
from streaming.config.comparison import CompareConfig
from streaming.config.masking import MaskingConfig, mask_faults
from streaming.config.named_tables import MARK, by_table, chosen
from streaming.config.options import Options, all_masked, masked, masked_values
from streaming.config.parts import problems
from streaming.config.retention import RetentionConfig
from streaming.config.sections import (
    FunctionsConfig,
    HttpConfig,
    HubConfig,
    KafkaConfig,
    LimitsConfig,
    LineageConfig,
    LogConfig,
    S3Config,
    TracesConfig,
)
from streaming.config.sent_columns import as_sent, column_filters
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.errors import ConfigError
from streaming.core.model.row_filter import RowFilter
from streaming.core.model.table import Table
from streaming.core.state.topology import Subscription

ENV_PREFIX = "SLACKWATER_"
ENV_DELIMITER = "__"


class Config(BaseModel):
    """The whole configuration of a hub."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hub: HubConfig = Field(default_factory=HubConfig)
    """The hub itself."""
    kafka: KafkaConfig
    """The brokers and how to reach them."""
    replicas: tuple[ReplicaConfig, ...]
    """The databases that take local writes."""
    tables: tuple[TableConfig, ...]
    """The replicated tables."""
    agreements: tuple[AgreementConfig, ...] = ()
    """Who is sent what: at most one agreement for each consumer."""
    functions: FunctionsConfig = Field(default_factory=FunctionsConfig)
    """Conflict functions of your own: code that runs as the hub."""
    limits: LimitsConfig = Field(default_factory=LimitsConfig)
    """Bounds on memory, records and batches."""
    retention: RetentionConfig = Field(default_factory=RetentionConfig)
    """For how long the history is kept."""
    masking: MaskingConfig = Field(default_factory=MaskingConfig)
    """Columns that are sent masked."""
    http: HttpConfig = Field(default_factory=HttpConfig)
    """What a hub serves over HTTP."""
    log: LogConfig = Field(default_factory=LogConfig)
    """The log of a hub and of its agents."""
    traces: TracesConfig = Field(default_factory=TracesConfig)
    """Traces for OpenTelemetry."""
    lineage: LineageConfig = Field(default_factory=LineageConfig)
    """Lineage for OpenLineage."""
    s3: S3Config = Field(default_factory=S3Config)
    """The storage of a state that is in a bucket."""
    spark: Options = {}
    """Settings for the Spark session, by their full names. Any value may be a secret, so none is
    shown or stored."""

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if found := list(
            problems(self.model_dump(include={"hub", "replicas", "tables", "agreements"}))
        ):
            raise PydanticCustomError("parts", "{text}", {"text": "\n".join(found)})
        for index, agreement in enumerate(self.agreements):
            try:
                self.row_filters(agreement)
                self.column_filters(agreement)
            except ConfigError as error:
                text = f"agreements[{index}].{error}"
                raise PydanticCustomError("parts", "{text}", {"text": text}) from None
        return self

    def table_map(self) -> dict[str, Table]:
        """Table name -> table, as the hub's core knows it."""
        rids = {replica.name: replica.rid for replica in self.replicas}
        return {entry.name: entry.table(rids) for entry in self.tables}

    def replica(self, name: str) -> ReplicaConfig:
        """The replica of this name; ConfigError when there is none."""
        known = {entry.name: entry for entry in self.replicas}
        if name not in known:
            raise ConfigError(f"there is no replica {name!r}: use one of {', '.join(known)}")
        return known[name]

    def tables_of(self, agreement: AgreementConfig) -> frozenset[str]:
        """The names of the tables whose changes this agreement sends."""
        return chosen(agreement.tables, self._table_names)

    def subscription(self, agreement: AgreementConfig) -> Subscription:
        """What core needs of an agreement."""
        return Subscription(
            agreement.name,
            self.replica(agreement.consumer).rid,
            self.tables_of(agreement),
            agreement.packet_every_ms,
            self.row_filters(agreement),
            agreement.times,
            agreement.bytes_per_s,
            self.column_filters(agreement),
            priority=agreement.priority,
            sends_deletes=agreement.sends_deletes,
        )

    def row_filters(self, agreement: AgreementConfig) -> dict[str, RowFilter]:
        """Table -> which of its rows this agreement sends; ConfigError: one says no condition."""
        if not agreement.rows:
            return {}
        from streaming.filters.row_predicate import RowPredicate  # noqa: PLC0415  # it takes a second

        tables, texts = self.table_map(), by_table(agreement.rows, self.tables_of(agreement))
        found, wrong = dict[str, RowFilter](), list[str]()
        for name, text in sorted(texts.items()):
            try:
                found[name] = RowPredicate(text, tables[name])
            except ConfigError as error:
                wrong.append(f"rows.{name}: {error}")
        if wrong:
            raise ConfigError("; ".join(wrong))
        return found

    def column_filters(self, agreement: AgreementConfig) -> dict[str, ColumnFilter]:
        """Table -> which of its columns this agreement sends; ConfigError: it cannot be so."""
        tables, own = self.table_map(), self.tables_of(agreement)
        writes = self.writes_of(self.replica(agreement.consumer))
        sent = {name: table for name, table in tables.items() if name in own}
        return column_filters(agreement, sent, writes, self.masking.hash_secret)

    def masking_faults(self) -> Iterator[str]:
        """Why a hub cannot send what it is to send masked."""
        filters = (
            one for agreement in self.agreements for one in self.column_filters(agreement).values()
        )
        masks = [mask for one in filters for mask in one.masks.values()]
        return mask_faults(masks, self.masking.hash_secret)

    @property
    def hidden_columns(self) -> dict[tuple[str, str], frozenset[str]]:
        """(replica, table) -> the columns that are not sent to it, where there are some."""
        tables = self.table_map()
        return {
            (one.consumer, name): frozenset(tables[name].columns) - known.columns
            for one in self.agreements
            for name, known in self.column_filters(one).items()
            if not tables[name].columns.keys() <= known.columns
        }

    def columns_at(self, replica: str) -> dict[str, ColumnFilter]:
        """Table -> which of its columns this replica has, of those that it lacks some of."""
        own = [one for one in self.agreements if one.consumer == replica]
        return self.column_filters(own[0]) if own else {}

    def tables_at(self, replica: str) -> dict[str, Table]:
        """Table name -> table, with the columns that this replica has of it."""
        known = self.columns_at(replica)
        return {name: as_sent(table, known.get(name)) for name, table in self.table_map().items()}

    def writes_of(self, replica: ReplicaConfig) -> frozenset[str]:
        """The names of the tables that this replica may write."""
        own = [one for one in self.agreements if one.consumer == replica.name]
        if replica.writes is not None:
            return chosen(replica.writes, self._table_names)
        if not own:
            return chosen((MARK,), self._table_names)
        sent = self.tables_of(own[0])
        return sent - {name for name, masks in by_table(own[0].masks, sent).items() if masks}

    @property
    def _table_names(self) -> list[str]:
        return [entry.name for entry in self.tables]

    def dataset_of(self, agreement: AgreementConfig) -> str:
        """The data set that this agreement serves."""
        names = self.tables_of(agreement)
        return next(entry.dataset for entry in self.tables if entry.name in names)

    def changes_topic(self, replica_name: str) -> str:
        """The topic in which this replica publishes to the hub."""
        return f"{self.hub.topic_prefix}changes.{replica_name}"

    def updates_topic(self, agreement_name: str) -> str:
        """The topic in which the hub publishes to the consumer of this agreement."""
        return f"{self.hub.topic_prefix}updates.{agreement_name}"

    @property
    def by_packets(self) -> dict[str, AgreementConfig]:
        """Consumer -> its agreement, of those that Kafka does not reach."""
        return {one.consumer: one for one in self.agreements if one.packets is not None}

    @property
    def compared(self) -> dict[str, CompareConfig]:
        """Consumer -> the comparison of its agreement, of those that have one."""
        own = ((one.consumer, one.compare) for one in self.agreements)
        return {name: section for name, section in own if section is not None}

    @property
    def secret_options(self) -> tuple[Mapping[str, str], ...]:
        """The options of which some are secrets, by name; no line of a log may show those."""
        sections = (self.s3, self.lineage, self.http, self.masking)
        return (self.kafka.options, self.spark, *(section.options for section in sections))

    def shown(self) -> dict[str, Any]:
        """The sections as JSON has them, fields in their order here, secrets replaced."""
        data = self.model_dump(mode="json")
        data["kafka"]["options"] = masked(self.kafka.options)
        for section in ("http", "lineage", "masking", "s3"):
            data[section] = masked_values(data[section])
        data["spark"] = all_masked(self.spark)
        return data

    def document(self) -> str:
        """The configuration as canonical JSON, secrets replaced."""
        return json.dumps(self.shown(), separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_document(cls, text: str) -> "Config":
        """Read a stored document back; its secrets are gone, so it cannot reach a broker."""
        return cls.model_validate_json(text)

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        for name in type(self).model_fields:
            yield name, all_masked(self.spark) if name == "spark" else getattr(self, name)
