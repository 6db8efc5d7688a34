"""A place in the log: an LSN as a number, and as PostgreSQL writes it ("16/B374D848")."""

import re

from streaming.core.model.errors import StateError

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})", re.ASCII)


def lsn_text(lsn: int) -> str:
    """An LSN as PostgreSQL writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    """The number of an LSN; StateError if the text is none."""
    found = _LSN.fullmatch(text)
    if found is None:
        raise StateError(f"{text!r} is no place in a log (LSN), such as 16/B374D848")
    return (int(found[1], 16) << 32) + int(found[2], 16)
