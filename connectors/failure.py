"""Why a process ends, said in the form of its log."""

import logging
import sys

_LOG = logging.getLogger("slackwater")


class ObjectHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes a log of objects, an object a line; `tell_failure` looks for it."""


def tell_failure(who: str, text: str) -> None:
    """Write what went wrong on standard error, a line for each mistake.

    A process whose log is of objects writes an object of level `critical`: whoever collects it
    finds the line that says why the process ended among the others.
    """
    if any(isinstance(handler, ObjectHandler) for handler in logging.getLogger().handlers):
        _LOG.critical("%s", text)
        return
    for line in text.splitlines() or [""]:
        sys.stderr.write(f"{who}: {line}\n")
