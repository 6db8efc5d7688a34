"""What the hub's state and the replicas' journals say while a demonstration runs."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from checkpoints.reading.reader import Reader, open_state
from streaming.config.config import Config
from streaming.core.model.errors import StateError
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.text.wording import as_count
from streaming.demo.folder import DemoFolder
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
    databases = [folder.database(replica.name) for replica in served.replicas]
    if not all(map(published_all, databases)):
        return False
    ruv = committed(reader).ruv_of(DEFAULT_DATASET)
    is_known = all(ruv.covers(csn) for csn in map(last_write, databases) if csn)
    return is_known and all(lag.has_all for lag in lags(served, reader))


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


def published_all(database: Path) -> bool:
    """Return whether every row of the journal is in the replica's topic."""
    (is_so,) = _query_row(
        database,
        "SELECT NOT EXISTS (SELECT 1 FROM _slackwater_journal WHERE id > published)"
        " FROM _slackwater_position",
    )
    return bool(is_so)


def last_write(database: Path) -> str | None:
    """The largest CSN that was issued here, or None."""
    (csn,) = _query_row(database, "SELECT max(csn) FROM _slackwater_journal WHERE kind = 'change'")
    return None if csn is None else str(csn)


def session_of(database: Path) -> str | None:
    """The session that the replica's agent started last."""
    (session,) = _query_row(database, "SELECT session FROM _slackwater_position")
    return None if session is None else str(session)


def _query_row(database: Path, query: str) -> tuple[Any, ...]:
    with closing(sqlite3.connect(database, timeout=10)) as connection:
        row: tuple[Any, ...] = connection.execute(query).fetchone()
    return row
