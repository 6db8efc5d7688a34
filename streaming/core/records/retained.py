"""What a topic keeps of its records."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retained:
    """For how long, in ms, and how many bytes, a topic keeps its records; None: without end."""

    ms: int | None
    bytes: int | None
