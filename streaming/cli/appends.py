"""Which operator commands a CLI command appends to table `config`, stated at its function."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

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
