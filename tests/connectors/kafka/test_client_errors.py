"""What clients say of a login, a certificate, a protocol or a right becomes one sentence."""

import io
import logging

import pytest

from connectors.kafka.client_errors import ClientFault, LoggedFault, fault_of
from connectors.log_format import LogFormat
from connectors.logs import configure_logs

WORDS = {
    ClientFault.LOGIN: [
        (
            "Bootstrap connection to bootstrap-0 failed: [Error 58] SaslAuthenticationFailedError: "
            "SaslAuthenticationFailedError: Authentication failed: Invalid username or password"
        ),
        "sasl_ssl://h:1/bootstrap: SASL authentication error: Authentication failed",
        "org.apache.kafka.common.errors.SaslAuthenticationException: Authentication failed",
        "[Error 33] UnsupportedSaslMechanismError",
    ],
    ClientFault.CERTIFICATE: [
        (
            "KafkaConnectionError: Handshake failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate "
            "verify failed: self-signed certificate in certificate chain (_ssl.c:1006)"
        ),
        (
            "SSL handshake failed: ssl/statem/statem_clnt.c: certificate verify failed: broker "
            "certificate could not be verified"
        ),
        "sun.security.validator.ValidatorException: PKIX path building failed",
    ],
    ClientFault.OWN_CERTIFICATE: [
        "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required",
        "Received fatal alert: bad_certificate",
        "javax.net.ssl.SSLHandshakeException: Received fatal alert: unknown_ca",
        "javax.net.ssl.SSLHandshakeException: Received fatal alert: certificate_expired",
    ],
    ClientFault.PROTOCOL: [
        "Handshake failed: [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)",
        (
            "Disconnected while requesting ApiVersion: might be caused by incorrect "
            "security.protocol configuration (connecting to a SSL listener?)"
        ),
        "SSL handshake failed: Disconnected: SSL connection closed by peer: connecting",
        "javax.net.ssl.SSLException: Unrecognized SSL message, plaintext connection?",
    ],
    ClientFault.RIGHT: [
        "[Error 29] TopicAuthorizationFailedError",
        'KafkaError{code=CLUSTER_AUTHORIZATION_FAILED,val=31,str="Cluster authorization failed"}',
        "TopicAuthorizationException: Not authorized to access topics: [x.changes.a]",
    ],
    ClientFault.ENDED: ["Bootstrap connection failed: KafkaConnectionError: socket disconnected"],
    None: ["Broker transport failure", "Unable to bootstrap from h:1", "Connection refused"],
}


@pytest.mark.parametrize(
    ("fault", "words"), [(fault, one) for fault, several in WORDS.items() for one in several]
)
def test_each_clients_words_are_understood(fault: ClientFault | None, words: str) -> None:
    """Whoever mistyped a password must not look for a broker that is down."""
    assert fault_of(words) is fault
    assert fault is None or fault_of(f"no answer ({fault} ({words}))") is fault, "its own sentence"


def test_what_the_log_said_explains_the_error() -> None:
    """The error that is raised says that nobody answered, and only a line before it says why."""
    log = logging.getLogger("kafka.net.manager")

    with LoggedFault() as heard:
        log.warning("Bootstrap connection failed: %s", WORDS[ClientFault.LOGIN][0])
        log.warning(WORDS[ClientFault.ENDED][0])
    log.warning(WORDS[ClientFault.RIGHT][0])

    text = heard.explained(TimeoutError("Unable to bootstrap"))
    assert text.startswith("Kafka refuses the login: correct user")
    assert text.endswith("(Unable to bootstrap)")
    assert LoggedFault().explained(TimeoutError("x")) == "x"


def test_the_log_has_the_brokers_refusal_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the only place that tells why; a client that tries again must not fill the disk."""
    now_s = [0.0]
    monkeypatch.setattr("connectors.kafka.client_errors.time.monotonic", lambda: now_s[0])
    stream = io.StringIO()
    configure_logs(LogFormat.TEXT, "info", "centre", dict, (), stream)
    log = logging.getLogger("kafka.net.connection")

    for at_s in (0, 1, 59, 61):
        now_s[0] = float(at_s)
        log.error("Connection failed: %s", WORDS[ClientFault.LOGIN][0])
        log.error("Connection refused")

    assert stream.getvalue().count("Invalid username or password") == 2
    assert "Connection refused" not in stream.getvalue()
