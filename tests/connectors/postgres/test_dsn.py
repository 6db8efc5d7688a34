"""The address of a database is seen by everybody, so it holds no secret."""

import pytest

from connectors.databases import kind_of, parse_dsn
from streaming.core.model.errors import ConfigError
from tests.harness.missing_module import without

SECRET = "hunter2"


@pytest.mark.parametrize("text", ["postgresql://app@db:5433/shop", "postgres://app@db:5433/shop"])
def test_both_schemes_name_the_same_database(text: str) -> None:
    """The driver takes both, and nobody should have to know which one is meant here."""
    found = parse_dsn(text)

    assert str(found) == "postgresql://app@db:5433/shop"
    assert kind_of(found.scheme).name_of(found.place) == "shop"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://app:{SECRET}@db/shop",
        f"postgres://app:{SECRET}#@db/shop",
        f"postgresql://app:{SECRET}?@db/shop",
        f"postgresql://db/shop?password={SECRET}",
        f"postgresql://db/shop?p%61ssword={SECRET}",
        f"postgresql://db/shop?sslpassword={SECRET}",
        f"postgresql://app:{SECRET}@db1,db2/shop?target_session_attrs=read-write",
    ],
)
def test_a_password_in_the_address_is_refused(text: str) -> None:
    """It would be in `ps`, in the shell's history and in logs."""
    with pytest.raises(ConfigError, match="PGPASSWORD") as caught:
        parse_dsn(text)

    assert "pgpass" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://db/shop?passwort={SECRET}",
        f"postgresql://app:%{SECRET}@db/shop",
        f"postgresql:host=db password={SECRET}",
    ],
)
def test_what_is_no_address_is_refused_without_showing_it(text: str) -> None:
    """The driver's own message quotes what it could not read, which may be the password."""
    with pytest.raises(ConfigError, match="postgresql://USER@HOST:PORT/DATABASE") as caught:
        parse_dsn(text)

    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_without_the_driver_it_is_said_how_to_install_it() -> None:
    """A hub needs none, so it is not installed with it."""
    with (
        without("psycopg", "connectors.postgres.dsn"),
        pytest.raises(ConfigError, match=r"pip install 'slackwater\[postgres\]'"),
    ):
        parse_dsn("postgresql://db/shop")


def test_names_that_are_too_long_are_known_without_the_driver() -> None:
    """`slackwater config check` runs where the hub is."""
    long = "t" * 64

    with without("psycopg", "connectors.postgres.dsn"):
        found = [*kind_of("postgresql").name_warnings(["t", long])]

    assert [place for place, _ in found] == [1]
