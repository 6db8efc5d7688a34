"""`lspacket`: the packets of a folder, what each brings, and which can be applied at once."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from connectors import wire
from connectors.agent.settings import DatabaseAddress
from connectors.databases import kind_of, parse_dsn
from connectors.packets.arrived import Arrival, starred, together
from connectors.packets.format import PacketError, packet_files, read
from connectors.packets.header import Header, UpdatesHeader, header_text
from streaming.cli.exit_codes import ExitCode, cannot_say
from streaming.cli.inputs import AsJson
from streaming.core.delivery.consumer import Position
from streaming.core.model.errors import ConfigError
from streaming.core.text.wording import as_numbered
from streaming.terminal.output import write_json, write_line, write_sentence, write_table

Place = Annotated[Path, typer.Argument(metavar="FOLDER|FILE", help="A folder, or one packet.")]
Database = Annotated[
    DatabaseAddress | None,
    typer.Option(
        "--database",
        metavar="FILE",
        parser=parse_dsn,
        help="Mark what this replica's database can apply at once.",
    ),
]
Dump = Annotated[bool, typer.Option("--dump", help="Print each header and its records as JSON.")]


@cannot_say()
def lspacket(
    place: Place, *, database: Database = None, dump: Dump = False, as_json: AsJson = False
) -> None:
    """List the packets of a folder; exit 1 if a file is none or is damaged.

    A star marks what can be applied or imported at once, by what the folder tells or, with
    --database, by the position of that replica. All files are verified whole.
    """
    listed, faults = _listed(_files(place), database)
    if dump:
        for one in listed:
            _dump(one.path)
    elif as_json:
        write_json({"packets": [one.document() for one in listed], "refused": faults})
    else:
        _show(place, listed)
    if not as_json:
        for fault in faults:
            write_sentence(fault)
    if faults:
        raise typer.Exit(ExitCode.NO)


@dataclass(frozen=True, slots=True)
class ListedPacket:
    """A packet file; `arrival`: what it is to the replica that was named, if it is for it."""

    path: Path
    header: Header
    is_next: bool
    arrival: Arrival | None

    def document(self) -> dict[str, object]:
        """The packet for programs: its header, and what is known of it here."""
        return {
            "file": str(self.path),
            "is_next": self.is_next,
            "state": self.arrival,
            "header": wire.loads(header_text(self.header)),
        }

    def cells(self) -> tuple[object, ...]:
        """The packet for people; from and to: a name, or the rid of whom it names by that."""
        header = self.header
        star = "*" if self.is_next else ""
        count = header.content.records, header.content.bytes
        if isinstance(header, UpdatesHeader):
            part = f" {header.part} of {header.parts}" if header.parts > 1 else ""
            brings = f"{_rows(header)} ({_epochs(header)}){part}"
            sides = f"hub {header.hub}", f"{header.agreement} (rid {header.rid})"
        else:
            brings = as_numbered("place", header.base + 1, header.end)
            sides = f"{header.replica} (rid {header.rid})", "hub"
        return (star, self.path.name, header.kind, *sides, brings, *count, self.arrival or "")


def _files(place: Path) -> list[Path]:
    try:
        return packet_files(place) if place.is_dir() else [place.resolve(strict=True)]
    except OSError as error:
        raise ConfigError(f"{place} cannot be read ({error.strerror}): name a folder") from error


def _listed(
    paths: list[Path], database: DatabaseAddress | None
) -> tuple[list[ListedPacket], list[str]]:
    """The packets, and what is wrong with the other files; every file is verified whole."""
    headers, faults = dict[Path, Header](), list[str]()
    for path in paths:
        try:
            headers[path] = read(path).header
        except (PacketError, OSError) as error:
            faults.append(str(error))
    if database is None:
        stars = starred(headers)
        return [ListedPacket(p, one, p in stars, None) for p, one in headers.items()], faults
    rid, position = kind_of(database.scheme).position_of(database.place)
    arrivals = _arrivals(headers, rid, position)
    return [
        ListedPacket(p, one, arrivals.get(p) is Arrival.NEXT, arrivals.get(p))
        for p, one in headers.items()
    ], faults


def _arrivals(headers: dict[Path, Header], rid: int, position: Position) -> dict[Path, Arrival]:
    ours = [(p, h) for p, h in headers.items() if isinstance(h, UpdatesHeader) and h.rid == rid]
    return {
        path: packet.at(position) for packet in together(ours) for path in packet.files.values()
    }


def _show(place: Path, listed: list[ListedPacket]) -> None:
    if not listed:
        write_line(f"{place}: no packets")
        return
    columns = ["", "packet", "kind", "from", "to", "brings", "records", "bytes", ""]
    write_table(columns, [one.cells() for one in listed])


def _rows(header: UpdatesHeader) -> str:
    """What is fresh in a packet by origin, as name base to end; base is what was there before."""
    before, after = header.row_before, header.row_after
    moved = {name: end for name, end in after.items() if end > before.get(name, 0)}
    return ", ".join(f"{name} {before.get(name, 0)} to {end}" for name, end in moved.items()) or "-"


def _epochs(header: UpdatesHeader) -> str:
    if header.first_prev is None or header.last_hub_epoch is None:
        return "no hub epoch"
    return as_numbered("hub epoch", header.first_prev + 1, header.last_hub_epoch)


def _dump(path: Path) -> None:
    packet = read(path)
    write_line(header_text(packet.header))
    for record in packet.records():
        sys.stdout.write(record.decode("utf-8", "replace") + "\n")
