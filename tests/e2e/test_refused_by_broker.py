"""What Java says of a broker that refuses it, or that it refuses, becomes the sentence for it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import SparkSession

from connectors.kafka.client_errors import ClientFault, fault_of
from connectors.kafka.embedded.broker import HOST
from connectors.kafka.options import source_options
from streaming.carriers.read import batch, stream
from streaming.hub import query
from tests.harness.closed_broker import (
    SECURE,
    BrokerFiles,
    changeable,
    closed_broker,
    set_password,
)
from tests.harness.tls_files import authority, certificate, expired, with_key

REFUSED: Mapping[ClientFault, list[dict[str, str]]] = {
    ClientFault.CERTIFICATE: [{"ssl.truststore.location": "other.crt"}],
    ClientFault.OWN_CERTIFICATE: [
        {"ssl.keystore.location": "stranger.pem"},
        {"ssl.keystore.location": "expired.pem"},
    ],
    ClientFault.LOGIN: [{"sasl.password": "wrong"}],
    ClientFault.RIGHT: [{}],
}
"""The fault -> what is wrong of the options; a user who has logged in has no right."""
CASES = [(fault, wrong) for fault, several in REFUSED.items() for wrong in several]
TOPICS = {"changes.a": 1}


class ClosedPort(NamedTuple):
    """Where a broker answers over TLS, and what is right of a client's options."""

    bootstrap: str
    folder: Path

    def options(self, wrong: dict[str, str]) -> dict[str, str]:
        """Those of Spark's source, of which these are wrong."""
        right = {
            **changeable("hub", "word"),
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.crt",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": "hub.pem",
        }
        given = {
            name: str(self.folder / value) if name.endswith(".location") else value
            for name, value in (right | wrong).items()
        }
        return source_options(self.bootstrap, given)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClosedPort]:
    """It, and certificates of its authority `ca` and of another one."""
    folder = tmp_path_factory.mktemp("tls")
    ca, other = authority(folder, "ca"), authority(folder, "other")
    own = with_key(folder / "broker.pem", certificate(folder, "broker", ca))
    with_key(folder / "hub.pem", certificate(folder, "hub", ca))
    with_key(folder / "stranger.pem", certificate(folder, "stranger", other))
    with_key(folder / "expired.pem", expired(folder, "expired", ca))
    broker = closed_broker(folder / "broker", [], BrokerFiles(own, ca))
    try:
        set_password(broker.bootstrap_servers, "hub", "word")
        yield ClosedPort(f"{HOST}:{broker.port_of(SECURE)}", folder)
    finally:
        broker.stop()


@pytest.mark.parametrize(("fault", "wrong"), CASES)
def test_a_query_that_the_broker_ends_says_what_is_refused(
    port: ClosedPort, spark: SparkSession, tmp_path: Path, fault: ClientFault, wrong: dict[str, str]
) -> None:
    """Java names the cause of a failed handshake below its error only, not in it."""
    writer = stream(spark, port.options(wrong), TOPICS, {"changes.a": 0}).writeStream
    running = query.start(writer.format("noop"), tmp_path / "scratch", tmp_path)

    with pytest.raises(StreamingQueryException) as ended:
        running.awaitTermination(60)

    assert str(query.failure(ended.value, tmp_path)).startswith(fault.value)


@pytest.mark.parametrize(("fault", "wrong"), CASES)
def test_a_plan_that_cannot_be_read_says_what_is_refused(
    port: ClosedPort, spark: SparkSession, fault: ClientFault, wrong: dict[str, str]
) -> None:
    """It is read by other clients of the JVM, and a hub that has worked waits for what it says."""
    records = batch(spark, port.options(wrong), TOPICS, {"changes.a": 0}, {"changes.a": 1})

    with pytest.raises((PySparkException, Py4JJavaError)) as ended:
        records.collect()

    assert fault_of(str(ended.value)) is fault
