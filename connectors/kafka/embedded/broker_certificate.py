"""The certificate of a closed broker on loopback, which is its own authority.

Java's keytool makes it, for Java is there wherever a broker runs.
"""

import secrets
import subprocess
from pathlib import Path
from typing import NamedTuple

from connectors.kafka.embedded.broker import BrokerError
from streaming.jvm.java import java_command, java_environment

NAME = "CN=broker"
"""Its subject, which is also the broker's own user: no replica can be named so."""
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
    done = subprocess.run(
        java_command(*_KEYTOOL, *arguments),
        env=java_environment(),
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise BrokerError(f"keytool made no certificate: {(done.stdout + done.stderr).strip()}")
    return done.stdout
