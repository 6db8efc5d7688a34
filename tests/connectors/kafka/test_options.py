"""One set of plain options reaches every client, or is refused."""

import pytest

from connectors.kafka.options import (
    client_options,
    principal_of,
    producer_options,
    source_options,
)
from streaming.core.model.errors import ConfigError


def test_spark_and_python_clients_reach_the_same_cluster() -> None:
    """One set of plain Kafka options in the configuration serves both."""
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'x.ScramLoginModule required username="hub" password="s3cret";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/etc/ca.pem",
        "ssl.keystore.location": "/etc/hub.pem",
        "request.timeout.ms": "5000",
        "fetch.max.bytes": "1000",
    }

    assert source_options("host:1", options)["kafka.sasl.mechanism"] == "SCRAM-SHA-512"
    assert client_options(options) == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "hub",
        "sasl_plain_password": "s3cret",
        "ssl_cafile": "/etc/ca.pem",
        "ssl_certfile": "/etc/hub.pem",
        "ssl_keyfile": "/etc/hub.pem",
        "request_timeout_ms": 5000,
        "reconnect_backoff_max_ms": 1000,
    }
    assert producer_options(options) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "hub",
        "sasl.password": "s3cret",
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.certificate.location": "/etc/hub.pem",
        "ssl.key.location": "/etc/hub.pem",
        "request.timeout.ms": 5000,
        "reconnect.backoff.max.ms": 1000,
    }


def test_user_and_password_reach_every_client() -> None:
    """So the password alone can come from a variable or a secret file, as docs/hub.md says."""
    login = {"sasl.username": "hub", "sasl.password": 's3"c\\ret'}

    for mechanism, module in (("PLAIN", "plain.Plain"), ("SCRAM-SHA-512", "scram.Scram")):
        java = source_options("host:1", {**login, "sasl.mechanism": mechanism})
        line = java["kafka.sasl.jaas.config"]
        assert line == (
            f"org.apache.kafka.common.security.{module}LoginModule required"
            ' username="hub" password="s3\\"c\\\\ret";'
        )
        assert not {"kafka.sasl.username", "kafka.sasl.password"} & java.keys()
    assert client_options(login)["sasl_plain_password"] == 's3"c\\ret'
    assert producer_options(login)["sasl.username"] == "hub"
    assert principal_of(login) == "User:hub"


@pytest.mark.parametrize(
    "options",
    [
        {"sasl.username": "hub"},
        {"sasl.password": "s3cret"},
        {"sasl.username": "hub", "sasl.password": "s3cret", "sasl.jaas.config": "x required;"},
    ],
)
def test_half_a_login_is_refused_by_every_client(options: dict[str, str]) -> None:
    """A password that one client takes and another ignores logs in as somebody else."""
    for make in (client_options, producer_options, lambda found: source_options("host:1", found)):
        with pytest.raises(ConfigError, match=r"give sasl\.username and sasl\.password"):
            make(options)


def test_pause_before_a_new_connection_is_the_users_to_set() -> None:
    """A default of Slackwater's own is a default: what the configuration says counts."""
    options = {"reconnect.backoff.max.ms": "9000"}

    assert client_options(options) == {"reconnect_backoff_max_ms": 9000}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ssl.truststore.type", "JKS"),
        ("ssl.truststore.password", "s3cret"),
        ("sasl.login.class", "s3cret"),
        ("sasl.jaas.config", "s3cret"),
        ("request.timeout.ms", "soon"),
    ],
)
def test_an_option_that_python_cannot_honour_is_refused_without_its_secret(
    name: str, value: str
) -> None:
    """Half of a security setting is worse than an error, and errors end up in logs."""
    with pytest.raises(ConfigError, match=name) as refused:
        client_options({name: value})

    assert "s3cret" not in str(refused.value)
