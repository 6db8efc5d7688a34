"""docs/commands.md from the command line itself: `python -m streaming.cli.commands_page`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

from streaming.cli.appends import Appended
from streaming.cli.commands import COMMANDS, PURPOSES
from streaming.cli.exit_codes import ExitCode
from streaming.cli.lazy import imported
from streaming.cli.start.config import meanings
from streaming.core.text.markdown import code, prose, table

PLACE = Path(__file__).parents[2] / "docs" / "commands.md"

_HEAD = """\
# Commands

This page is made from the commands themselves; `make docs` writes it.
`--help` behind a command prints the same of that command.
`slackwater --install-completion` completes commands and options in bash, zsh and fish.

Most commands read the Delta tables of the hub's state without a JVM, and answer even while no hub is running.
On the hub's machine the lock of the state shows `status` and `level` whether a hub is running or starting.
Only `level`, `status --replica` and the commands about topics query the broker, for a few seconds at most.

Two options mean the same everywhere; each command below says whether it takes them.
"""
_APPENDING = """\
## Commands that the hub carries out

These append an operator's command to table `config`, which the hub carries out ([protocol](protocol.md#63-operators-commands)).
They work on the machine that has the state, or with access to its bucket, whether a hub is running or not.
"""
_EXIT_CODES = """\
## Exit codes

They mean the same for every command.
"""
_SHARED = ("--config", "--json")
_NOTE = re.compile(r"(?:^|  )\[([^][]*)\]$")
"""What typer writes behind the meaning: that a parameter is required, its default, its range."""
_TYPES = {
    "str": "text",
    "list[str]": "text",
    "list[Path]": "path",
    "int": "integer",
    "float": "number",
}
"""Names of types in a help -> in the page."""


class NamedCommand(NamedTuple):
    """A command of typer's, with its name behind `slackwater`."""

    name: str
    command: Any

    @property
    def appended(self) -> Appended | None:
        """The operator commands that it appends to table `config`; None: it appends none."""
        found: Appended | None = getattr(self.command.callback, "appended", None)
        return found

    @property
    def parameters(self) -> list["Parameter"]:
        """Its arguments and options, as its help shows them."""
        context = typer.Context(self.command)
        return [_parameter(one, context) for one in self.command.params]


class Parameter(NamedTuple):
    """An argument or an option; `value`: its type, its choices, or the word that stands for it."""

    name: str
    value: str
    default: str
    meaning: str


def commands() -> dict[str, list[NamedCommand]]:
    """Purpose -> its commands in the order of the help, those of a group behind the group."""
    found = {one.name: [*_with_inner(one.name, imported(one))] for one in COMMANDS}
    return {
        purpose: [one for name in names for one in found[name]]
        for purpose, names in PURPOSES.items()
    }


def page() -> str:
    """The whole page."""
    by_purpose = commands()
    every = [one for several in by_purpose.values() for one in several]
    shared = {one.name: one for command in every for one in command.parameters}
    parts = [_HEAD, _table([shared[name] for name in _SHARED])]
    for purpose, several in by_purpose.items():
        parts += [f"## {purpose}\n", *map(_section, several)]
    return "\n".join([*parts, _APPENDING, _appending(every), _EXIT_CODES, _exit_codes()])


def _with_inner(name: str, command: Any) -> Iterator[NamedCommand]:  # noqa: ANN401  # typer's own
    yield NamedCommand(name, command)
    for inner, one in getattr(command, "commands", {}).items():
        yield from _with_inner(f"{name} {inner}", one)


def _parameter(one: Any, context: typer.Context) -> Parameter:  # noqa: ANN401  # as above
    shown, text = one.get_help_record(context)
    name = one.opts[0] if one.param_type_name == "option" else one.metavar
    noted = _NOTE.search(text)
    notes = dict(map(_note, noted[1].split("; "))) if noted else {}
    kind = shown.removeprefix(name).strip(" <>").removesuffix(" range")
    value = f"{_TYPES.get(kind, kind)} {notes.get('range', '')}".strip()
    default = "required" if "required" in notes else notes.get("default", "")
    return Parameter(name, value, default, text[: noted.start()] if noted else text)


def _note(text: str) -> tuple[str, str]:
    """Its name and content."""
    name, colon, content = text.partition(": ")
    return (name, content) if colon or name == "required" else ("range", name)


def _section(one: NamedCommand) -> str:
    own = [found for found in one.parameters if found.name not in _SHARED]
    taken = [code(found.name) for found in one.parameters if found.name in _SHARED]
    also = f"Takes {' and '.join(taken)}.\n" if taken else ""
    parts = [f"### {one.name}\n", f"{_usage(one)}\n", _text(one.command.help), also]
    if own:
        parts.append(_table(own))
    if one.appended:
        when = f", {one.appended.when}" if one.appended.when else ""
        parts.append(f"Appends {_words(one.appended)} to table `config`{when}.\n")
    return "\n".join(part for part in parts if part)


def _usage(one: NamedCommand) -> str:
    """The command with what it needs at least."""
    needed = [
        f"{found.name} {found.value}" if found.name.startswith("--") else found.name
        for found in one.parameters
        if found.default == "required"
    ]
    return code(" ".join(["slackwater", one.name, *needed]))


def _text(text: str) -> str:
    """A docstring, a sentence a line."""
    paragraphs = (" ".join(one.split()) for one in prose(text).split("\n\n"))
    return "\n\n".join(re.sub(r"(?<=[.:]) (?=[A-Z`-])", "\n", one) for one in paragraphs) + "\n"


def _table(found: list[Parameter]) -> str:
    return table(
        ("argument or option", "value", "default", "meaning"),
        (
            (code(one.name), code(one.value) if one.value else "", one.default, prose(one.meaning))
            for one in found
        ),
    )


def _appending(every: list[NamedCommand]) -> str:
    return table(
        ("command", "in `config`", "when"),
        (
            (code(one.name), _words(one.appended), one.appended.when or "always")
            for one in every
            if one.appended
        ),
    )


def _words(appended: Appended) -> str:
    return " or ".join(map(code, appended.names))


def _exit_codes() -> str:
    said = meanings(ExitCode)
    return table(
        ("code", "meaning"), ((str(one.value), said[one.name]) for one in sorted(ExitCode))
    )


if __name__ == "__main__":
    PLACE.write_text(page(), encoding="utf-8")
