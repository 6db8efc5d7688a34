"""`services`: the embedded broker, to try a hub without a Kafka cluster."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.inputs import AsJson
from streaming.cli.output import write_json, write_line
from streaming.core.model.errors import HubError

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="An embedded Kafka broker.")

DEFAULT_FOLDER = Path("services")

Folder = Annotated[
    Path, typer.Option("--folder", metavar="DIR", help="Its data, its log, and its process id.")
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port", min=1, max=65_535, help="The port; by default its last one or a free one."
    ),
]


@app.command()
def up(*, folder: Folder = DEFAULT_FOLDER, port: Port = None, as_json: AsJson = False) -> None:
    """Start the broker of a folder unless it runs, and show its address."""
    from connectors.kafka.broker import Broker  # noqa: PLC0415  # only these two commands need it
    from streaming.jvm.java import check_java  # noqa: PLC0415

    check_java()
    broker = Broker.start(folder, port)
    found = {"bootstrap_servers": broker.bootstrap_servers, "pid": broker.pid, "folder": folder}
    if as_json:
        write_json(found)
    else:
        write_line(f"broker at {broker.bootstrap_servers} (process {broker.pid}, data in {folder})")
        write_line(f'in hub.toml: bootstrap_servers = "{broker.bootstrap_servers}"')


@app.command()
def down(*, folder: Folder = DEFAULT_FOLDER) -> None:
    """Stop the broker of a folder; its data stays."""
    from connectors.kafka.broker import Broker  # noqa: PLC0415

    broker = Broker.running(folder)
    if broker is None:
        raise HubError(f"no broker runs in {folder}: name its folder with --folder")
    broker.stop()
    write_line(f"broker of {folder} stopped")
