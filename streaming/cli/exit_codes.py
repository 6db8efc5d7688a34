"""Exit codes: what each says, and which of them an error ends a command with."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from streaming.cli.output import write_error
from streaming.core.model.errors import ConfigError, HubError, QuestionError


class ExitCode(IntEnum):
    """What the exit code of a command says; the commands that only ask share these meanings."""

    YES = 0
    """yes, in order, found, or done"""
    NO = 1
    """no, or something was found; of an order: it was not carried out"""
    APART = 3
    """of `level`: yes, but for the replicas that it names"""
    NOT_ASKED = 2
    """the question could not be asked: wrong usage or configuration, no state, no such thing"""


def code_of(error: HubError) -> ExitCode:
    """The exit code of an order that ended with this error."""
    return ExitCode.NOT_ASKED if isinstance(error, ConfigError | QuestionError) else ExitCode.NO


@contextmanager
def cannot_say() -> Iterator[None]:
    """End a question that cannot be asked with `NOT_ASKED`, because `NO` is an answer.

    Around a part of a command or, as a decorator, around all of it.
    """
    try:
        yield
    except HubError as error:
        write_error(str(error))
        raise typer.Exit(ExitCode.NOT_ASKED) from None
