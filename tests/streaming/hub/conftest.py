"""What tests of the hub at work share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from tests.harness.site import Site, site_with_sessions


@pytest.fixture
def pair(tmp_path: Path, broker: Broker, topic_prefix: str) -> Iterator[Site]:
    """A hub with two replicas."""
    with site_with_sessions(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        yield made
