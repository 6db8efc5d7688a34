"""`agent`: the process beside one SQLite database, by the hub's own configuration."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.inputs import DEFAULT_CONFIG, ConfigPath
from streaming.config.config import load

Database = Annotated[Path, typer.Option("--database", metavar="FILE", help="The SQLite database.")]
Replica = Annotated[str, typer.Option("--replica", help="Its name in the configuration.")]
Shared = Annotated[
    bool,
    typer.Option("--rows-are-shared", help="Existing rows are the same at every replica."),
]
Print = Annotated[
    bool,
    typer.Option(
        "--print", help="Only print the settings document of `python -m connectors.sqlite`."
    ),
]


def agent(
    *,
    database: Database,
    replica: Replica,
    config: ConfigPath = DEFAULT_CONFIG,
    rows_are_shared: Shared = False,
    print_: Print = False,
) -> None:
    """Run the agent of one SQLite replica until SIGTERM or Ctrl-C."""
    configured = load(config)
    settings = import_module("streaming.config.agent").agent_settings(
        configured, replica, database.absolute(), rows_are_shared=rows_are_shared
    )
    if print_:
        typer.echo(settings.text())
        return
    raise typer.Exit(import_module("connectors.sqlite.run").run_agent(settings))
