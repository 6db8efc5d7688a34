"""Operator commands: the CLI appends them, the hub carries them out."""

from dataclasses import dataclass
from enum import StrEnum


class CommandName(StrEnum):
    """The commands, each with what its argument names."""

    LEVEL = "level"
    """send every consumer its covers at once; no argument"""
    RELEASE = "release"
    """make a quarantined record a change of the hub; its id"""
    DROP = "drop"
    """drop a quarantined record; its id"""
    ACCEPT = "accept"
    """close a conflict as it was decided; its id"""
    OVERRIDE = "override"
    """let the loser of a conflict win, by a change of the hub; the conflict's id"""
    RETRY = "retry"
    """send refused rows again; the id of one conflict, `r<rid>-<offset>`, or all of `r<rid>`"""
    ABORT = "abort"
    """end an open transaction; its primary CSN or that of a member"""
    RECOVER = "recover"
    """give up the lost input of a replica; its rid"""
    RESUME = "resume"
    """send to an agreement again that stopped at a refused row; its name"""
    RETIRE = "retire"
    """take a replica out for good; its rid"""


@dataclass(frozen=True, slots=True)
class Command:
    """An operator's command as table `config` holds it; `seen`: the hub epoch it is based on."""

    number: int
    name: CommandName
    argument: str | None
    seen: int = 0
