"""What earlier configurations named, and what a later one must not change of it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming.config.config import Config
from streaming.config.delayed import delay_warnings
from streaming.config.named_tables import MARK, by_table, chosen
from streaming.config.table_history import KnownTable, known_tables, table_faults, table_warnings
from streaming.core.model.table import DEFAULT_DATASET


@dataclass(frozen=True, slots=True)
class KnownReplica:
    """A replica that was configured once, and the topic that its records are in."""

    name: str
    rid: int
    topic: str


@dataclass(frozen=True, slots=True)
class ConfigHistory:
    """All that the stored configurations named, each as the last of them has it.

    `replicas`: by name. `agreements`: name -> consumer. `hub_rids`: the hub's own. `datasets`:
    consumer -> the data set that it was sent last. `tables`: by name. `masked`: consumer -> the
    tables that any of them sent it masked.
    """

    replicas: Mapping[str, KnownReplica] = field(default_factory=dict)
    agreements: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, KnownTable] = field(default_factory=dict)
    hub_rids: frozenset[int] = frozenset()
    datasets: Mapping[str, str] = field(default_factory=dict)
    masked: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def names(self) -> dict[int, str]:
        """Rid -> name of the replica."""
        return {one.rid: one.name for one in self.replicas.values()}

    @property
    def masked_tables(self) -> dict[int, frozenset[str]]:
        """Rid -> the tables that it was ever sent masked."""
        return {self.replicas[name].rid: tables for name, tables in self.masked.items() if tables}

    def retired_topics(self, config: Config) -> dict[str, int]:
        """Topic -> rid, of the replicas that are not in this configuration."""
        configured = {one.rid for one in config.replicas}
        known = self.replicas.values()
        return {one.topic: one.rid for one in known if one.rid not in configured}

    def warnings(self, config: Config) -> Iterator[str]:
        """One sentence for each thing that a hub may be started with, and that few expect."""
        replicas = {one.name for one in config.replicas}
        agreements = {one.name for one in config.agreements}
        tables = {one.name for one in config.tables}
        for name in (name for name in self.replicas if name not in replicas):
            yield (
                f"replica {name} is in the state and not in the configuration: a hub that starts"
                " with it does not read the replica's topic on"
            )
        for name in (name for name in self.agreements if name not in agreements):
            yield (
                f"agreement {name} is in the state and not in the configuration: a hub that starts"
                f" with it sends {self.agreements[name]} nothing more under this agreement"
            )
        for name in (name for name in self.tables if name not in tables):
            yield (
                f"table {name} is in the state and not in the configuration: a hub that starts with"
                " it quarantines the table's changes; wait for `slackwater level` before"
            )
        yield from table_warnings(config.tables, self.tables)
        yield from delay_warnings(config)


def config_history(documents: Iterable[str]) -> ConfigHistory:
    """What these stored configurations name, the oldest first.

    Only names, rids, keys and types are read: another version may have written the rest.
    """
    replicas, agreements = dict[str, KnownReplica](), dict[str, str]()
    datasets, hub_rids = dict[str, str](), set[int]()
    masked = dict[str, frozenset[str]]()
    stored = [json.loads(text) for text in documents]
    for found in stored:
        hub = found["hub"]
        hub_rids.add(hub["rid"])
        for one in found["replicas"]:
            topic = f"{hub['topic_prefix']}changes.{one['name']}"
            replicas[one["name"]] = KnownReplica(one["name"], one["rid"], topic)
        agreements |= {one["name"]: one["consumer"] for one in found["agreements"]}
        datasets |= _datasets(found)
        for one in found["agreements"]:
            masked[one["consumer"]] = masked.get(one["consumer"], frozenset()) | _masked(one, found)
    tables, rids = known_tables(stored), frozenset(hub_rids)
    return ConfigHistory(replicas, agreements, tables, rids, datasets, masked)


def _masked(agreement: Mapping[str, Any], found: Mapping[str, Any]) -> frozenset[str]:
    """The tables that this agreement of a stored configuration sends masked."""
    tables = [one["name"] for one in found["tables"]]
    sent = chosen(agreement.get("tables", [MARK]), tables)
    masks = by_table(agreement.get("masks", {}), sent)
    return frozenset(name for name, columns in masks.items() if columns)


def _datasets(found: Mapping[str, Any]) -> dict[str, str]:
    """Consumer -> the data set of its agreement in one stored configuration."""
    of_table = {one["name"]: one.get("dataset", DEFAULT_DATASET) for one in found["tables"]}
    served = {
        one["consumer"]: [
            of_table[name]
            for name in of_table
            if name in chosen(one.get("tables", [MARK]), of_table)
        ]
        for one in found["agreements"]
    }
    return {consumer: datasets[0] for consumer, datasets in served.items() if datasets}


def history_faults(config: Config, history: ConfigHistory) -> Iterator[str]:
    """One sentence for each thing that must not be otherwise than in the state."""
    yield from _rid_faults(config, history)
    yield from _dataset_faults(config, history)
    yield from table_faults(config.tables, history.tables)


def _dataset_faults(config: Config, history: ConfigHistory) -> Iterator[str]:
    """A consumer's position is that of its data set: by it, another one's changes look applied."""
    for index, one in enumerate(config.agreements):
        dataset = config.dataset_of(one)
        before = history.datasets.get(one.consumer, dataset)
        if before != dataset:
            yield (
                f"agreements[{index}].tables: {one.consumer} was sent data set {before} and would"
                f" be sent {dataset} from the middle on: give it the tables of {before} again, or"
                f" send {dataset} to a new replica with an empty database"
            )


def _rid_faults(config: Config, history: ConfigHistory) -> Iterator[str]:
    """One sentence for each rid that the state knows otherwise."""
    names = history.names
    for index, replica in enumerate(config.replicas):
        known, owner = history.replicas.get(replica.name), names.get(replica.rid)
        given = f"replicas[{index}].rid = {replica.rid}"
        if known is not None and known.rid != replica.rid:
            yield (
                f"{given}: the state knows replica {replica.name} by rid {known.rid}, and a rid"
                f" is never changed: set rid = {known.rid}, or give a new database a new name"
            )
        elif owner is not None and owner != replica.name:
            yield (
                f"{given}: in the state this rid belongs to replica {owner}, and a rid is never"
                f" given again: give {replica.name} another"
            )
        elif replica.rid in history.hub_rids:
            yield f"{given}: in the state this rid is the hub's own: give {replica.name} another"
    if config.hub.rid in names:
        owner = names[config.hub.rid]
        yield (
            f"hub.rid = {config.hub.rid}: in the state this rid belongs to replica {owner}:"
            " give the hub another"
        )
