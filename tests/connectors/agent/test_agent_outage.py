"""Claims about what an agent says while its broker takes nothing, or refuses it."""

import logging
import threading

import pytest
from kafka.errors import (
    InvalidTimestampError,
    KafkaConnectionError,
    SaslAuthenticationFailedError,
)

from connectors.agent.access import KafkaAccess
from connectors.agent.outage import REFUSED_TIME, Outage
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.kafka.client_errors import ClientFault
from connectors.kafka.options import LiveOptions

AWAY = "no acknowledgement"

REFUSED_LOGIN = (
    f"{ClientFault.LOGIN} (as User:a: SaslAuthenticationFailedError('invalid credentials')); the"
    " agent retries, and loses nothing"
)


def outage() -> Outage:
    """Of an agent that logs in as `a`."""
    settings = AgentSettings(
        DatabaseAddress("sqlite", "a.db"), "a", 1, "localhost:1", "changes.a", None, ()
    )
    options = {"sasl.username": "a", "sasl.password": "word-of-a"}
    return Outage(threading.Event(), KafkaAccess(settings, LiveOptions(options)))


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (InvalidTimestampError("out of range"), REFUSED_TIME),
        (AWAY, f"Kafka does not answer, the agent retries: {AWAY}"),
        (
            "socket disconnected",
            f"Kafka does not answer, the agent retries: socket disconnected ({ClientFault.ENDED})",
        ),
        (
            SaslAuthenticationFailedError("invalid credentials"),
            REFUSED_LOGIN,
        ),
    ],
)
def test_what_kafka_refuses_is_no_outage(
    caplog: pytest.LogCaptureFixture, reason: object, said: str
) -> None:
    """Whoever reads that Kafka does not answer looks for the cause elsewhere."""
    with caplog.at_level(logging.WARNING):
        outage().begin(reason)

    assert caplog.messages == [said]


def test_an_outage_is_told_again_when_its_cause_is_known(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client says first that nothing comes, and only then that the password is refused."""
    found, refused = outage(), SaslAuthenticationFailedError("invalid credentials")

    with caplog.at_level(logging.WARNING):
        for reason in (AWAY, AWAY, refused, refused, AWAY):
            found.begin(reason)
        found.finish()
        found.begin(KafkaConnectionError("refused"))

    assert [one.split(":")[0] for one in caplog.messages] == [
        "Kafka does not answer, the agent retries",
        "Kafka refuses the login",
        "Kafka answers again after 0.0 s",
        "Kafka does not answer, the agent retries",
    ]
