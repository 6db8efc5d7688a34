"""SQLite as a kind of database: what the command line needs of it (connectors/databases.py)."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from connectors.agent.attaching import InstallPlan, InstallStep, ReplicaPlace
from connectors.agent.found import CheckedPoint, DatabaseCheck, IsKnown, KnownOwn, Rows
from connectors.agent.settings import AgentSettings
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from connectors.sqlite import sql
from connectors.sqlite.apply.rows import writers
from connectors.sqlite.apply.saved_rows import export as export_saved
from connectors.sqlite.apply.saved_rows import forget as forget_saved
from connectors.sqlite.apply.saved_rows import listed as saved_rows
from connectors.sqlite.check import check_database
from connectors.sqlite.compared import compared
from connectors.sqlite.connections import reading
from connectors.sqlite.install import uninstall as removal
from connectors.sqlite.install.owner import check_owner
from connectors.sqlite.install.system import PREFIX, SQLITE_PREFIX
from connectors.sqlite.load import prepare_of
from connectors.sqlite.position import position_of
from connectors.sqlite.schema import generate
from connectors.sqlite.schema.document import schema_in as schema_of
from streaming.core.model.change import Op
from streaming.core.model.errors import StateError
from streaming.core.model.table import ColumnType, Table
from streaming.core.records.record import Item, ItemType

__all__ = ("compared", "export_saved", "forget_saved", "position_of", "saved_rows", "schema_of")
"""What is offered as another module has it; the rest is below."""


DECLARED = {
    ColumnType.BOOL: "INTEGER",
    ColumnType.INT32: "INTEGER",
    ColumnType.INT64: "INTEGER",
    ColumnType.FLOAT64: "REAL",
    ColumnType.DECIMAL: "TEXT",
    ColumnType.TEXT: "TEXT",
    ColumnType.BYTES: "BLOB",
    ColumnType.TIMESTAMP: "TEXT",
}
"""The declared type of a column, which keeps every value of its type exactly."""


def check_place(place: str) -> None:
    """Any place may name a file."""


def absolute(place: str) -> str:
    """The path of the file from the root on."""
    return str(Path(place).absolute())


def name_of(place: str) -> str:
    """The name of the file without its ending."""
    return Path(place).stem


def name_warnings(names: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Names that differ only in case, and those that SQLite or the agent has for itself."""
    lower = [name.lower() for name in names]
    for place, name in enumerate(lower):
        if name in lower[:place]:
            other = names[lower.index(name)]
            why = f"{other!r} differs only in case, which SQLite ignores: the agent of a SQLite"
            yield place, f"{why} replica refuses both; remove one"
        if name.startswith((PREFIX, SQLITE_PREFIX)):
            why = "names with this prefix are reserved: the agent of a SQLite replica refuses it"
            yield place, f"{why}; give the table another name"


def run_agent(settings: AgentSettings, options: LiveOptions, readers: LiveAccess) -> int:
    """Run the agent until SIGTERM or SIGINT; its exit code."""
    from connectors.agent.process import run_process  # noqa: PLC0415  # it imports Kafka's client
    from connectors.sqlite.run import open_store  # noqa: PLC0415  # as above

    return run_process(settings, options, readers, open_store)


def reinit(settings: AgentSettings, known: KnownOwn, is_known: IsKnown, path: Path) -> int:
    """Empty the database, the rows that the hub does not have saved at the path."""
    from connectors.sqlite import run  # noqa: PLC0415  # as above

    return run.reinit(settings, known, is_known, path)


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
    """What an agent would find in the file."""
    return check_database(
        Path(place),
        tables,
        rows_are_shared=rows_are_shared,
        record_bytes=record_bytes,
        prepare=prepare_of(load),
        looks_at_references=looks_at_references,
        replica=replica,
    )


def generated_tables(place: str, load: str | None) -> str:
    """The [[tables]] of a configuration for the file."""
    return generate.generated_tables(Path(place), prepare_of(load))


def attach_plan(
    place: str, replica: ReplicaPlace, tables: Sequence[Table], *, rows_are_shared: bool
) -> InstallPlan:
    """Nothing: its agent makes the file a replica when it starts, if nothing is in the way."""
    shared = rows_are_shared
    found = check_database(Path(place), tables, rows_are_shared=shared)
    note = (
        f"the agent of {replica.name} makes the file a replica when it starts: run"
        " `slackwater agent`"
    )
    points = [CheckedPoint(f"the file {place}", one) for one in found.complaints]
    return InstallPlan((), tuple(points), (note,))


def attach(
    place: str, replica: ReplicaPlace, tables: Sequence[Table], *, rows_are_shared: bool
) -> list[str]:
    """Do nothing, for the agent does it."""
    del place, replica, tables, rows_are_shared
    return []


def detach_plan(place: str, replica: str) -> InstallPlan:
    """One step, of which SQL is not all; StateError if the file is another replica's."""
    with reading(place) as connection:
        check_owner(connection, replica)
    return InstallPlan((InstallStep("triggers, tables and lock file of the agent", is_code=True),))


def uninstall(
    place: str, *, replica: str | None, discards_unpublished: bool, load: str | None
) -> list[str]:
    """Remove every trace of the agent from the file."""
    return removal.uninstall(
        Path(place),
        replica=replica,
        discards_unpublished=discards_unpublished,
        prepare=prepare_of(load),
    )


def saved_at(place: str, text: str) -> Path:
    """A file beside that of the database."""
    file = Path(place)
    return file.with_name(f"{file.name}.{text}.jsonl")


def export(file: Path, tables: Sequence[Table], rows: Mapping[str, Rows]) -> int:
    """Make a file of these tables, and write `rows` by table as an agent does; how many there are.

    StateError if the file is there already, or cannot be written; then it is not there.
    """
    if file.exists():
        raise StateError(f"{file} is there already: name a new file")
    part = file.with_name(f"{file.name}.part")
    try:
        part.unlink(missing_ok=True)
        with closing(sqlite3.connect(part, isolation_level=None)) as connection:
            count = _fill(connection, tables, rows)
        part.rename(file)
    except (sqlite3.Error, OSError) as error:
        raise StateError(f"{file} cannot be written: {error}") from error
    return count


def _fill(connection: sqlite3.Connection, tables: Sequence[Table], rows: Mapping[str, Rows]) -> int:
    connection.execute("BEGIN")
    for table in tables:
        connection.execute(_create(table))
    count = 0
    for name, writer in writers(connection, tables).items():
        for key, image in rows[name]:
            writer.write(connection, Item(ItemType.REFRESH, name, key, Op.INSERT, image, None, 0))
            count += 1
    connection.execute("COMMIT")
    return count


def _create(table: Table) -> str:
    columns = [
        f"{sql.name(name)} {DECLARED[kind]}{' NOT NULL' if name in table.key else ''}"
        for name, kind in table.columns.items()
    ]
    key = ", ".join(map(sql.name, table.key))
    return f"CREATE TABLE {sql.name(table.name)} ({', '.join(columns)}, PRIMARY KEY ({key}))"
