"""The command line with all its commands imported, for tests that go through them."""

import typer.main
from typer.core import TyperGroup

from streaming.cli.commands import COMMANDS
from streaming.cli.lazy import imported
from streaming.cli.main import app


def all_commands() -> TyperGroup:
    """The group of all commands, each with its options and arguments."""
    group = typer.main.get_group(app)
    group.commands = {one.name: imported(one) for one in COMMANDS}
    return group
