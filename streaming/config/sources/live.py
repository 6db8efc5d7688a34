"""What of a configuration is read again while a process runs: how Kafka is reached, the token."""

from pathlib import Path

from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.config.sources.secret_files import secret_paths


def live_options(path: Path, config: Config) -> LiveOptions:
    """[kafka.options] of the configuration at the path, which holds `config` now."""
    return LiveOptions(
        config.kafka.options, lambda: load(path).kafka.options, lambda: [path, *secret_paths()]
    )


def live_access(path: Path, config: Config, *, needs_kafka: bool = True) -> LiveAccess:
    """Who may read a port by [http] of the configuration at the path, which holds `config` now."""
    return LiveAccess(
        config.http.access,
        lambda: load(path, needs_kafka=needs_kafka).http.token,
        lambda: [path, *secret_paths()],
    )


def with_options(config: Config, live: LiveOptions) -> Config:
    """The configuration with its [kafka.options] as they are now."""
    kafka = config.kafka.model_copy(update={"options": live.now()})
    return config.model_copy(update={"kafka": kafka})
