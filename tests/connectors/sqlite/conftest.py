"""A SQLite replica with two tables, its agents, and the hub that they speak to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from tests.connectors.sqlite.running_agents import Agents, Hub, agents_of, hub_at, settings_of
from tests.connectors.sqlite.sqlite_replica import (
    CREATE_ITEMS,
    CREATE_PAIRS,
    ITEMS,
    PAIRS,
    Replica,
    make,
)


@pytest.fixture
def replica(tmp_path: Path) -> Iterator[Replica]:
    """A replica with an ordinary table and one whose names need quoting."""
    made = make(tmp_path / "replica.db", {CREATE_ITEMS: ITEMS, CREATE_PAIRS: PAIRS})
    yield made
    made.client.close()


@pytest.fixture
def hub(broker: Broker, topic_prefix: str) -> Iterator[Hub]:
    """A hub on the common broker."""
    with hub_at(broker.bootstrap_servers, topic_prefix) as made:
        yield made


@pytest.fixture
def agents(replica: Replica, hub: Hub, tmp_path: Path) -> Iterator[Agents]:
    """The replica's agents, on the same broker."""
    with agents_of(settings_of(replica, hub.bootstrap, hub.prefix), tmp_path) as made:
        yield made
