"""A closed broker for the users of a configuration: their logins, and exactly their rights."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from connectors.kafka.embedded.admission import Admission
from connectors.kafka.embedded.broker import Broker, BrokerError, check_listeners
from connectors.kafka.embedded.closed_broker import (
    ADMINISTRATOR,
    LISTENERS,
    login_options,
    start_closed,
)
from streaming.config.config import ENV_DELIMITER, ENV_PREFIX, Config
from streaming.config.rights import every_role, names_of_two, needed_rights, user_of
from streaming.core.access.rights import NeededRight
from streaming.core.model.errors import ConfigError

_PASSWORD = "sasl.password"  # noqa: S105  # the option's name


def start_broker(folder: Path, port: int | None = None) -> Broker:
    """Start the closed broker of a folder unless it runs."""
    administrator = secrets_of(folder, ADMINISTRATOR)
    if check_listeners(folder, LISTENERS) and not (administrator / _option(_PASSWORD)).exists():
        raise BrokerError(
            f"{administrator} has no password, and this broker no other administrator: give it back"
            " from a backup, or start a broker in another folder"
        )
    for place in (folder, secrets_of(folder)):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return start_closed(folder, _kept_password(administrator), port)


def secrets_of(folder: Path, user: str = "") -> Path:
    """The folder with the login of a user, for `SLACKWATER_SECRETS`; without one that of all."""
    return folder / "secrets" / user


def users_of(config: Config) -> dict[str, tuple[NeededRight, ...]]:
    """User -> its rights; ConfigError if two users would have one name."""
    roles = every_role(config)
    if names := names_of_two(roles, ADMINISTRATOR):
        raise ConfigError(
            f"replica {names[0]!r} has the name of another user of the broker: rename the replica,"
            " or use a cluster of your own, where users have any names"
        )
    return {user_of(one): needed_rights(config, one) for one in roles}


def admit(
    folder: Path, broker: Broker, rights: Mapping[str, tuple[NeededRight, ...]]
) -> dict[str, Path]:
    """Let these users in and give them these rights alone; user -> the folder of its login.

    A user that was known keeps its password. Rights that are not among these are taken away.
    """
    bootstrap = broker.bootstrap_servers
    folders = {user: secrets_of(folder, user) for user in rights}
    passwords = {user: _kept_password(place) for user, place in folders.items()}
    own = secrets_of(folder, ADMINISTRATOR)
    logins = {user: login_options(folder, user, word) for user, word in passwords.items()}
    administrator = login_options(folder, ADMINISTRATOR, _kept_password(own))
    with Admission(bootstrap, administrator) as admission:
        admission.set_passwords(passwords)
        admission.set_rights(rights)
    for user, options in logins.items():
        _write_login(folders[user], bootstrap, options)
    _write_login(own, bootstrap, administrator)
    return folders


def _kept_password(folder: Path) -> str:
    """The password in the folder; a new one is made, and kept there, if there is none."""
    file = folder / _option(_PASSWORD)
    if not file.exists():
        folder.mkdir(mode=0o700, exist_ok=True)
        _write(file, secrets.token_urlsafe())
    return file.read_text(encoding="utf-8")


def _write_login(folder: Path, bootstrap: str, options: Mapping[str, str]) -> None:
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
