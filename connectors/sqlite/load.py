"""What only the application's connections know: its functions, collations and extensions.

A user's function registers them on each connection that the agent opens, before anything else is
done with it.
"""

import sqlite3
from collections.abc import Callable
from importlib import import_module
from typing import cast

from connectors.trusted_file import check_module
from streaming.core.model.errors import ConfigError

Prepare = Callable[[sqlite3.Connection], object]
"""Registers on a connection what the schema needs; what it returns is ignored."""


def nothing(_: sqlite3.Connection) -> None:
    """Register nothing: the schema needs only what SQLite has."""


def prepare_of(path: str | None) -> Prepare:
    """The user's function MODULE:function; ConfigError says why it cannot be used."""
    if path is None:
        return nothing
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise ConfigError(f"--load {path}: give MODULE:function")
    try:
        check_module(module)
        function = getattr(import_module(module), name)
    except ConfigError as error:
        raise ConfigError(f"--load {path}: {error}") from error
    except Exception as error:  # the user's module may raise anything
        raise ConfigError(
            f"--load {path} cannot be loaded: {type(error).__name__}: {error}; put its module on"
            " PYTHONPATH"
        ) from error
    if not callable(function):
        raise ConfigError(f"--load {path} is no function: name one that takes the connection")
    return _checked(path, cast("Prepare", function))


def _checked(path: str, function: Prepare) -> Prepare:
    def prepare(connection: sqlite3.Connection) -> None:
        try:
            function(connection)
        except Exception as error:
            raise ConfigError(
                f"--load {path} failed: {type(error).__name__}: {error}; it is called with each"
                " connection to the database, to register functions, collations and extensions"
            ) from error
        if connection.in_transaction:
            connection.rollback()
            raise ConfigError(
                f"--load {path} left a transaction open: let it only register functions,"
                " collations and extensions"
            )

    return prepare
