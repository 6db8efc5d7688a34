"""An authority and certificates of it, as PEM files that openssl makes."""

import subprocess
from pathlib import Path

_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def authority(folder: Path, name: str) -> Path:
    """The certificate of a new authority; its key is beside it."""
    file = folder / f"{name}.crt"
    _openssl("req", "-x509", *_EC, "-subj", f"/CN={name}", *_out(file))
    return file


def certificate(folder: Path, name: str, ca: Path) -> Path:
    """A certificate of this authority for localhost; its key is beside it."""
    file = folder / f"{name}.crt"
    signed = _signed(ca)
    names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    _openssl("req", "-x509", *_EC, "-subj", f"/CN={name}", *names, *signed, *_out(file))
    return file


def expired(folder: Path, name: str, ca: Path) -> Path:
    """A certificate of this authority that is not valid any more; its key is beside it."""
    file = folder / f"{name}.crt"
    request = str(file.with_suffix(".csr"))
    key = str(file.with_suffix(".key"))
    _openssl("req", "-new", *_EC, "-subj", f"/CN={name}", "-out", request, "-keyout", key)
    days = ("-CAcreateserial", "-days", "0")
    _openssl("x509", "-req", "-in", request, *_signed(ca), *days, "-out", str(file))
    return file


def _signed(ca: Path) -> tuple[str, ...]:
    return "-CA", str(ca), "-CAkey", str(ca.with_suffix(".key"))


def with_key(file: Path, certificate_: Path) -> Path:
    """Put a certificate and its key into one file, as clients of Kafka read them."""
    new = file.with_name(f".new-{file.name}")
    new.write_text(certificate_.with_suffix(".key").read_text() + certificate_.read_text())
    new.chmod(0o600)
    return new.replace(file)


def _out(file: Path) -> tuple[str, ...]:
    return "-out", str(file), "-keyout", str(file.with_suffix(".key"))


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
