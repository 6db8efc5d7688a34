"""The settings of a replica's agent, from the hub's configuration."""

from connectors.agent.settings import AgentSettings, DatabaseAddress
from streaming.config.config import Config


def agent_settings(config: Config, replica: str, database: DatabaseAddress) -> AgentSettings:
    """The settings of the agent beside this database; ConfigError: there is no such replica.

    What no configuration says is as it is by default.
    """
    names = [one.name for one in config.agreements if one.consumer == replica]
    agreement = names[0] if names else None
    return AgentSettings(
        database,
        replica,
        config.replica(replica).rid,
        config.kafka.bootstrap_servers,
        config.changes_topic(replica),
        config.updates_topic(agreement) if agreement else None,
        tuple(config.tables_at(replica).values()),
        config.kafka.options,
        config.limits.record_bytes,
        skew_s=config.limits.skew_s,
        journal_rows=config.limits.journal_rows,
        log_format=config.log.format,
        log_level=config.log.level,
        metrics_access=config.http.access,
        agreement=agreement,
    )
