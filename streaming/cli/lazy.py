"""A group of commands that imports a command's module when that command is called.

Help and completion list the names and first lines of all commands. Both stand in `CommandPlace`,
so a command costs the imports that it needs itself, and a list of commands costs none.
"""

import gc
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

_WITHOUT_NUMPY = ("status",)
"""They need no numpy, which pyarrow imports where it is there, for a tenth of a second."""
_NEGATIVE = re.compile(r"-\d+(\.\d+)?")


class CommandPlace(NamedTuple):
    """Where a command is."""

    place: str
    """its function, or the typer.Typer of its group, which is its module's `app`: "module:name" """
    help: str
    """the first sentence of its docstring, which its own help shows whole"""

    @property
    def name(self) -> str:
        """The name of its function, `-` for `_`, none at its end; or of its group's module."""
        module, _, attribute = self.place.partition(":")
        if attribute == "app":
            return module.rpartition(".")[2]
        return attribute.removesuffix("_").replace("_", "-")


def group_of(
    places: Iterable[CommandPlace], purposes: Mapping[str, Sequence[str]]
) -> type[TyperGroup]:
    """The class of a group of these commands, for `typer.Typer(cls=...)`.

    `purposes`: heading -> the names of the commands below it, in the order of the help.
    """
    listed = {one.name: one for one in places}

    class LazyGroup(TyperGroup):
        """Knows its commands by name and first sentence."""

        def __init__(self, **attributes: Any) -> None:  # noqa: ANN401  # whatever typer passes
            super().__init__(**attributes)
            self.commands = {one.name: TyperCommand(one.name, help=one.help) for one in places}

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
            """The command itself in place of what stands for it in lists."""
            name, _, rest = super().resolve_command(ctx, args)
            return name, imported(listed[name]) if name else None, rest

        def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401, ARG002
            """The commands by purpose, in place of one list."""
            width = formatter.width - 6 - max(map(len, self.commands))
            for heading, names in purposes.items():
                with formatter.section(heading):
                    shown = [(n, self.commands[n].get_short_help_str(width)) for n in names]
                    formatter.write_dl(shown, col_max=40)

    return LazyGroup


class NumbersCommand(TyperCommand):
    """A command that takes a negative number as an argument, such as a key, not as an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401  # typer's own
        """Negative numbers behind `--`, except the values of options."""
        if "--" in args:
            return super().parse_args(ctx, args)
        valued = {
            name for one in self.params if not getattr(one, "is_flag", False) for name in one.opts
        }
        before = ["", *args]
        numbers = [
            place
            for place, one in enumerate(args)
            if _NEGATIVE.fullmatch(one) and before[place] not in valued
        ]
        if not numbers:
            return super().parse_args(ctx, args)
        others = [one for place, one in enumerate(args) if place not in numbers]
        return super().parse_args(ctx, [*others, "--", *(args[place] for place in numbers)])


def imported(command: CommandPlace) -> Any:  # noqa: ANN401  # typer names no type of it
    """The command as typer makes it of the function or the group that is at its place."""
    module, _, attribute = command.place.partition(":")
    gc.disable()  # what is imported stays; to look for garbage in it is a tenth of a command
    try:
        with _without_numpy() if command.name in _WITHOUT_NUMPY else nullcontext():
            found = getattr(import_module(module), attribute)
    finally:
        gc.enable()
    holder = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=command.name)
    else:
        holder.command(command.name, cls=NumbersCommand)(found)
    return get_group(holder).commands[command.name]


@contextmanager
def _without_numpy() -> Iterator[None]:
    """Let pyarrow do without numpy, as where it is not installed, unless either is in use."""
    if "numpy" in sys.modules or "pyarrow" in sys.modules:
        yield
        return
    sys.modules["numpy"] = None  # type: ignore[assignment]  # so Python marks what is not there
    try:
        yield
    finally:
        del sys.modules["numpy"]
