"""`run` and `demo`: the commands that start a JVM, imported only when they are called."""

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from streaming.cli.inputs import DEFAULT_CONFIG, AsJson, ConfigPath
from streaming.config.sources.live import live_access, live_options
from streaming.config.sources.load import load
from streaming.demo.scenario import DemoOptions, DemoScenario, OtherDatabase
from streaming.hub.stopping import stop_signals

AvailableNow = Annotated[
    bool, typer.Option("--available-now", help="Process the available records, then stop.")
]
Standby = Annotated[
    bool, typer.Option("--standby", help="While another hub works on the state, wait to take over.")
]
ReplaceApplied = Annotated[
    bool,
    typer.Option(
        "--replace-applied", help="Start though `slackwater config apply` has replaced this file."
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option("--keep", metavar="DIR", help="Keep configuration, state and logs there."),
]
Scenario = Annotated[
    DemoScenario,
    typer.Option(
        "--scenario",
        help="collisions: all write the same rows; restore: a database is restored from a backup;"
        " lost-origin: a replica dies for ever; packets: one is fed by files.",
    ),
]
Seconds = Annotated[
    float, typer.Option("--seconds", min=1, help="How long the replicas write, at least.")
]
Stay = Annotated[
    bool, typer.Option("--stay", help="Keep everything running, with its page, until Ctrl-C.")
]
Secure = Annotated[
    bool,
    typer.Option(
        "--secure", help="On a closed broker: TLS, and a login and rights for each program."
    ),
]
With = Annotated[
    OtherDatabase | None,
    typer.Option("--with", help="Two of the replicas are PostgreSQL servers, one a SQLite file."),
]
Check = Annotated[
    Path | None,
    typer.Option("--check", metavar="DIR", help="Only check the result of a run with --keep."),
]


def run(
    *,
    config: ConfigPath = DEFAULT_CONFIG,
    available_now: AvailableNow = False,
    standby: Standby = False,
    replace_applied: ReplaceApplied = False,
) -> None:
    """Run the hub until SIGTERM or Ctrl-C; it stops after a complete batch.

    Exit 3 if it ended itself because no batch ended in time: start it again.
    """
    with stop_signals() as stop:
        configured = load(config)
        live = live_options(config, configured), live_access(config, configured)
        process = import_module("streaming.hub.process")  # it imports Spark
        options = {"available_now": available_now, "standby": standby}
        options["replace_applied"] = replace_applied
        process.run(config, configured, stop, *live, **options)


def demo(
    *,
    scenario: Scenario = DemoScenario.COLLISIONS,
    keep: Keep = None,
    seconds: Seconds = 10,
    stay: Stay = False,
    secure: Secure = False,
    other: With = None,
    check: Check = None,
    as_json: AsJson = False,
) -> None:
    """Run three replicas that conflict and one hub: exit 0 if all checks of the result pass."""
    demonstration = import_module("streaming.demo.run")
    options = DemoOptions(
        scenario, seconds, keep, stay=stay, secure=secure, as_json=as_json, other=other
    )
    raise typer.Exit(demonstration.main(options, check))
