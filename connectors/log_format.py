"""How a log is written; the configuration names it, and `connectors/logs.py` does it."""

from enum import StrEnum


class LogFormat(StrEnum):
    """How log lines are written."""

    AUTO = "auto"
    """text on a terminal, else JSON"""
    TEXT = "text"
    """a line for people"""
    JSON = "json"
    """an object a line, with all fields"""
