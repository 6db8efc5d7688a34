"""An image or key on the wire as an agent captures it, and what in it no replica can take."""

from dataclasses import dataclass

from connectors import wire

OVERHEAD_BYTES = 1_000
"""The most that a record holds besides key and images."""


@dataclass(frozen=True, slots=True)
class WireImage:
    """The wire's text of an image or key, and what in it no replica can take, for people.

    `known`: the text of the columns that have a value of their type.
    """

    text: str
    known: str
    faults: tuple[str, ...] = ()


def null_faults(key: str) -> tuple[str, ...]:
    """The faults of a key in the wire's text that are nulls, which no row can be found by."""
    if ":null" not in key:
        return ()
    return tuple(
        f"{name}: a null key: write a value; no other replica gets this row"
        for name, value in wire.loads(key).items()
        if value is None
    )


def too_large(what: str, size: object) -> str:
    """The fault of a value, or a whole row, that no record can hold."""
    return f"{what}: {size} bytes are more than a record may have (limits.record_bytes)"
