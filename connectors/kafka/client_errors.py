"""What keeps a client of Kafka from working, in a sentence: the clients hide it in their logs.

kafka-python, librdkafka and Java say "unable to bootstrap", "transport failure" or "disconnected"
for a wrong password, certificate and protocol alike, and the cause in a line before.
"""

import logging
import re
import time
from enum import StrEnum
from typing import Self

CLIENT_LOG = "kafka"
"""The logger of kafka-python, and above that of librdkafka."""
AGAIN_S = 60.0
"""How long a cause that was written to the log is not written again."""


class ClientFault(StrEnum):
    """Why Kafka and a client of it do not come together, with what to do."""

    LOGIN = "Kafka refuses the login: correct user, password and sasl.mechanism in kafka.options"
    CERTIFICATE = (
        "the broker's certificate is not trusted: ssl.truststore.location has to name the CA that"
        " signed it, and its names have to include the broker's address"
    )
    OWN_CERTIFICATE = (
        "the broker does not accept this client's certificate: ssl.keystore.location has to name"
        " one that is valid and that a CA of the broker's signed"
    )
    PROTOCOL = (
        "one side speaks TLS and the other does not: correct security.protocol in kafka.options, or"
        " the port in kafka.bootstrap_servers"
    )
    RIGHT = (
        "Kafka refuses a right: `slackwater acls` prints those that are needed, and the commands"
        " that give them"
    )
    ENDED = (
        "the broker ends each connection: if it is up, the login in kafka.options is wrong, or one"
        " side speaks TLS and the other does not"
    )
    """all that kafka-python tells of either; a broker that goes away does so too"""


_BY_TEXT = {
    ClientFault.LOGIN: r"SaslAuthentication|SASL authentication error|SaslMechanism"
    r"|IllegalSaslState|Authentication failed|SASL \S+ mechanism handshake failed",
    ClientFault.CERTIFICATE: r"certificate.verify.failed|PKIX path|broker certificate could not be"
    r"|No subject alternative|certificate is not valid for",
    ClientFault.OWN_CERTIFICATE: r"alert:?.(unknown.ca|bad.certificate|certificate)"
    r"|certificate.(required|unknown)|bad_certificate",
    ClientFault.PROTOCOL: r"wrong.version.number|record.layer.failure|unsupported.protocol"
    r"|Unrecognized SSL message|incorrect security\.protocol|unexpected.(eof|message)"
    r"|packet.length.too.long|http.request"
    r"|invalid.frame.length:.3525[12]\d{4}\b"  # a TLS alert, taken for the length of an answer
    r"|SSL connection closed by peer",
    ClientFault.RIGHT: r"AuthorizationFailed|AUTHORIZATION_FAILED|Not authorized to access"
    r"|AuthorizationException|Authorization failed",
    ClientFault.ENDED: r"socket disconnected",
}


def fault_of(text: str) -> ClientFault | None:
    """The fault that a client's words, or its own sentence, tell of; None: none that is known."""
    said = (fault for fault in ClientFault if fault in text)
    matching = (fault for fault, words in _BY_TEXT.items() if re.search(words, text, re.IGNORECASE))
    return next(said, None) or next(matching, None)


def refused_text(fault: ClientFault, principal: str, otherwise: str) -> str:
    """The fault, and whom it is of; `otherwise`: who that is if only the broker knows its name."""
    return f"{fault} (as {principal or otherwise})"


class LoggedFault(logging.Handler):
    """Listens to the clients' log while they connect; as a context manager."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.fault: ClientFault | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the last fault that is told of, and the most certain one."""
        found = fault_of(record.getMessage())
        if found is not None and (self.fault is None or found is not ClientFault.ENDED):
            self.fault = found

    def explained(self, error: BaseException) -> str:
        """The error with the fault behind it, if that is known."""
        fault = fault_of(str(error)) or self.fault
        return f"{fault} ({error})" if fault else str(error)

    def __enter__(self) -> Self:
        logging.getLogger(CLIENT_LOG).addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(CLIENT_LOG).removeHandler(self)


class OnlyFaults(logging.Filter):
    """Lets through of the clients' lines those that tell of a fault, each fault once a minute.

    Of a broker that is away they say something with each attempt; the hub says that itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told_s: dict[ClientFault, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written."""
        if record.name.partition(".")[0] != CLIENT_LOG:
            return True
        fault, now_s = fault_of(record.getMessage()), time.monotonic()
        if fault in (None, ClientFault.ENDED):
            return False
        if now_s - self._told_s.get(fault, float("-inf")) < AGAIN_S:
            return False
        self._told_s[fault] = now_s
        return True
