"""The registry of connectors: who only names them imports none."""

from collections.abc import Mapping
from typing import NamedTuple

from connectors.sqlite.format_number import FORMAT as SQLITE_FORMAT


class RegisteredKind(NamedTuple):
    """A kind of databases; `module`: offers a DatabaseKind; `format`: of the agent's own tables."""

    module: str
    format: int


KINDS: Mapping[str, RegisteredKind] = {
    "sqlite": RegisteredKind("connectors.sqlite.database", SQLITE_FORMAT)
}
"""Scheme of the DSN -> the kind."""
