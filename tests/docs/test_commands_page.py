"""docs/commands.md is made from the commands, and what they append is what they state."""

import re
from pathlib import Path

import pytest

from streaming.cli.commands_page import PLACE, NamedCommand, commands, page
from streaming.core.model.command import CommandName

EVERY = [one for several in commands().values() for one in several]
CHECKOUT = PLACE.parents[1]
STATED = re.compile(r"^@appends\([^)]*\)", re.MULTILINE)
USED = re.compile(r"\bCommandName\.([A-Z_]+)")


def test_the_page_is_current() -> None:
    """`make docs` writes it; whoever has a task looks there for its command."""
    assert PLACE.read_text("utf-8") == page()


@pytest.mark.parametrize("named", EVERY, ids=lambda one: one.name)
def test_every_command_and_parameter_says_what_it_means(named: NamedCommand) -> None:
    """A parameter without a help would be an empty cell."""
    assert named.command.help
    assert [one.name for one in named.parameters if not one.meaning] == []


def test_each_command_of_an_operator_is_appended_by_some_command_of_the_cli() -> None:
    """The hub carries out nothing that nobody can order."""
    appended = {name for one in EVERY if one.appended for name in one.appended.names}

    assert appended == {*CommandName}


@pytest.mark.parametrize(
    "module",
    [one for one in sorted((CHECKOUT / "streaming/cli").rglob("*.py")) if one.stem != "__init__"],
    ids=lambda one: str(one.relative_to(CHECKOUT)),
)
def test_a_module_of_the_cli_states_every_command_that_it_appends(module: Path) -> None:
    """The page and the protocol say by it which commands write to the state."""
    text = module.read_text("utf-8")
    stated = {name for line in STATED.findall(text) for name in USED.findall(line)}

    assert stated == {*USED.findall(STATED.sub("", text))}


def test_the_protocol_names_every_command_that_appends() -> None:
    """Who has access to the state can do what stands there, and nothing else."""
    protocol = (CHECKOUT / "docs" / "protocol.md").read_text("utf-8")
    section = re.findall(r"^### 6\.3 .*?(?=^###)", protocol, re.MULTILINE | re.DOTALL)[0]
    listed = {
        name
        for line in section.splitlines()
        if line.startswith("- ")
        for name in re.findall(r"`([^`]+)`", line)
    }

    assert listed == {one.name for one in EVERY if one.appended}
