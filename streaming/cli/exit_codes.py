"""Exit codes: what each says, and how a question ends that cannot be asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

import typer

from streaming.core.model.errors import HubError
from streaming.terminal.output import write_error


class ExitCode(IntEnum):
    """What the exit code of a command says; the commands that only ask share these meanings."""

    YES = 0
    """yes, in order, found, or done; of an order to the hub: it is stored for it"""
    NO = 1
    """no, or something was found; of `level` also: it cannot be said; of an order: it was refused,
    or failed"""
    APART = 3
    """of `level`: yes, but for the replicas that it names"""
    REFUSED = 4
    """of `config diff`: the file differs in what a hub refuses to change; of `config apply` also:
    in what needs a restart"""
    NOT_ASKED = 2
    """the question could not be asked: wrong usage or configuration, no state, or a name that
    nothing has, so that a misspelt replica, table, conflict or CSN is never an answer"""
    INTERRUPTED = 130
    """interrupted by Ctrl-C; `run` and `agent` end in order then, with 0"""


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
