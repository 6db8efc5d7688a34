"""The address of a PostgreSQL database, which is on command lines, in logs and in settings.

So it holds no secret: libpq takes that from the environment, a password file or a service file.
"""

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from streaming.core.access.secret_names import is_secret
from streaming.core.model.errors import ConfigError

SCHEME = "postgresql"

_FORM = "write postgresql://USER@HOST:PORT/DATABASE, with ?OPTION=VALUE behind it"


def dsn_of(place: str) -> str:
    """The DSN as libpq takes it, of the place behind its scheme."""
    return f"{SCHEME}:{place}"


def check_place(place: str) -> None:
    """ConfigError, which shows nothing of it: it is no address, or it holds a secret."""
    if not place.startswith("//"):
        raise ConfigError(f"this is no address of a PostgreSQL database: {_FORM}")
    given = _parsed(place)
    secrets = [name for name in given if is_secret(name)]
    if secrets:
        raise ConfigError(
            f"the address of the database holds a {secrets[0]}, which everybody sees on this"
            " machine: take it out, and set PGPASSWORD, or have it in ~/.pgpass (PGPASSFILE names"
            " another file) or in a service file (?service=NAME)"
        )


def database_name(place: str) -> str | None:
    """The database that the address names; None: the environment or a service file says it."""
    name = _parsed(place).get("dbname")
    return None if name is None else str(name)


def _parsed(place: str) -> dict[str, object]:
    try:
        return dict(conninfo_to_dict(dsn_of(place)))
    except ProgrammingError as error:  # its text may show a password
        said = str(error).partition(":")[0].strip()
        raise ConfigError(f"this is no address of a PostgreSQL database, {said}: {_FORM}") from None
