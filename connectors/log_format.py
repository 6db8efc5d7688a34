"""How a log is written (connectors/logs.py does it), and why a process ends, said in its form."""

import sys
from enum import StrEnum

WRITES_OBJECTS = "writes_objects"
"""What a handler has that writes a log of objects, an object a line."""


class LogFormat(StrEnum):
    """How log lines are written."""

    AUTO = "auto"
    """text on a terminal, else JSON"""
    TEXT = "text"
    """a line for people"""
    JSON = "json"
    """an object a line, with all fields"""


def write_failure(who: str, text: str) -> None:
    """Write what went wrong on standard error, a line for each mistake.

    A process whose log is of objects writes an object of level `critical`: whoever collects it
    finds the line that says why the process ended among the others.
    """
    import logging  # noqa: PLC0415  # its import takes time, and most commands do not fail

    if any(hasattr(handler, WRITES_OBJECTS) for handler in logging.getLogger().handlers):
        logging.getLogger("slackwater").critical("%s", text)
        return
    for line in text.splitlines() or [""]:
        sys.stderr.write(f"{who}: {line}\n")
