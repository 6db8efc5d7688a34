"""What a demonstration shows."""

from enum import StrEnum


class DemoScenario(StrEnum):
    """The stories that `slackwater demo` can perform."""

    COLLISIONS = "collisions"
    """three replicas write the same rows at the same moment"""
    RESTORE = "restore"
    """a replica's file is restored from a backup, and comes back under traffic"""
    LOST_ORIGIN = "lost-origin"
    """a replica dies for ever while another one is away, and is retired"""
