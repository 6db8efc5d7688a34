"""What quarantine keeps of a record's bytes: all, or of a large one the head and what names it."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

HEAD_BYTES = 65_536
"""How much is kept of a record that is too large."""

SHORT_HEAD_BYTES = 1_024
"""How much is kept of a record beyond its replica's budget (quarantine_budget.py)."""


class KeptBytes(NamedTuple):
    """The bytes that are kept; how many the record has, and their SHA-256 if not all are kept.

    None: the record could not be read again.
    """

    value: bytes | None = None
    size: int | None = None
    sha256: str | None = None

    @property
    def whole(self) -> bytes | None:
        """All bytes of the record, if they are kept."""
        return self.value if self.sha256 is None else None

    @property
    def is_short(self) -> bool:
        """Return whether it is the short head of a larger record."""
        return self.sha256 is not None and len(self.value or b"") <= SHORT_HEAD_BYTES

    def shortened(self) -> "KeptBytes":
        """The same with a short head; a record that is not longer stays whole."""
        if self.value is None or len(self.value) <= SHORT_HEAD_BYTES:
            return self
        digest = self.sha256 or hashlib.sha256(self.value).hexdigest()
        return KeptBytes(self.value[:SHORT_HEAD_BYTES], self.size, digest)


def kept_bytes(value: bytes, record_bytes: int) -> KeptBytes:
    """What is kept of a record; the whole is where it was, in its topic at its offset."""
    return kept_of([value], len(value), record_bytes)


def kept_of(parts: Iterable[bytes], size: int, record_bytes: int) -> KeptBytes:
    """What is kept of a record of so many bytes, which arrive in parts."""
    if size <= max(record_bytes, HEAD_BYTES):
        return KeptBytes(b"".join(parts), size)
    digest, head = hashlib.sha256(), b""
    for part in parts:
        digest.update(part)
        head += part[: HEAD_BYTES - len(head)]
    return KeptBytes(head, size, digest.hexdigest())


def is_whole_of(value: bytes | None, sha256: str) -> bool:
    """Return whether these are the bytes of the record of which a head is kept."""
    return value is not None and hashlib.sha256(value).hexdigest() == sha256
