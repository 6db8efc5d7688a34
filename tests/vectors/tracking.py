"""Change tracking and resync of a storage system's blocks, played by the rules for rows.

A relation's entry in a catalogue is a table, its serial number the incarnation, a block a row,
a log sequence number a position in hub order (docs/rules/change_tracking.md, Words). What is
expected in words is compared by the decision that they mean (words.toml).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.vectors.outcome import About, Case, Difference, VectorError
from tests.vectors.words import decision, said

BLOCK = 32 * 1024
"""The bytes of the origin's block."""
NO_NUMBER = -1
"""What the origin counts where it cannot."""

Found = Mapping[str, Any]
"""Name of an expectation -> what the hub makes of it: a decision, or a value in the case's form."""

Input = Mapping[str, Any]

Play = Callable[[str, Input], Found]
"""(kind, input of a case) -> what was found."""

LEAVES = (bool, StrEnum, type(None))
"""The types of answers that words may say."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """What the hub found, and what the origin's own rule gives where that differs."""

    found: Found
    origin: Found


def differences(case: Case, played: Tracked) -> list[Difference]:
    """What was expected otherwise; an expectation that nothing was found for is an error."""
    if not case["expect"]:
        raise VectorError("the case expects nothing")
    return [
        Difference(
            f"{name}: expected {expected}, got {_shown(played.found[name])}",
            About.TRACKING,
            is_origins=name in played.origin and _same(case["kind"], name, expected, played.origin),
        )
        for name, expected in case["expect"].items()
        if not _same(case["kind"], name, expected, played.found)
    ]


def _same(kind: str, name: str, expected: object, found: Found) -> bool:
    """Words are compared by what they mean, all else as it is; rows have no order."""
    if name not in found:
        raise VectorError(f"{name} is an unknown expectation of {kind}")
    got = found[name]
    if isinstance(expected, str) and isinstance(got, LEAVES):
        return decision(kind, name, expected) == said(got)
    return _as_text(expected) == _as_text(got)


def _as_text(value: object) -> str:
    """The JSON of a value, which tells 1 from true; rows have no order."""
    if isinstance(value, list) and all(isinstance(each, dict) for each in value):
        value = sorted(json.dumps(each, sort_keys=True) for each in value)
    return json.dumps(value, sort_keys=True)


def _shown(got: object) -> object:
    return said(got) if isinstance(got, LEAVES) else got


# -- a case's values as the hub's ---------------------------------------------------


def position(lsn: int | str) -> int:
    """A log sequence number, which is a number or a letter."""
    return ord(lsn) if isinstance(lsn, str) and not lsn.isdigit() else int(lsn)
