"""What quarantine keeps of a record's bytes: all, or of a large one the head and what names it."""

import hashlib
from typing import NamedTuple

HEAD_BYTES = 65_536
"""How much is kept of a record that is too large."""


class KeptBytes(NamedTuple):
    """The bytes that are kept; how many the record has, and their SHA-256 if not all are kept.

    None: the record could not be read again.
    """

    value: bytes | None = None
    size: int | None = None
    sha256: str | None = None


def kept_bytes(value: bytes | None, record_bytes: int) -> KeptBytes:
    """What is kept of a record; the whole is where it was, in its topic at its offset."""
    if value is None:
        return KeptBytes()
    if len(value) <= max(record_bytes, HEAD_BYTES):
        return KeptBytes(value, len(value))
    return KeptBytes(value[:HEAD_BYTES], len(value), hashlib.sha256(value).hexdigest())


def is_whole_of(value: bytes | None, sha256: str) -> bool:
    """Return whether these are the bytes of the record of which a head is kept."""
    return value is not None and hashlib.sha256(value).hexdigest() == sha256
