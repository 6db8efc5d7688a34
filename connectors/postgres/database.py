"""PostgreSQL as a kind of database: what the command line needs of it (connectors/databases.py).

Who only asks for names needs no driver, so nothing that imports it is imported before it is used.
"""
# ruff: noqa: PLC0415 as said above

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from connectors.agent.attaching import InstallPlan, ReplicaPlace
from connectors.agent.found import DatabaseCheck, IsKnown, KnownOwn, Rows, SavedImage
from connectors.agent.settings import AgentSettings
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from connectors.postgres.names import MAX_BYTES
from streaming.core.compare.side import OpenTable
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import ConfigError
from streaming.core.model.table import Table
from streaming.core.schema.document import DatabaseSchema

if TYPE_CHECKING:
    from connectors.postgres.sql import Session


def check_place(place: str) -> None:
    """ConfigError: it is no address, it holds a password, or the driver is not installed."""
    try:
        from connectors.postgres.dsn import check_place as check_address
    except ImportError as error:
        raise ConfigError(
            f"the driver of PostgreSQL cannot be loaded ({error}): install it with pip install"
            " 'slackwater[postgres]'"
        ) from error
    check_address(place)


def absolute(place: str) -> str:
    """The place itself, which no folder changes."""
    return place


def name_of(place: str) -> str:
    """The name of the database, if the address has it."""
    from connectors.postgres.dsn import database_name

    return database_name(place) or "postgresql"


def name_warnings(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Names that PostgreSQL cuts off."""
    for place, name in enumerate(names):
        if len(name.encode()) > MAX_BYTES:
            why = f"PostgreSQL keeps no more than {MAX_BYTES} bytes of a name, so no replica of it"
            yield place, f"{why} can have this table; give it a shorter one"


def run_agent(settings: AgentSettings, options: LiveOptions, readers: LiveAccess) -> int:
    """Run the agent until SIGTERM or SIGINT; its exit code."""
    from connectors.agent.process import run_process
    from connectors.postgres.run import open_store

    return run_process(settings, options, readers, open_store)


def check(
    place: str,
    tables: Sequence[Table],
    *,
    rows_are_shared: bool,
    record_bytes: int,
    load: str | None,
    looks_at_references: bool,
    replica: str | None = None,
) -> DatabaseCheck:
    """What an agent would find in the database."""
    from connectors.postgres.check.report import checked
    from connectors.postgres.dsn import dsn_of

    _check_load(load)
    dsn = dsn_of(place)
    with _session(place) as session:
        return checked(
            session,
            dsn,
            tables,
            rows_are_shared=rows_are_shared,
            record_bytes=record_bytes,
            looks_at_references=looks_at_references,
            replica=replica,
        )


def schema_of(place: str, replica: str, tables: Sequence[Table]) -> DatabaseSchema:
    """The schema as a document."""
    from connectors.postgres.schema.document import database_schema

    with _session(place) as session:
        return database_schema(session, replica, tables)


def generated_tables(place: str, load: str | None) -> str:
    """The [[tables]] of a configuration for the database."""
    from connectors.postgres.schema import generate

    _check_load(load)
    with _session(place) as session:
        return generate.generated_tables(session)


def attach_plan(
    place: str, replica: ReplicaPlace, tables: Sequence[Table], *, rows_are_shared: bool
) -> InstallPlan:
    """What makes it a replica, and what is in the way."""
    from connectors.postgres.dsn import dsn_of
    from connectors.postgres.install.plan import attach_plan_of

    dsn = dsn_of(place)
    with _session(place) as session:
        return attach_plan_of(session, dsn, replica, tables, rows_are_shared=rows_are_shared)


def attach(
    place: str, replica: ReplicaPlace, tables: Sequence[Table], *, rows_are_shared: bool
) -> list[str]:
    """Do the steps that are not done."""
    from connectors.postgres.install import attach

    with _session(place) as session:
        return attach.attach(session, replica, tables, rows_are_shared=rows_are_shared)


def detach_plan(place: str, replica: str) -> InstallPlan:
    """What is to be removed; of a server that is away, what it may have."""
    from connectors.postgres.connection import UnreachableError
    from connectors.postgres.dsn import database_name
    from connectors.postgres.install.detach import detach_steps
    from connectors.postgres.install.plan import detach_plan_offline

    try:
        with _session(place) as session:
            return InstallPlan(tuple(detach_steps(session, replica)))
    except UnreachableError as error:
        if (database := database_name(place)) is None:
            raise
        return detach_plan_offline(database, replica, str(error))


def uninstall(
    place: str, *, replica: str | None, discards_unpublished: bool, load: str | None
) -> list[str]:
    """Remove every trace of the agent; the names of what is removed."""
    from connectors.postgres.install.detach import check_published, check_saved, detach

    _check_load(load)
    with _session(place) as session:
        check_saved(session)
        if not discards_unpublished:
            check_published(session)
        return detach(session, replica)


def position_of(place: str) -> tuple[int, Position]:
    """The rid of the replica, and the position that is stored with its rows."""
    from connectors.postgres import position
    from connectors.postgres.dsn import dsn_of

    return position.position_of(dsn_of(place))


def reinit(settings: AgentSettings, known: KnownOwn, is_known: IsKnown, path: Path) -> int:
    """Empty the database, the rows that the hub does not have saved at the path."""
    from connectors.postgres import run

    return run.reinit(settings, known, is_known, path)


def saved_at(place: str, text: str) -> Path:
    """A file in the folder in which the command runs, for the database may be elsewhere."""
    return Path(f"{name_of(place)}.{text}.jsonl").absolute()


def saved_rows(place: str) -> list[SavedImage]:
    """The rows that are saved in it, the oldest first."""
    from connectors.postgres.apply import saved_rows

    with _session(place) as session:
        return saved_rows.listed(session)


def export_saved(place: str, path: Path) -> int:
    """Write them as lines of JSON to a new file; how many there are."""
    from connectors.postgres.apply import saved_rows

    with _session(place) as session:
        return saved_rows.export(session, path)


def forget_saved(place: str, last: int) -> int:
    """Delete those up to this id; how many there were."""
    from connectors.postgres.apply import saved_rows

    with _session(place) as session:
        return saved_rows.forget(session, last)


def compared(place: str, load: str | None) -> AbstractContextManager[OpenTable]:
    """What opens its tables for a comparison; `load` is for the other side, if that is SQLite."""
    from connectors.postgres.compare import rows
    from connectors.postgres.dsn import dsn_of

    del load
    return rows.compared(dsn_of(place))


def export(file: Path, tables: Sequence[Table], rows: Mapping[str, Rows]) -> int:
    """ConfigError: only SQLite has databases that are files."""
    del tables, rows
    raise ConfigError(
        f"{file} cannot be a PostgreSQL database: export a file of SQLite, or a Delta table"
    )


def _session(place: str) -> "AbstractContextManager[Session]":
    """A connection to the database; StoreError, in one line, for whatever the server refuses."""
    from connectors.postgres.connection import connected
    from connectors.postgres.dsn import dsn_of

    return connected(dsn_of(place))


def _check_load(load: str | None) -> None:
    if load is not None:
        from connectors.postgres.connection import LOADS_NOTHING

        raise ConfigError(LOADS_NOTHING)
