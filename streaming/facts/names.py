"""The hub's committed state, and lookups in the configuration: by name, and of who is served."""

from collections.abc import Mapping

from checkpoints.reading.reader import Reader
from streaming.config.cluster import AgreementConfig
from streaming.config.config import Config
from streaming.config.history import ConfigHistory, config_history
from streaming.core.model.change import NOBODY
from streaming.core.model.errors import ConfigError, StateError
from streaming.core.state.hub_state import HubState


def committed(reader: Reader) -> HubState:
    """The hub as of its last commit; StateError when there is none yet."""
    if reader.commit is None:
        raise StateError(
            f"no batch is committed in {reader.root} yet: start a hub with `slackwater run`"
        )
    return reader.commit.state


def age_s(reader: Reader, now_s: float) -> float | None:
    """The age of the last commit; None: there is none yet."""
    return now_s - reader.commit.at_ms / 1000 if reader.commit else None


def names_of(config: Config) -> dict[int, str]:
    """Name by rid, the hub's own included."""
    return {config.hub.rid: config.hub.name} | {r.rid: r.name for r in config.replicas}


def names_ever(config: Config, reader: Reader) -> dict[int, str]:
    """Name by rid, of all that ever were configured."""
    return history_of(reader).names | names_of(config)


def history_of(reader: Reader) -> ConfigHistory:
    """All that the stored configurations named."""
    return config_history(row["document"] for row in reader.configs() if row["document"])


def author_name(rid: int, names: Mapping[int, str]) -> str:
    """The author of a row for people."""
    return "no replica's row" if rid == NOBODY else names.get(rid, str(rid))


def rid_of_any(config: Config, name: str) -> int:
    """The rid of a replica or the hub, given by name or rid; ConfigError when there is none."""
    rids = {known: rid for rid, known in names_of(config).items()}
    if name in rids:
        return rids[name]
    if name.isdecimal():
        return int(name)
    raise ConfigError(f"there is no replica {name!r}: use one of {', '.join(rids)}")


def agreement_named(config: Config, name: str) -> AgreementConfig:
    """The agreement of this name; ConfigError when there is none."""
    known = {agreement.name: agreement for agreement in config.agreements}
    if name not in known:
        listed = ", ".join(known) or "none is configured"
        raise ConfigError(f"there is no agreement {name!r}: use one of {listed}")
    return known[name]


def serving(config: Config, reader: Reader) -> Config:
    """The configuration of those that are served; what is retired for good has to be level no more.

    It stays in the file until the operator removes it.
    """
    known = reader.commit.state.replicas if reader.commit else {}
    gone = {r.name for r in config.replicas if r.rid in known and known[r.rid].is_retired_for_good}
    if not gone:
        return config
    return config.model_copy(
        update={
            "replicas": [one for one in config.replicas if one.name not in gone],
            "agreements": [one for one in config.agreements if one.consumer not in gone],
        }
    )
