"""A closed broker for the users of a configuration: their logins, and exactly their rights."""

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
from streaming.config.config import Config
from streaming.config.rights import every_role, names_of_two, needed_rights, user_of
from streaming.config.sources.login_files import has_password, kept_password, write_login
from streaming.core.access.rights import NeededRight
from streaming.core.model.errors import ConfigError


def start_broker(folder: Path, port: int | None = None) -> Broker:
    """Start the closed broker of a folder unless it runs."""
    administrator = secrets_of(folder, ADMINISTRATOR)
    if check_listeners(folder, LISTENERS) and not has_password(administrator):
        raise BrokerError(
            f"{administrator} has no password, and this broker no other administrator: give it back"
            " from a backup, or start a broker in another folder"
        )
    for place in (folder, secrets_of(folder)):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    return start_closed(folder, kept_password(administrator), port)


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
    passwords = {user: kept_password(place) for user, place in folders.items()}
    own = secrets_of(folder, ADMINISTRATOR)
    logins = {user: login_options(folder, user, word) for user, word in passwords.items()}
    administrator = login_options(folder, ADMINISTRATOR, kept_password(own))
    with Admission(bootstrap, administrator) as admission:
        admission.set_passwords(passwords)
        admission.set_rights(rights)
    for user, options in logins.items():
        write_login(folders[user], bootstrap, options)
    write_login(own, bootstrap, administrator)
    return folders
