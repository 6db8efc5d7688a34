"""Claims about what an agent says while its broker takes nothing."""

import logging
import threading

import pytest
from kafka.errors import InvalidTimestampError

from connectors.agent.topics import REFUSED_TIME, Outage


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (InvalidTimestampError("out of range"), REFUSED_TIME),
        ("no acknowledgement", "Kafka does not answer, the agent retries: no acknowledgement"),
    ],
)
def test_a_clock_that_kafka_refuses_is_not_an_outage(
    caplog: pytest.LogCaptureFixture, reason: object, said: str
) -> None:
    """Whoever reads that Kafka does not answer looks for the cause elsewhere."""
    with caplog.at_level(logging.WARNING):
        Outage(threading.Event()).begin(reason)

    assert caplog.messages == [said]
