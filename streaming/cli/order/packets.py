"""`export` and `import`: packets of the hub, and of replicas that Kafka does not reach."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from connectors.agent.settings import DatabaseAddress
from connectors.databases import kind_of, parse_dsn
from streaming.cli.appends import appends
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath, opened
from streaming.cli.past.rows import AsOf
from streaming.config.config import Config
from streaming.config.sources.load import load
from streaming.core.model.command import CommandName
from streaming.core.model.errors import ConfigError, HubError
from streaming.terminal.output import write_json, write_line, write_sentence

FedReplicas = Annotated[
    str | None,
    typer.Argument(
        metavar="[REPLICA]", help="A replica that is sent packets; none: all that there are."
    ),
]
NewFile = Annotated[
    Path | None,
    typer.Option(
        "--sqlite",
        metavar="FILE",
        help="Make no packet, but this SQLite file of all rows; it must not be there.",
    ),
]
Packets = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[PACKET]...", help="Packets of replicas, or folders that hold some."),
]

Diagnose = Annotated[
    bool, typer.Option("--diagnose", help="Only say what is missing, and who can send it again.")
]
OfDatabase = Annotated[
    DatabaseAddress | None,
    typer.Option(
        "--database",
        metavar="FILE",
        parser=parse_dsn,
        help="Of the replica with this database; by default of the hub.",
    ),
]


@appends(CommandName.EXPORT, when="for each replica, without --sqlite")
def export(
    replica: FedReplicas = None,
    *,
    sqlite: NewFile = None,
    as_of: AsOf = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Export a packet at once; or write all tables into a new SQLite file.

    A packet holds what the replica was not sent yet. It appears in the folder of its agreement,
    also if there is nothing to send: it says up to where the hub has got what the replica wrote.

    With --sqlite: as the rows stand or stood at a moment. The file is an ordinary database, and no
    replica.
    """
    if sqlite is not None:
        if replica is not None:
            raise ConfigError("give either REPLICA or --sqlite: the file is of all rows")
        from streaming.cli.past.rows import write_database  # noqa: PLC0415  # it imports Spark

        write_database(sqlite, as_of, config, as_json=as_json)
        return
    if as_of is not None:
        raise ConfigError("--as-of goes with --sqlite: a packet goes on behind the last one")
    _order(config, replica, as_json=as_json)


def _order(path: Path, replica: str | None, *, as_json: bool) -> None:
    from streaming.cli.command import append_commands  # noqa: PLC0415  # a refusal does without

    configured, reader = opened(path)
    fed = configured.by_packets
    if replica is not None:
        configured.replica(replica)
    if not fed or replica not in {None, *fed}:
        who = "no replica" if replica is None else f"{replica} is none that"
        listed = f": use one of {', '.join(fed)}" if fed else ""
        raise ConfigError(
            f"{who} is sent packets{listed}; `packets` of its agreement names their folder"
        )
    chosen = [one for name, one in fed.items() if replica in (None, name)]
    shown = {one.name: f"{one.consumer} into {one.packets}" for one in chosen}
    append_commands(reader, CommandName.EXPORT, shown, None, as_json=as_json, shown=shown)


def import_(
    packets: Packets = None,
    *,
    diagnose: Diagnose = False,
    database: OfDatabase = None,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Hand packets of replicas to the hub, which takes them within a second.

    They are verified and copied into the folders of their agreements; what is there already in the
    hub's topics it skips, so a packet may be handed over again.

    With --diagnose nothing is handed over: it is silent if nothing is missing, and otherwise says
    what, and the command that brings it; exit 1. At a replica --database FILE and its folder are
    given, and no hub need be reached.
    """
    if diagnose:
        _diagnose(packets or [], database, config, as_json=as_json)
        return
    if database is not None:
        raise ConfigError("--database goes with --diagnose: an agent imports by itself")
    from connectors.packets.format import copy_packet, packet_files, read_changes  # noqa: PLC0415
    from connectors.packets.header import PacketKind  # noqa: PLC0415

    configured = load(config)
    files = [
        file
        for path in packets or []
        for file in (packet_files(path, PacketKind.CHANGES) if path.is_dir() else [path])
    ]
    if not files:
        raise HubError("there is no packet of a replica: its name begins with `changes-`")
    placed = []
    for file in files:
        try:
            header = read_changes(file).header
            placed.append(copy_packet(file, _folder_of(configured, header.replica), header))
        except OSError as error:
            raise HubError(
                f"packet {file} cannot be handed over: {error.filename2 or error.filename or ''}"
                f" {error.strerror}; correct that, then hand it over again"
            ) from error
    if as_json:
        write_json({"packets": placed})
    for path in () if as_json else placed:
        write_line(f"{path}: the hub takes it as soon as it runs and what is before it is there")


@cannot_say()
def _diagnose(
    folders: list[Path], database: DatabaseAddress | None, path: Path, *, as_json: bool
) -> None:
    from streaming.facts.matrix.missing import (  # noqa: PLC0415  # it reads packets
        missing_at_hub,
        missing_at_replica,
    )

    if database is None:
        if folders:
            raise ConfigError("the hub's folders are configured: name none, or --database as well")
        found = missing_at_hub(*opened(path))
    elif len(folders) != 1:
        raise ConfigError("name the folder of the replica's packets")
    else:
        found = missing_at_replica(folders[0], kind_of(database.scheme).position_of(database.place))
    if as_json:
        write_json([asdict(one) for one in found])
    for one in () if as_json else found:
        write_sentence(f"{one.what} at {one.at}; there: {one.command}")
    if found:
        raise typer.Exit(ExitCode.NO)


def _folder_of(config: Config, replica: str) -> Path:
    """Where the hub looks for the packets of a replica."""
    fed = config.by_packets.get(replica)
    if fed is None or fed.packets is None:
        raise ConfigError(
            f"a packet is of replica {replica}, of which no agreement says `packets`: add that"
        )
    return fed.packets
