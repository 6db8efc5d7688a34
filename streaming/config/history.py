"""What earlier configurations named: a rid belongs to one replica for ever."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from streaming.config.config import Config
from streaming.core.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class KnownReplica:
    """A replica that was configured once, and the topic that its records are in."""

    name: str
    rid: int
    topic: str


@dataclass(frozen=True, slots=True)
class ConfigHistory:
    """All that the stored configurations named, each as the last of them has it.

    `replicas`: by name. `agreements`: name -> consumer. `hub_rids`: the hub's own.
    """

    replicas: Mapping[str, KnownReplica] = field(default_factory=dict)
    agreements: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[str, ...] = ()
    hub_rids: frozenset[int] = frozenset()

    @property
    def names(self) -> dict[int, str]:
        """Rid -> name of the replica."""
        return {one.rid: one.name for one in self.replicas.values()}

    def retired_topics(self, config: Config) -> dict[str, int]:
        """Topic -> rid, of the replicas that are not in this configuration."""
        configured = {one.rid for one in config.replicas}
        known = self.replicas.values()
        return {one.topic: one.rid for one in known if one.rid not in configured}

    def missing(self, config: Config) -> Iterator[str]:
        """One sentence for each thing that a state has and this configuration lacks."""
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


def config_history(documents: Iterable[str]) -> ConfigHistory:
    """What these stored configurations name, the oldest first.

    Only names and rids are read: another version may have written the rest.
    """
    replicas, agreements = dict[str, KnownReplica](), dict[str, str]()
    tables, hub_rids = dict[str, None](), set[int]()
    for text in documents:
        found = json.loads(text)
        hub = found["hub"]
        hub_rids.add(hub["rid"])
        for one in found["replicas"]:
            topic = f"{hub['topic_prefix']}changes.{one['name']}"
            replicas[one["name"]] = KnownReplica(one["name"], one["rid"], topic)
        agreements |= {one["name"]: one["consumer"] for one in found["agreements"]}
        tables |= dict.fromkeys(one["name"] for one in found["tables"])
    return ConfigHistory(replicas, agreements, tuple(tables), frozenset(hub_rids))


def rid_faults(config: Config, history: ConfigHistory) -> Iterator[str]:
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


def check_rids(config: Config, history: ConfigHistory) -> None:
    """ConfigError: a rid of the configuration is another replica's in the state."""
    if faults := list(rid_faults(config, history)):
        raise ConfigError("\n".join(faults))
