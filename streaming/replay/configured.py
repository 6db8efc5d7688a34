"""The configuration of then, and what of it is set otherwise for a what-if."""

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.dataset as ds

from checkpoints.config import settings_document, stored_versions
from checkpoints.store import StateStore
from checkpoints.tables import TableName
from streaming.config.config import Config
from streaming.config.history import config_history
from streaming.core.model.errors import StateError
from streaming.hub.batch.settings import BatchSettings
from streaming.hub.batch.source import limits_of
from streaming.hub.configured import settings_of, with_retired
from streaming.replay.what_if import NO_CHANGE, WhatIf
from streaming.stages.check import check_records


@dataclass(frozen=True, slots=True)
class ConfigThen:
    """A version of the configuration, as batches were decided under it."""

    config: Config
    settings: BatchSettings

    def check(self, records: pa.Table) -> pa.Table:
        """CHECKED of records by their bytes (topic, offset, timestamp, value)."""
        settings = self.settings
        topics, tables = settings.all_topics, settings.topology.tables
        limits = limits_of(self.config.limits, settings)
        return check_records(records, topics, tables, limits)


@dataclass(slots=True)
class ConfigsThen:
    """The versions that were stored, each read once; `what_if`: what is set otherwise in each."""

    store: StateStore
    what_if: WhatIf = NO_CHANGE
    known: dict[int, ConfigThen] = field(default_factory=dict)

    def at(self, version: int) -> ConfigThen:
        """This version of the configuration; StateError if `config` does not have it."""
        if version not in self.known:
            self.known[version] = self._read(version)
        return self.known[version]

    def first(self) -> int:
        """The version under which the state was founded."""
        rows = self.store.read(TableName.CONFIG, ds.field("kind") == "config", ["number"])
        return min(rows["number"].to_pylist(), default=0)

    def documents(self, upto: int) -> list[str]:
        """The versions up to this one as JSON, the oldest first."""
        return [one.document for one in stored_versions(self.store.root) if one.version <= upto]

    def _read(self, version: int) -> ConfigThen:
        document = settings_document(self.store, version)
        if document is None:
            raise StateError(
                f"{self.store.uri(TableName.CONFIG)} has no configuration {version}, by which the"
                " hub decided: the state is not complete"
            )
        config = self.what_if.config(Config.from_document(document))
        history = config_history(self.documents(version))
        settings = with_retired(config, settings_of(config), history)
        topology = replace(settings.topology, order=self.what_if.order)
        return ConfigThen(config, replace(settings, topology=topology, publishes=False))
