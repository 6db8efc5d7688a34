"""A line of `doctor`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckedItem:
    """A subject, and how it is or what to do about it."""

    subject: str
    is_ok: bool
    text: str
