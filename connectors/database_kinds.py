"""The registry of connectors: who only names them imports none."""

from collections.abc import Mapping
from typing import NamedTuple

from connectors.postgres.format_number import FORMAT as POSTGRES_FORMAT
from connectors.sqlite.format_number import FORMAT as SQLITE_FORMAT


class RegisteredKind(NamedTuple):
    """A kind of databases; `module`: offers a DatabaseKind; `format`: of the agent's own tables."""

    module: str
    format: int


KINDS: Mapping[str, RegisteredKind] = {
    "sqlite": RegisteredKind("connectors.sqlite.database", SQLITE_FORMAT),
    "postgresql": RegisteredKind("connectors.postgres.database", POSTGRES_FORMAT),
}
"""Scheme of the DSN -> the kind."""

ALIASES: Mapping[str, str] = {"postgres": "postgresql"}
"""Another scheme of a DSN -> the one in KINDS."""
