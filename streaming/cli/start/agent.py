"""`agent`: the process beside one database, by the hub's own configuration."""

from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from connectors.agent.found import DatabaseCheck
from connectors.agent.settings import DatabaseAddress, PacketSettings
from connectors.databases import kind_of, parse_dsn
from connectors.kafka.options import LiveOptions
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.cli.start.points import write_points
from streaming.config.config import Config
from streaming.config.sources.live import live_access, live_options
from streaming.config.sources.load import load
from streaming.core.access.port_access import LOOPBACK
from streaming.core.model.errors import ConfigError
from streaming.core.text.wording import as_count
from streaming.facts.documents import document_text
from streaming.terminal.output import (
    as_time,
    write_file,
    write_json,
    write_line,
    write_sentence,
    write_table,
)

app = typer.Typer(rich_markup_mode=None)

Database = Annotated[
    DatabaseAddress,
    typer.Option(
        "--database",
        metavar="DSN",
        parser=parse_dsn,
        help="The database: postgresql://USER@HOST:PORT/NAME, or a file of SQLite.",
    ),
]
Replica = Annotated[str, typer.Option("--replica", help="The replica's name in the configuration.")]
Shared = Annotated[
    bool, typer.Option("--rows-are-shared", help="Existing rows are the same at every replica.")
]
Snapshot = Annotated[
    bool, typer.Option("--snapshot", help="Publish all rows that the database has, once.")
]
MetricsPort = Annotated[
    int,
    typer.Option(
        "--metrics-port", min=0, max=65_535, help="Serve metrics at this port; 0: do not."
    ),
]
MetricsHost = Annotated[
    str,
    typer.Option(
        "--metrics-host",
        metavar="ADDRESS",
        help="Where it listens; [http] says to whom it answers.",
    ),
]
Packets = Annotated[
    Path | None,
    typer.Option(
        "--packets",
        metavar="FOLDER",
        help="Exchange packets in this folder with the hub, and ask no Kafka.",
    ),
]
Every = Annotated[
    float,
    typer.Option("--every", metavar="SECONDS", min=0.1, help="How often packets are exported."),
]
OutboxFile = Annotated[
    Path | None,
    typer.Option(
        "--outbox", metavar="FILE", help="The replica's outbox; by default in the folder."
    ),
]
Again = Annotated[
    bool,
    typer.Option("--again", help="Export again what the hub is not known to have."),
]
Print = Annotated[
    bool,
    typer.Option("--print", help="Only print the settings document of the agent's own program."),
]
Document = Annotated[
    Path | None,
    typer.Option("--document", metavar="FILE", help="Write the schema to this file, as JSON."),
]
Rows = Annotated[bool, typer.Option("--rows", help="Also list the rows that break a foreign key.")]
Load = Annotated[
    str | None,
    typer.Option(
        "--load",
        metavar="MODULE:FUNCTION",
        help="A Python function that gets each connection, and registers on it the functions,"
        " collations and extensions that the database's schema needs.",
    ),
]
Generate = Annotated[
    bool, typer.Option("--generate", help="Only print the [[tables]] of a configuration for it.")
]
Discard = Annotated[
    bool,
    typer.Option("--discard-unpublished", help="Changes that no other replica has may be lost."),
]


Export = Annotated[
    Path | None,
    typer.Option("--export", metavar="FILE", help="Write the rows, each as a line of JSON."),
]
Forget = Annotated[bool, typer.Option("--forget", help="Delete what was listed or written.")]

NOTHING_SAVED = "no row is saved: nothing was overwritten that is nowhere else"


@app.callback(invoke_without_command=True)
def agent(
    context: typer.Context,
    *,
    database: Annotated[
        DatabaseAddress | None,
        typer.Option(metavar="DSN", parser=parse_dsn, help="The database: its DSN, or a file."),
    ] = None,
    replica: Replica = "",
    config: ConfigPath = DEFAULT_CONFIG,
    rows_are_shared: Shared = False,
    snapshot: Snapshot = False,
    metrics_port: MetricsPort = 0,
    metrics_host: MetricsHost = LOOPBACK,
    load_: Load = None,
    packets: Packets = None,
    every: Every = 10.0,
    outbox: OutboxFile = None,
    again: Again = False,
    print_: Print = False,
) -> None:
    """Run the agent of one replica until SIGTERM or Ctrl-C.

    With --packets it needs no Kafka: it writes packets for the hub and applies those of the hub.
    """
    if context.invoked_subcommand is not None:
        return
    if database is None or not replica:
        raise ConfigError("give --replica NAME and --database DSN (see `slackwater agent --help`)")
    if packets is None and (outbox is not None or again):
        raise ConfigError("--outbox and --again go with --packets FOLDER")
    needs_kafka = packets is None
    configured = load(config, needs_kafka=needs_kafka)
    _check_way(configured, replica, packets)
    agent_settings = import_module("streaming.config.agent").agent_settings
    settings = replace(
        agent_settings(configured, replica, absolute(database)),
        rows_are_shared=rows_are_shared,
        takes_snapshot=snapshot,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        load=load_,
        packets=_packets(packets, every, outbox, again=again),
    )
    if print_:
        typer.echo(settings.text())
        return
    readers = live_access(config, configured, needs_kafka=needs_kafka)
    options = live_options(config, configured) if needs_kafka else LiveOptions({})
    raise typer.Exit(kind_of(database.scheme).run_agent(settings, options, readers))


def _check_way(configured: Config, replica: str, packets: Path | None) -> None:
    """ConfigError if the hub looks for what this replica writes elsewhere than where it goes."""
    if replica in configured.by_packets and packets is None:
        raise ConfigError(
            f"{replica} is fed by packets, as `packets` of its agreement says: give --packets"
            " FOLDER, its own one; or take `packets` out of the configuration of the hub and here"
        )
    if packets is not None and replica not in configured.by_packets:
        raise ConfigError(
            f"no agreement says `packets` for {replica}, so no hub looks for packets of it: leave"
            " --packets out, or configure it (docs/packets.md)"
        )


def _packets(
    folder: Path | None, every_s: float, outbox: Path | None, *, again: bool
) -> PacketSettings | None:
    if folder is None:
        return None
    file = None if outbox is None else str(outbox.absolute())
    return PacketSettings(str(folder.absolute()), every_s, file, again)


def absolute(database: DatabaseAddress) -> DatabaseAddress:
    """The same database, named so that any folder will do."""
    return database._replace(place=kind_of(database.scheme).absolute(database.place))


@app.command()
@cannot_say()
def check(
    *,
    database: Database,
    replica: Replica = "",
    config: ConfigPath = DEFAULT_CONFIG,
    rows_are_shared: Shared = False,
    document: Document = None,
    load_: Load = None,
    rows_: Rows = False,
    generate: Generate = False,
    as_json: AsJson = False,
) -> None:
    """List what an agent would find in a database; exit 0 if it would start and carry every row.

    --document writes the schema to a file, for `slackwater schema` to compare. --generate needs no
    configuration: it prints the tables for one.
    """
    kind, place = kind_of(database.scheme), database.place
    if generate:
        write_line(kind.generated_tables(place, load_).rstrip())
        return
    configured = load(config)
    name = replica or kind.name_of(place)
    tables = tuple(configured.tables_at(name).values())
    found = kind.check(
        place,
        tables,
        rows_are_shared=rows_are_shared,
        record_bytes=configured.limits.record_bytes,
        load=load_,
        looks_at_references=rows_,
        replica=replica or None,
    )
    schema = kind.schema_of(place, name, tables)
    if document is not None:
        write_file(document, document_text(schema.document(), indent=2) + "\n")
    if as_json:
        write_json({**asdict(found), "is_good": found.is_good, "schema": schema.document()})
    else:
        _write(found)
        if document is not None:
            write_line(f"its schema is written to {document}")
    raise typer.Exit(ExitCode.YES if found.is_good and not found.broken_references else ExitCode.NO)


@app.command()
def uninstall(
    *, database: Database, discard_unpublished: Discard = False, load_: Load = None
) -> None:
    """Remove every trace of the agent from a database; no agent may run on it."""
    kind, place = kind_of(database.scheme), database.place
    removed = kind.uninstall(
        place, replica=None, discards_unpublished=discard_unpublished, load=load_
    )
    done = f"{as_count(len(removed), 'object')} removed" if removed else "holds nothing of an agent"
    write_line(f"{database.shown}: {done}")


@app.command()
def saved(
    *, database: Database, export: Export = None, forget: Forget = False, as_json: AsJson = False
) -> None:
    """List the rows that were saved because they were nowhere else when they were overwritten."""
    kind, place = kind_of(database.scheme), database.place
    rows = kind.saved_rows(place)
    if export is not None:
        count = kind.export_saved(place, export)
        write_line(f"{as_count(count, 'row')} written to {export}" if count else NOTHING_SAVED)
    elif as_json:
        write_json([{**asdict(one), "at": one.at.isoformat()} for one in rows])
    elif rows:
        cells = [(one.id, as_time(one.at), one.table, one.key, one.why) for one in rows]
        write_table(["saved", "at", "table", "key", "why it was nowhere else"], cells)
    else:
        write_line(NOTHING_SAVED)
    forgotten = kind.forget_saved(place, rows[-1].id) if forget and rows else 0
    if forgotten and not as_json:
        write_line(f"{as_count(forgotten, 'row')} forgotten")


def _write(found: DatabaseCheck) -> None:
    rows = [
        (c.table, c.name, c.declared, c.configured or "not configured", c.holds, c.default)
        for c in found.columns
    ]
    write_table(["table", "column", "declared", "configured as", "holds", "default"], rows)
    for table in found.tables:
        state = "captured" if table.is_captured else "not captured yet"
        own = f", your triggers: {', '.join(table.triggers)}" if table.triggers else ""
        write_sentence(f"table {table.name}: {as_count(table.rows, 'row')}, {state}{own}")
    for name in found.to_snapshot:
        write_sentence(f"table {name}: its agent publishes the rows, unless --rows-are-shared")
    for one in found.constraints:
        write_sentence(f"constraint of table {one.table}: {one.text}")
    for name in found.not_configured:
        key = " and has no key" if name in found.without_key else ""
        write_sentence(f"table {name} is not configured{key}: it stays in this database")
    write_points(found.points)
    for kind, texts in (
        ("warning", found.warnings),
        ("row that is not replicated", found.row_faults),
        ("listed as not replicated", found.uncarried),
        ("row that refers to nothing", found.broken_references),
        ("refused", found.complaints),
    ):
        for text in texts:
            write_sentence(f"{kind}: {text}")
    if found.saved:
        write_sentence(
            f"{as_count(found.saved, 'row')} saved that were overwritten and are nowhere else:"
            " `slackwater agent saved` shows them"
        )
    write_sentence("an agent can start" if found.is_good else "correct the above, then check again")
