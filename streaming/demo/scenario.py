"""What a demonstration shows."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class DemoScenario(StrEnum):
    """The stories that `slackwater demo` can perform."""

    COLLISIONS = "collisions"
    """three replicas write the same rows at the same moment"""
    RESTORE = "restore"
    """a replica's file is restored from a backup, and comes back under traffic"""
    LOST_ORIGIN = "lost-origin"
    """a replica dies for ever while another one is away, and is retired"""
    PACKETS = "packets"
    """a replica is fed by files, one of which is lost and sent again"""


class OtherDatabase(StrEnum):
    """What two of the three replicas can be in the place of SQLite."""

    POSTGRES = "postgres"
    """a PostgreSQL server each"""


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """How a demonstration is run: for how long at least, and in which folder if that is kept.

    `stay`: it ends when a signal comes, not when all are level. `secure`: on a closed broker.
    `other`: what two of the replicas are.
    """

    scenario: DemoScenario
    seconds: float
    keep: Path | None
    stay: bool
    secure: bool
    as_json: bool
    other: OtherDatabase | None = None
