"""`services`: the embedded broker, to try a hub without a Kafka cluster."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.core.model.errors import HubError
from streaming.terminal.output import write_json, write_line, write_table

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
Secure = Annotated[
    bool,
    typer.Option(
        "--secure",
        help="A closed broker: TLS, a login for each user of the configuration, its rights alone.",
    ),
]


@app.command()
def up(
    *,
    folder: Folder = DEFAULT_FOLDER,
    port: Port = None,
    secure: Secure = False,
    config: ConfigPath = DEFAULT_CONFIG,
    as_json: AsJson = False,
) -> None:
    """Start the broker of a folder unless it runs, and show its address.

    With --secure nobody may do what `slackwater acls` does not print for the configuration.
    """
    from connectors.kafka.embedded.broker import Broker  # noqa: PLC0415  # only these two commands need it
    from streaming.jvm.java import check_java  # noqa: PLC0415

    check_java()
    if secure:
        _closed_up(folder, port, config, as_json=as_json)
        return
    broker = Broker.start(folder, port)
    found = {"bootstrap_servers": broker.bootstrap_servers, "pid": broker.pid, "folder": folder}
    if as_json:
        write_json(found)
    else:
        write_line(f"broker at {broker.bootstrap_servers} (process {broker.pid}, data in {folder})")
        write_line(f'in hub.toml: bootstrap_servers = "{broker.bootstrap_servers}"')


def _closed_up(folder: Path, port: int | None, config: Path, *, as_json: bool) -> None:
    """Start the closed broker, admit the users of the configuration, and show their logins."""
    from streaming.config.closed_services import admit, start_broker, users_of  # noqa: PLC0415
    from streaming.config.sources.load import load  # noqa: PLC0415

    rights = users_of(load(config))
    broker = start_broker(folder, port)
    logins = admit(folder, broker, rights)
    address = broker.bootstrap_servers
    if as_json:
        found = {"bootstrap_servers": address, "pid": broker.pid, "folder": folder}
        write_json(found | {"secrets": logins})
        return
    write_line(f"closed broker at {address} (process {broker.pid}, data in {folder})")
    write_line()
    rows = ((user, len(rights[user]), place) for user, place in logins.items())
    write_table(("user", "rights", "SLACKWATER_SECRETS"), rows)
    write_line()
    write_line(
        "Each of these folders holds the address and a login. Start each program with its own:"
    )
    write_line(f"SLACKWATER_SECRETS={logins['hub']} slackwater run --config {config}")


@app.command()
def down(*, folder: Folder = DEFAULT_FOLDER) -> None:
    """Stop the broker of a folder; its data stays."""
    from connectors.kafka.embedded.broker import Broker  # noqa: PLC0415

    broker = Broker.running(folder)
    if broker is None:
        raise HubError(f"no broker runs in {folder}: name its folder with --folder")
    broker.stop()
    write_line(f"broker of {folder} stopped")
