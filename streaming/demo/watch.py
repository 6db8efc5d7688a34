"""What the hub's state and the replicas' journals say while a demonstration runs."""

from checkpoints.reading.reader import Reader, open_state
from streaming.config.config import Config
from streaming.core.model.errors import StateError
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.text.wording import as_count
from streaming.demo.databases.found import database_of
from streaming.demo.folder import DemoFolder
from streaming.facts.consumers.compared import recorded_rounds
from streaming.facts.consumers.lag import Lag, lags
from streaming.facts.names import committed, serving
from streaming.terminal.output import as_counts

STATE_POLL_S = 0.3
"""The interval at which the hub's state is read."""


def _reader(config: Config) -> Reader | None:
    """The hub's state as of its last commit; None before there is one."""
    try:
        reader = open_state(config.hub.state)
    except StateError:
        return None
    return reader if reader.commit is not None else None


def hub_epoch(config: Config) -> int:
    """The last committed hub epoch."""
    reader = _reader(config)
    return committed(reader).hub_epoch if reader else 0


def is_attached(config: Config) -> bool:
    """Return whether the hub has received every replica's hello."""
    reader = _reader(config)
    return reader is not None and all(lag.has_hello for lag in lags(config, reader))


def is_level(config: Config, folder: DemoFolder) -> bool:
    """Return whether every journal is in its topic, judged, and applied by all replicas.

    A replica that is retired for good is left out.
    """
    reader = _reader(config)
    if reader is None:
        return False
    served = serving(config, reader)
    if not all(lag.has_all for lag in lags(served, reader)):
        return False
    tables = config.table_map()
    databases = [database_of(folder, one.name, one.rid, tables) for one in served.replicas]
    if not all(one.published_all() for one in databases):
        return False
    ruv = committed(reader).ruv_of(DEFAULT_DATASET)
    return all(ruv.covers(csn) for one in databases if (csn := one.last_write()))


def are_compared(config: Config, since_s: float) -> bool:
    """Return whether a comparison of each replica with the hub began later, and has ended."""
    reader = _reader(config)
    if reader is None:
        return False
    ended = recorded_rounds(reader).ended
    began_s = {name: at.timestamp() - one.seconds for name, (one, at) in ended.items()}
    names = [one.name for one in serving(config, reader).agreements]
    return all(began_s.get(name, 0.0) > since_s for name in names)


def not_level(config: Config) -> str:
    """What is not level, as text."""
    reader = _reader(config)
    if reader is None:
        return "the hub has not committed a batch: see its log"
    hub = committed(reader)
    lines = [_lagging(lag) for lag in lags(serving(config, reader), reader) if not lag.has_all]
    kept = reader.quarantine_counts()
    quarantine = [f"in quarantine: {as_counts(kept)}"] if kept else []
    known = [f"the hub knows: {', '.join(hub.ruv_of(DEFAULT_DATASET).text())}"]
    head = f"not all are level with hub epoch {hub.hub_epoch}"
    return "\n".join([head, *lines, *quarantine, *known])


def _lagging(lag: Lag) -> str:
    if not lag.has_hello:
        return f"{lag.consumer} has not sent a hello: see its agent's log"
    stopped = ", stopped" if lag.is_stopped else ""
    lacking = ", ".join(map(str, lag.lacking)) or "none"
    return (
        f"{lag.consumer}: {lag.state}{stopped}, acknowledged {lag.acked_covers},"
        f" {as_count(lag.epochs, 'hub epoch')} behind, lacks changes of rid {lacking}"
    )
