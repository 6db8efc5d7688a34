"""Kafka's options: one set of plain names for Spark, the hub's producer and Python clients."""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from connectors.kafka.certificates import OPTIONS as CERTIFICATES
from connectors.live_value import LiveValue
from streaming.core.model.errors import ConfigError

REQUEST_BYTES_MAX = 32 * 2**20
UNFLUSHED_BYTES_MAX = 64 * 2**20

SAME_NAME = {
    "client.dns.lookup",
    "client.id",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retry.backoff.ms",
    "sasl.kerberos.service.name",
    "sasl.mechanism",
    "security.protocol",
    "send.buffer.bytes",
}
_RENAMED = {
    "ssl.truststore.location": "ssl_cafile",
    "ssl.keystore.location": "ssl_certfile",
    "ssl.key.password": "ssl_password",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
}
USER, PASSWORD = "sasl.username", "sasl.password"
"""A login in two options, so that the password alone can come from a variable or a secret file."""
_JAVA_ONLY = {"ssl.truststore.type", "ssl.keystore.type", "ssl.endpoint.identification.algorithm"}
_LIBRDKAFKA_NAMES = {
    "receive_buffer_bytes": "socket.receive.buffer.bytes",
    "sasl_plain_password": "sasl.password",
    "sasl_plain_username": "sasl.username",
    "send_buffer_bytes": "socket.send.buffer.bytes",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
}


class LiveOptions(LiveValue[Mapping[str, str]]):
    """The options of clients of Kafka, read again when a file that they come from is changed.

    A password or a certificate is changed while a process runs, and who opens a connection then
    takes the new one. The certificates that they name are looked at too: a client reads those by
    itself, but only when it is opened.
    """

    def __init__(
        self,
        options: Mapping[str, str],
        read: Callable[[], Mapping[str, str]] | None = None,
        files: Callable[[], Iterable[Path]] = tuple,
    ) -> None:
        super().__init__(
            "kafka.options",
            options,
            read or (lambda: options),
            files,
            lambda of: [Path(of[one]) for one in CERTIFICATES if one in of],
        )


def source_options(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka source that reach the cluster; `options` pass through."""
    return _for_spark(bootstrap, {**_SOURCE, **options})


def sink_options(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of Spark's Kafka sink that reach the cluster; `options` pass through."""
    return _for_spark(bootstrap, {**_SINK, **options})


def _for_spark(bootstrap: str, options: Mapping[str, str]) -> dict[str, str]:
    passed = {f"kafka.{name}": value for name, value in _with_jaas(options).items()}
    return {"kafka.bootstrap.servers": bootstrap, **passed}


def _with_jaas(options: Mapping[str, str]) -> dict[str, str]:
    """The options as Java takes them: user and password are in the JAAS line.

    ConfigError: one of them is missing, or the line is given too.
    """
    user, password = options.get(USER), options.get(PASSWORD)
    if user is None and password is None:
        return dict(options)
    if user is None or password is None or "sasl.jaas.config" in options:
        raise ConfigError(
            f"kafka.options: give {USER} and {PASSWORD}, or sasl.jaas.config with both in it"
        )
    is_plain = options.get("sasl.mechanism", "").upper() == "PLAIN"
    module = "plain.PlainLoginModule" if is_plain else "scram.ScramLoginModule"
    login = f'username="{_escaped(user)}" password="{_escaped(password)}"'
    others = {name: value for name, value in options.items() if name not in (USER, PASSWORD)}
    line = f"org.apache.kafka.common.security.{module} required {login};"
    return {**others, "sasl.jaas.config": line}


def _escaped(text: str) -> str:
    """A text as it stands between quotes in a JAAS line."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


_SOURCE = {"fetch.max.wait.ms": "1"}
"""At the end of a topic Spark's consumer has a fetch pending when it requests the topic's range,
and a broker answers the requests of a connection one after the other: with the default each task
of a small batch is blocked for half a second."""


_CLIENT = {"reconnect_backoff_max_ms": 1_000}
"""As Java clients do: with kafka-python's 30 s a broker that is back is not tried for as long."""


PRODUCER = {
    "acks": "all",
    "enable.idempotence": "true",  # a repeated request neither doubles nor overtakes
    "compression.type": "lz4",
    "batch.size": str(2**18),
}
"""How updates are sent, whether by the driver or by the executors."""

_SINK = {
    **PRODUCER,
    "max.request.size": str(REQUEST_BYTES_MAX),
    "buffer.memory": str(UNFLUSHED_BYTES_MAX),
}


def client_options(options: Mapping[str, str]) -> dict[str, Any]:
    """The same plain Kafka options as any client of kafka-python takes them.

    An option that only tunes Java clients is left to Spark. One that concerns security is never
    dropped: ConfigError if kafka-python does not support it.
    """
    _with_jaas(options)  # the same is refused for every client
    found: dict[str, Any] = dict(_CLIENT)
    for name, value in options.items():
        if name == "sasl.jaas.config":
            found |= _login(value)
        elif name in _JAVA_ONLY:
            found |= _java_only(name, value)
        elif name in _RENAMED:
            found[_RENAMED[name]] = value
        elif name in SAME_NAME:
            found[name.replace(".", "_")] = _typed(name, value)
        elif name.startswith(("security.", "sasl.", "ssl.")):
            raise ConfigError(
                f"kafka.options.{name}: the Python client has no such option; "
                "use PEM files (ssl.truststore.location, ssl.keystore.location, ssl.key.password) "
                "and sasl.username with sasl.password"
            )
    if "ssl_certfile" in found:  # a PEM store holds both
        found.setdefault("ssl_keyfile", found["ssl_certfile"])
    return found


def producer_options(options: Mapping[str, str]) -> dict[str, Any]:
    """The same plain Kafka options as librdkafka takes them; ConfigError as for kafka-python."""
    found: dict[str, Any] = {}
    for name, value in client_options(options).items():
        if name == "ssl_check_hostname":
            found["ssl.endpoint.identification.algorithm"] = "https" if value else "none"
        else:
            found[_LIBRDKAFKA_NAMES.get(name, name.replace("_", "."))] = value
    return found


def principal_of(options: Mapping[str, str]) -> str:
    """Whom a broker takes a client with these options for; "" if only the broker knows.

    What a certificate's subject becomes is decided by the broker's own rules.
    """
    user = client_options(options).get("sasl_plain_username")
    if user:
        return f"User:{user}"
    return "" if "ssl.keystore.location" in options else "User:ANONYMOUS"


def _login(jaas: str) -> dict[str, str]:
    pairs = dict(re.findall(r'\b(username|password)\s*=\s*"([^"]*)"', jaas))
    if len(pairs) < 2:
        raise ConfigError(
            'kafka.options.sasl.jaas.config: username="..." and password="..." are needed '
            "(mechanisms PLAIN and SCRAM)"
        )
    return {f"sasl_plain_{name}": value for name, value in pairs.items()}


def _java_only(name: str, value: str) -> dict[str, Any]:
    """What an option of Java clients only means for kafka-python."""
    if name == "ssl.endpoint.identification.algorithm":
        return {"ssl_check_hostname": value.lower() == "https"}
    if value.upper() != "PEM":
        raise ConfigError(f"kafka.options.{name}: {value} is for Java alone, use PEM files")
    return {}


def _typed(name: str, value: str) -> str | int:
    """The value, as a whole number if the name ends in a unit."""
    if not name.endswith((".ms", ".bytes")):
        return value
    try:
        return int(value)
    except ValueError as error:
        raise ConfigError(f"kafka.options.{name}: {value!r} is not a whole number") from error
