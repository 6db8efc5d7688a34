"""The command `slackwater`. Exit codes: 0 yes or done, 1 no or failed, 2 wrong usage."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from streaming.cli import agent, config, conflicts, positions, quarantine, run, services
from streaming.cli.abort import abort
from streaming.cli.backup import backup, migrate, restore
from streaming.cli.doctor import doctor
from streaming.cli.explain import explain
from streaming.cli.export import export
from streaming.cli.init import init
from streaming.cli.level import level
from streaming.cli.output import write_error, write_line
from streaming.cli.past import blame, diff, rows
from streaming.cli.pause import pause
from streaming.cli.pin import pin, pins, unpin
from streaming.cli.recover import recover
from streaming.cli.reinit import reinit
from streaming.cli.replay import replay
from streaming.cli.resume import resume
from streaming.cli.resync import resync
from streaming.cli.retire import retire
from streaming.cli.setup import setup
from streaming.cli.sql import sql
from streaming.cli.status import status
from streaming.cli.top import top
from streaming.cli.verify import verify
from streaming.core.model.errors import ConfigError, HubError
from streaming.facts.versions import versions

app = typer.Typer(
    name="slackwater",
    help="A multi-master replication hub.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they would show local variables, and so secrets
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if wanted:
        found = versions()
        write_line(f"slackwater {found.slackwater}")
        write_line(
            f"Spark {found.spark}, Delta Lake {found.delta}, deltalake {found.deltalake}, "
            f"Python {found.python}"
        )
        write_line(
            f"wire {', '.join(map(str, found.wire))}, state format {found.state_format}, "
            f"SQLite database format {found.database_format}"
        )
        raise typer.Exit


@app.callback()
def options(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_show_version, help="Print the versions and exit."
        ),
    ] = False,
) -> None:
    """A multi-master replication hub."""


app.command()(setup)
app.command()(run.demo)
app.command()(run.run)
app.command()(reinit)
app.command()(recover)
app.command()(resume)
app.command()(resync)
app.command()(pause)
app.command()(init)
app.command()(retire)
app.command()(backup)
app.command()(restore)
app.command()(migrate)
app.command()(status)
app.command()(top)
app.command()(doctor)
app.command()(level)
app.command()(abort)
app.command()(replay)
app.command()(rows)
app.command()(diff)
app.command()(blame)
app.command()(explain)
app.command()(verify)
app.command()(sql)
app.command()(export)
app.command()(pin)
app.command()(unpin)
app.command()(pins)
app.command()(positions.ruv)
app.command()(positions.lacks)
app.add_typer(agent.app, name="agent")
app.add_typer(conflicts.app, name="conflicts")
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(config.app, name="config")
app.add_typer(services.app, name="services")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an expected failure is one line on stderr."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="slackwater")
    except ConfigError as error:
        write_error(str(error))
        return 2
    except HubError as error:
        write_error(str(error))
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
