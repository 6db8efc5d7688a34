"""Pins: hub epochs whose state stays readable for as long as an operator wants it."""

import json
import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from streaming.core.model.command import Command, CommandName
from streaming.core.model.errors import QuestionError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_HOUR_MS = 3_600_000
_STEP_H = 168
"""The hours for which versions are kept grow in steps: each is a commit of the table."""


class Pin(NamedTuple):
    """A pinned hub epoch; `at_ms`: when its batch was committed, by the hub's clock."""

    name: str
    hub_epoch: int
    at_ms: int

    def text(self) -> str:
        """The pin as the argument of a command."""
        return json.dumps([*self])


def check_pin_name(name: str) -> str:
    """Return the name; QuestionError if a pin cannot have it."""
    if not _NAME.fullmatch(name):
        raise QuestionError(
            f"{name!r} is no name of a pin: use at most 64 letters, digits, dots, dashes and"
            " underscores, a letter or digit first"
        )
    return name


def pins_of(commands: Iterable[Command]) -> dict[str, Pin]:
    """Return name -> the pin that stands, of all commands in their order."""
    found: dict[str, Pin] = {}
    for one in commands:
        if one.name == CommandName.PIN:
            pin = Pin(*json.loads(one.argument or ""))
            found[pin.name] = pin
        elif one.name == CommandName.UNPIN:
            found.pop(one.argument or "", None)
    return found


def kept_hours(window_h: int, pins: Iterable[Pin], now_ms: int) -> int:
    """Return for how many hours the versions of `rows` are kept: the window, and every pin.

    A week more than the oldest pin needs, for the time until this is looked at again, and because
    Delta removes log entries up to a checkpoint that may be older than the version.
    """
    oldest_ms = min((one.at_ms for one in pins), default=None)
    if oldest_ms is None:
        return window_h
    age_h = max(0, now_ms - oldest_ms) / _HOUR_MS
    return max(window_h, (math.floor(age_h / _STEP_H) + 2) * _STEP_H)
