"""The section `compare` of an agreement: its consumer's rows are compared beside the hub.

Connectors are imported only where there is one: every command reads the configuration.
"""
# ruff: noqa: PLC0415 as said above

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from streaming.core.model.errors import ConfigError

INVALID_DSN = "dsn"
"""The type of a complaint whose value is not shown, for it may hold a password."""

_SECRET = re.compile(r"//[^/?@]*:[^/?]*@|passw|secret", re.IGNORECASE)


def _checked(dsn: str) -> str:
    """The DSN; who only reads the configuration needs no driver of the database."""
    from connectors.databases import parse_dsn

    try:
        parse_dsn(dsn)
    except ConfigError as error:
        if not isinstance(error.__cause__, ImportError) or _SECRET.search(dsn):
            raise PydanticCustomError(INVALID_DSN, "{why}", {"why": str(error)}) from None
    return dsn


class CompareConfig(BaseModel):
    """The consumer's rows are compared with the hub's, round after round, by `slackwater run`."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    database: Annotated[str, AfterValidator(_checked)]
    """Where the consumer's database is, as `--database` of `slackwater compare` takes it, and
    without a password, which ~/.pgpass has. A relative SQLite file is in this file's folder."""
    every_s: int = Field(default=3_600, gt=0)
    """A round begins so many seconds after the last one began, or when that has ended."""
    rows_per_s: int = Field(default=20_000, gt=0)
    """So many rows a second are compared at most, so that the database keeps time for its users."""
    load: str | None = None
    """As `--load` of `slackwater agent`: what the schema of the database needs."""

    def from_folder(self, folder: Path) -> "CompareConfig":
        """The section with the path of a file from this folder on."""
        from connectors.databases import parse_dsn

        if "://" in self.database:
            return self
        scheme, place = parse_dsn(self.database)
        return self.model_copy(update={"database": f"{scheme}:{folder / Path(place).expanduser()}"})
