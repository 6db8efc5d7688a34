"""SQLite as a kind of database: what the command line needs of it (connectors/databases.py)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from connectors.agent.found import DatabaseCheck, IsKnown, KnownOwn
from connectors.agent.settings import AgentSettings
from connectors.kafka.options import LiveOptions
from connectors.live_value import LiveAccess
from connectors.sqlite.apply.saved_rows import export as export_saved
from connectors.sqlite.apply.saved_rows import forget as forget_saved
from connectors.sqlite.apply.saved_rows import listed as saved_rows
from connectors.sqlite.check import check_database
from connectors.sqlite.export import export
from connectors.sqlite.install import uninstall as removal
from connectors.sqlite.install.system import PREFIX, SQLITE_PREFIX
from connectors.sqlite.load import prepare_of
from connectors.sqlite.schema import generate
from connectors.sqlite.schema.document import schema_in as schema_of
from streaming.core.model.table import Table

__all__ = ("export", "export_saved", "forget_saved", "saved_rows", "schema_of")
"""What is offered as another module has it; the rest is below."""


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
) -> DatabaseCheck:
    """What an agent would find in the file."""
    return check_database(
        Path(place),
        tables,
        rows_are_shared=rows_are_shared,
        record_bytes=record_bytes,
        prepare=prepare_of(load),
        looks_at_references=looks_at_references,
    )


def generated_tables(place: str, load: str | None) -> str:
    """The [[tables]] of a configuration for the file."""
    return generate.generated_tables(Path(place), prepare_of(load))


def uninstall(place: str, *, discards_unpublished: bool, load: str | None) -> list[str]:
    """Remove every trace of the agent from the file."""
    prepare = prepare_of(load)
    return removal.uninstall(
        Path(place), discards_unpublished=discards_unpublished, prepare=prepare
    )


def saved_at(place: str, text: str) -> Path:
    """A file beside that of the database."""
    file = Path(place)
    return file.with_name(f"{file.name}.{text}.jsonl")
