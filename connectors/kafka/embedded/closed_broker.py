"""An embedded broker that is closed: TLS, logins, and nobody may do what no rule allows.

One process on loopback, as the open one, to see what a hub and its agents need on a cluster that is
administrated.
"""

from collections.abc import Mapping
from pathlib import Path

from connectors.kafka.embedded.broker import Broker
from connectors.kafka.embedded.broker_certificate import (
    NAME,
    BrokerCertificate,
    certificate_files,
    make_certificate,
)
from connectors.kafka.options import PASSWORD, USER

ADMINISTRATOR = "admin"
"""Who may do everything, and is needed only to say what the others may do."""
LISTENERS = ("SASL", "MTLS")
"""For clients, who log in; and for the broker itself, which shows its certificate."""
MECHANISM = "SCRAM-SHA-512"
REAUTHENTICATION_MS = 60_000
"""How long a connection goes on with a password that is not valid any more."""


def start_closed(folder: Path, password: str, port: int | None = None) -> Broker:
    """Start the closed broker of the folder, as `Broker.start` does.

    `password`: the administrator's, which a new folder is made with.
    """
    certificate = certificate_files(folder.resolve())
    make_certificate(certificate)
    passwords = {ADMINISTRATOR: password}
    return Broker.start(folder, port, _settings(certificate), LISTENERS, passwords)


def login_options(folder: Path, user: str, password: str) -> dict[str, str]:
    """[kafka.options] of a user of the folder's broker."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": MECHANISM,
        USER: user,
        PASSWORD: password,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate_files(folder.resolve()).authority),
    }


def _settings(certificate: BrokerCertificate) -> Mapping[str, str]:
    client, own = (name.lower() for name in LISTENERS)
    login = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    return {
        "listener.security.protocol.map": "SASL:SASL_SSL,MTLS:SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": LISTENERS[1],
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(certificate.store),
        "ssl.keystore.password": certificate.password.read_text(encoding="utf-8"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificate.authority),
        f"listener.name.{own}.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": MECHANISM,
        f"listener.name.{client}.{MECHANISM.lower()}.sasl.jaas.config": login,
        "connections.max.reauth.ms": str(REAUTHENTICATION_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{NAME};User:{ADMINISTRATOR}",
        "allow.everyone.if.no.acl.found": "false",
    }
