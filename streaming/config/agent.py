"""The settings of a replica's agent, from the hub's configuration."""

from connectors.agent.settings import AgentSettings, DatabaseAddress
from streaming.config.config import Config
from streaming.core.access.port_access import LOOPBACK


def agent_settings(
    config: Config,
    replica: str,
    database: DatabaseAddress,
    *,
    rows_are_shared: bool = False,
    takes_snapshot: bool = False,
    metrics_port: int = 0,
    metrics_host: str = LOOPBACK,
    load: str | None = None,
) -> AgentSettings:
    """The settings of the agent beside this database; ConfigError: there is no such replica."""
    rid = config.replica(replica).rid
    topics = [config.updates_topic(a.name) for a in config.agreements if a.consumer == replica]
    return AgentSettings(
        database,
        replica,
        rid,
        config.kafka.bootstrap_servers,
        config.changes_topic(replica),
        topics[0] if topics else None,
        tuple(config.table_map().values()),
        config.kafka.options,
        config.limits.record_bytes,
        rows_are_shared,
        takes_snapshot,
        config.limits.skew_s,
        config.limits.journal_rows,
        config.log.format,
        config.log.level,
        metrics_port,
        metrics_host,
        config.http.access,
        load,
    )
