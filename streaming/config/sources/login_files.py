"""The login of a Kafka user as a folder of secret files, which `SLACKWATER_SECRETS` may name."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from streaming.config.config import ENV_DELIMITER, ENV_PREFIX

_PASSWORD = "sasl.password"  # noqa: S105  # the option's name


def has_password(folder: Path) -> bool:
    """Return whether there is a password in the folder."""
    return (folder / _option(_PASSWORD)).exists()


def kept_password(folder: Path) -> str:
    """The password in the folder; a new one is made, and kept there, if there is none."""
    file = folder / _option(_PASSWORD)
    if not has_password(folder):
        folder.mkdir(mode=0o700, exist_ok=True)
        _write(file, secrets.token_urlsafe())
    return file.read_text(encoding="utf-8")


def write_login(folder: Path, bootstrap: str, options: Mapping[str, str]) -> None:
    """Write the address of a broker and a user's options for it, a file each."""
    folder.mkdir(mode=0o700, exist_ok=True)
    _write(folder / _variable("bootstrap_servers"), bootstrap)
    for name, value in options.items():
        _write(folder / _option(name), value)


def _option(name: str) -> str:
    return _variable("options", *name.split("."))


def _variable(*names: str) -> str:
    """The variable of a field of `[kafka]`."""
    return ENV_PREFIX + ENV_DELIMITER.join(("kafka", *names)).upper()


def _write(file: Path, text: str) -> None:
    """Write a file that only this user reads, whole or not at all."""
    fresh = file.with_name(f".{file.name}")  # no secret file, whose names have no dot first
    fresh.touch(mode=0o600)
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(file)
