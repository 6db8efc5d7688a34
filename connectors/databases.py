"""The kinds of databases that can be replicas: each a connector, found by the scheme of a DSN.

`sqlite:FILE` is one, `postgresql://…` another; a DSN without a scheme is a file of SQLite. Who
writes a connector for another database registers it in connectors/database_kinds.py. Its module
offers `DatabaseKind`, its store is that of connectors/agent/contract.py, and
tests/connectors/conformance/ holds what both must do.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from connectors.agent.attaching import InstallPlan, ReplicaPlace
from connectors.agent.found import DatabaseCheck, IsKnown, KnownOwn, Rows, SavedImage
from connectors.agent.settings import AgentSettings, DatabaseAddress
from connectors.database_kinds import ALIASES, KINDS
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from streaming.core.compare.side import OpenTable
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table
from streaming.core.schema.document import DatabaseSchema


class DatabaseKind(Protocol):
    """What the command line needs of a kind; `place`: what stands behind the scheme of a DSN.

    `load`: the import path of a function that prepares each connection; None: none. StateError or
    ConfigError if the database cannot be used.
    """

    def check_place(self, place: str) -> None:
        """ConfigError: it names no database, holds a secret, or the driver is not installed."""

    def absolute(self, place: str) -> str:
        """The place as it is from any folder."""

    def name_of(self, place: str) -> str:
        """A name for a database of which nothing else is known."""

    def name_warnings(self, names: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Tables that no replica of this kind can have under their names: (index, why)."""

    def run_agent(self, settings: AgentSettings, options: LiveOptions, readers: LiveAccess) -> int:
        """Run the agent until SIGTERM or SIGINT; its exit code."""

    def check(
        self,
        place: str,
        tables: Sequence[Table],
        *,
        rows_are_shared: bool,
        record_bytes: int,
        load: str | None,
        looks_at_references: bool,
        replica: str | None = None,
    ) -> DatabaseCheck:
        """What an agent would find; nothing is changed.

        `replica`: whose database it has to be, if it is one's.
        """

    def schema_of(self, place: str, replica: str, tables: Sequence[Table]) -> DatabaseSchema:
        """The schema as a document."""

    def generated_tables(self, place: str, load: str | None) -> str:
        """The [[tables]] of a configuration for it."""

    def attach_plan(
        self, place: str, replica: ReplicaPlace, tables: Sequence[Table], *, rows_are_shared: bool
    ) -> InstallPlan:
        """What makes it a replica before its agent runs; nothing is changed."""

    def attach(
        self, place: str, replica: ReplicaPlace, tables: Sequence[Table], *, rows_are_shared: bool
    ) -> list[str]:
        """Do the steps that are not done; which these were."""

    def detach_plan(self, place: str, replica: str) -> InstallPlan:
        """What removes every trace of its agent; of a database that cannot be reached too.

        StateError: it is another replica's.
        """

    def uninstall(
        self, place: str, *, replica: str | None, discards_unpublished: bool, load: str | None
    ) -> list[str]:
        """Remove every trace of the agent, and look that nothing is left; what was removed.

        `replica` None: as the database says.
        """

    def reinit(
        self, settings: AgentSettings, known: KnownOwn, is_known: IsKnown, path: Path
    ) -> int:
        """Empty it, the rows that the hub does not have saved at the path; how many those are."""

    def position_of(self, place: str) -> tuple[int, Position]:
        """The rid of the replica, and the position that is stored with its rows."""

    def saved_at(self, place: str, text: str) -> Path:
        """Where `reinit` saves rows; `text`: of the moment."""

    def saved_rows(self, place: str) -> list[SavedImage]:
        """The rows that are saved in it, the oldest first."""

    def export_saved(self, place: str, path: Path) -> int:
        """Write them as lines of JSON to a new file; how many there are."""

    def forget_saved(self, place: str, last: int) -> int:
        """Delete those up to this id; how many there were."""

    def compared(self, place: str, load: str | None) -> AbstractContextManager[OpenTable]:
        """What opens its tables for a comparison; nothing is changed."""

    def export(self, file: Path, tables: Sequence[Table], rows: Mapping[str, Rows]) -> int:
        """Write rows into a new file, an ordinary database; how many. StateError: there is one."""


def parse_dsn(text: str) -> DatabaseAddress:
    """Parse a DSN; ConfigError for a scheme of which there is no connector, or for its place."""
    scheme, colon, place = text.partition(":")
    scheme = ALIASES.get(scheme, scheme)
    if colon and scheme in KINDS:
        kind_of(scheme).check_place(place)
        return DatabaseAddress(scheme, place)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text):
        raise ConfigError(f"there is no connector for {scheme}: use one of {', '.join(KINDS)}")
    return DatabaseAddress("sqlite", text)


def kind_of(scheme: str) -> DatabaseKind:
    """The connector of a kind, imported when it is needed."""
    return cast("DatabaseKind", import_module(KINDS[scheme].module))
