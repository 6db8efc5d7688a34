"""`run` and `demo`: what starts a JVM, and is therefore imported only when it is asked for."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.config.config import load

AvailableNow = Annotated[
    bool, typer.Option("--available-now", help="Process what is there, then end.")
]
Keep = Annotated[
    Path | None,
    typer.Option("--keep", metavar="DIR", help="Leave configuration, state and logs there."),
]
Seconds = Annotated[
    float, typer.Option("--seconds", min=1, help="How long the replicas write, at least.")
]
Check = Annotated[
    Path | None,
    typer.Option("--check", metavar="DIR", help="Only judge what --keep has left there."),
]


def run(*, config: ConfigPath = DEFAULT_CONFIG, available_now: AvailableNow = False) -> None:
    """Run the hub until it is told to stop (SIGTERM, Ctrl-C); it ends behind a whole batch."""
    configured = load(config)
    from streaming.hub.service import run as run_hub  # noqa: PLC0415  # it imports Spark

    raise typer.Exit(run_hub(configured, available_now))


def demo(
    *, keep: Keep = None, seconds: Seconds = 10, check: Check = None, as_json: AsJson = False
) -> None:
    """Three replicas that collide, one hub, and a verdict: exit 0 when all of it holds."""
    demonstration = import_module("streaming.demo.run")
    raise typer.Exit(demonstration.main(keep=keep, seconds=seconds, check=check, as_json=as_json))
