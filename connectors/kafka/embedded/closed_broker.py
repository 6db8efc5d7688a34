"""An embedded broker that is closed: TLS, logins, and nobody may do what no rule allows.

One process on loopback, as the open one, to see what a hub and its agents need on a cluster that is
administrated. Its certificate is its own authority: Java's keytool makes it, for Java is there
wherever a broker runs.
"""

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from connectors.kafka.embedded.broker import Broker, BrokerError
from connectors.kafka.options import PASSWORD, USER
from streaming.jvm.java import run_java

ADMINISTRATOR = "admin"
"""Who may do everything, and is needed only to say what the others may do."""
LISTENERS = ("SASL", "MTLS")
"""For clients, who log in; and for the broker itself, which shows its certificate."""
MECHANISM = "SCRAM-SHA-512"
REAUTHENTICATION_MS = 60_000
"""How long a connection goes on with a password that is not valid any more."""
NAME = "CN=broker"
"""The subject of its certificate, which is also its own user: no replica can be named so."""
DAYS = 3650
_KEYTOOL = ("-XX:TieredStopAtLevel=1", "-m", "java.base/sun.security.tools.keytool.Main")
_KEY = ("-keyalg", "EC", "-groupname", "secp256r1", "-validity", str(DAYS))
_EXTENSIONS = (
    "bc:critical=ca:true,pathlen:0",
    "ku:critical=digitalSignature,keyCertSign",
    "eku=serverAuth,clientAuth",
    "san=dns:localhost,ip:127.0.0.1",
)


class BrokerCertificate(NamedTuple):
    """The files of a certificate."""

    store: Path
    """its key with it, for the broker"""
    password: Path
    """of the store"""
    authority: Path
    """what clients trust, as PEM"""


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


def certificate_files(folder: Path) -> BrokerCertificate:
    """The files of the certificate in a folder, whether they are there or not."""
    return BrokerCertificate(folder / "broker.p12", folder / "broker.password", folder / "ca.pem")


def make_certificate(wanted: BrokerCertificate) -> None:
    """Write the files, the one that tells that all are there last, unless they are there.

    Only this user may read the key.
    """
    if wanted.authority.exists():
        return
    wanted.store.unlink(missing_ok=True)  # of a run that did not end
    wanted.password.touch(mode=0o600)
    wanted.password.write_text(secrets.token_urlsafe(), encoding="utf-8")
    store = ["-alias", "broker", "-keystore", str(wanted.store)]
    store += ["-storetype", "PKCS12", "-storepass:file", str(wanted.password)]
    extensions = [word for one in _EXTENSIONS for word in ("-ext", one)]
    _keytool("-genkeypair", *store, "-dname", NAME, *_KEY, *extensions)
    wanted.store.chmod(0o600)
    text = _keytool("-exportcert", "-rfc", *store)
    fresh = wanted.authority.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(wanted.authority)


def _keytool(*arguments: str) -> str:
    done = run_java(*_KEYTOOL, *arguments)
    if done.returncode:
        raise BrokerError(f"keytool made no certificate: {(done.stdout + done.stderr).strip()}")
    return done.stdout
