"""Which operator commands a CLI command appends to table `config`, stated at its function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from streaming.core.model.command import CommandName

Function = TypeVar("Function", bound=Callable[..., None])


@dataclass(frozen=True, slots=True)
class Appended:
    """The operator commands of one CLI command; `when`: the condition, "" if it always does."""

    names: tuple[CommandName, ...]
    when: str


def appends(*names: CommandName, when: str = "") -> Callable[[Function], Function]:
    """State that the decorated function appends these operator commands."""

    def stated(function: Function) -> Function:
        vars(function)["appended"] = Appended(names, when)
        return function

    return stated


def appended_by(callback: Any) -> Appended | None:  # noqa: ANN401  # typer names no type of it
    """What the function of a CLI command appends; None: nothing."""
    found: Appended | None = getattr(callback, "appended", None)
    return found
