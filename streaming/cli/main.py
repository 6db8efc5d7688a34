"""The command `slackwater`; what its exit codes say stands in exit_codes.py."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from streaming.cli.commands import COMMANDS, PURPOSES
from streaming.cli.exit_codes import ExitCode
from streaming.cli.lazy import group_of
from streaming.core.model.errors import ConfigError, HubError, QuestionError
from streaming.terminal.output import write_error, write_line

app = typer.Typer(
    name="slackwater",
    cls=group_of(COMMANDS, PURPOSES),
    help="A multi-master replication hub.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # they would show local variables, and so secrets
)


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if wanted:
        from streaming.facts.versions import versions  # noqa: PLC0415  # only this needs them

        found = versions()
        write_line(f"slackwater {found.slackwater}")
        write_line(
            f"Spark {found.spark}, Delta Lake {found.delta}, deltalake {found.deltalake}, "
            f"Python {found.python}"
        )
        write_line(
            f"wire {', '.join(map(str, found.wire))}, state format {found.state_format}, "
            f"database format {', '.join(f'{k} {n}' for k, n in found.database_formats.items())}"
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; an expected failure is one line on stderr."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="slackwater")
    except HubError as error:
        write_error(str(error))
        return ExitCode.NOT_ASKED if isinstance(error, ConfigError | QuestionError) else ExitCode.NO
    except SystemExit as end:
        if end.__context__ and isinstance(end.__context__.__cause__, KeyboardInterrupt):
            write_error("interrupted")  # typer ends, and says nothing
            return ExitCode.INTERRUPTED
        return end.code if isinstance(end.code, int) else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
