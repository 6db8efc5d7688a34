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
    signed = ("-CA", str(ca), "-CAkey", str(ca.with_suffix(".key")))
    names = ("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    _openssl("req", "-x509", *_EC, "-subj", f"/CN={name}", *names, *signed, *_out(file))
    return file


def _out(file: Path) -> tuple[str, ...]:
    return "-out", str(file), "-keyout", str(file.with_suffix(".key"))


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
