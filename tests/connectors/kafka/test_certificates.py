"""Claims about when certificates expire, held against those that Java's keytool makes."""

import subprocess
import time
from pathlib import Path

import pytest

from connectors.kafka.certificates import expiries
from streaming.jvm.java import find_java

DAY_S = 86_400


def certificate(folder: Path, days: int) -> str:
    """A new certificate as PEM text."""
    keytool, store = find_java().resolve().with_name("keytool"), folder / f"{days}.p12"
    common = ["-alias", "a", "-keystore", str(store), "-storepass", "changeit"]
    made = ["-genkeypair", "-keyalg", "EC", "-dname", "CN=x", "-validity", str(days), *common]
    subprocess.run([keytool, *made], check=True, capture_output=True)
    shown = subprocess.run(
        [keytool, "-exportcert", "-rfc", *common], check=True, capture_output=True, text=True
    )
    return shown.stdout


@pytest.mark.parametrize("days", [30, 40_000])
def test_the_end_of_the_validity_is_read(tmp_path: Path, days: int) -> None:
    """From 2050 on the time has another form."""
    file = tmp_path / "client.pem"
    file.write_text("-----BEGIN PRIVATE KEY-----\nx\n" + certificate(tmp_path, days))

    found = expiries({"ssl.keystore.location": str(file)})

    assert found["ssl.keystore.location"] == pytest.approx(time.time() + days * DAY_S, abs=300)


def test_the_first_of_a_chain_counts(tmp_path: Path) -> None:
    """One that has expired breaks the chain."""
    file = tmp_path / "ca.pem"
    file.write_text(certificate(tmp_path, 90) + certificate(tmp_path, 20))

    found = expiries({"ssl.truststore.location": str(file), "security.protocol": "SSL"})

    assert found == {"ssl.truststore.location": pytest.approx(time.time() + 20 * DAY_S, abs=300)}


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n",
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    ],
)
def test_what_is_no_certificate_is_left_out(tmp_path: Path, text: str) -> None:
    """A metric must not end a hub that works."""
    file = tmp_path / "ca.pem"
    file.write_text(text)

    assert expiries({"ssl.truststore.location": str(file)}) == {}
    assert expiries({"ssl.truststore.location": str(tmp_path / "none.pem")}) == {}
