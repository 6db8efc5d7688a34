"""A CSN identifies one change: 20 lower-case hex digits whose text order is their order."""

import re
from dataclasses import dataclass, replace
from typing import NewType

from streaming.core.model.errors import CsnError

Csn = NewType("Csn", str)
"""time 8 (seconds) · sequence 4 · rid 4 · subsequence 4, hex, lower case (389: slapd/csn.c)."""

CSN_PATTERN = "^[0-9a-f]{20}$"
MAX_SEQUENCE = 0xFFFF
MAX_TIME_S = 0xFFFF_FFFF
"""The year 2106: a clock that is beyond it is wrong, and no CSN can name its time."""
MAX_SKEW_S = 86_400
"""A CSN more than a day ahead of the clock is refused (389: CSN_MAX_TIME_ADJUST)."""

MAX_STEP_S = 60
"""How far two successive CSNs of a generator may be apart whose clock is behind it.

It goes on by sequence then, which takes a second with every 65,536 changes; so many changes in a
row may be lost or in quarantine.
"""

_CSN = re.compile(CSN_PATTERN)


@dataclass(frozen=True, slots=True, order=True)
class CsnParts:
    """The four fields of a CSN, in the order in which they compare."""

    time_s: int
    sequence: int
    rid: int
    subsequence: int


def parse(text: str) -> CsnParts:
    """Split a CSN into its fields; CsnError when the text is not one."""
    if not _CSN.fullmatch(text):
        raise CsnError(f"{text!r} is not a CSN: it must be 20 lower-case hex digits")
    time_s, sequence, rid, subsequence = text[:8], text[8:12], text[12:16], text[16:]
    return CsnParts(int(time_s, 16), int(sequence, 16), int(rid, 16), int(subsequence, 16))


def format_csn(parts: CsnParts) -> Csn:
    """Write the fields as the 20 digits; CsnError when one does not fit."""
    fits = 0 <= parts.time_s < 1 << 32 and all(
        0 <= field <= MAX_SEQUENCE for field in (parts.sequence, parts.rid, parts.subsequence)
    )
    if not fits:
        raise CsnError(f"{parts} does not fit a CSN: 32 bits of time, 16 bits for each other field")
    return Csn(f"{parts.time_s:08x}{parts.sequence:04x}{parts.rid:04x}{parts.subsequence:04x}")


def is_csn(text: str) -> bool:
    """Return whether the text is a CSN."""
    return _CSN.fullmatch(text) is not None


def named_csn(text: str) -> Csn | None:
    """The CSN that a person names, who may write it in upper case; None: the text is none.

    In a record an upper-case CSN is refused: text order is CSN order only for the one form.
    """
    lower = text.lower()
    return Csn(lower) if text.isascii() and is_csn(lower) else None


def is_csn_of(text: str, rid: int) -> bool:
    """Return whether the text is a CSN of this replica."""
    return is_csn(text) and rid_of(text) == rid


def rid_of(csn: str) -> int:
    """The replica that made the change."""
    return int(csn[12:16], 16)


def time_of(csn: str) -> int:
    """The CSN's time in seconds since 1970, which may be ahead of every clock."""
    return int(csn[:8], 16)


def is_skewed(csn: str, largest: str, clock_ms: int, max_skew_s: int) -> bool:
    """Return whether a CSN is too far ahead of its clock and does not go on behind `largest`.

    A generator never goes back, so one whose clock was wrong for a moment goes on by sequence from
    what it gave then. That is no new skew (docs/protocol.md, Clocks that were wrong).
    """
    time_s = time_of(csn)
    if time_s * 1_000 - clock_ms <= max_skew_s * 1_000:
        return False
    return not largest or time_s > time_of(largest) + MAX_STEP_S


@dataclass(frozen=True, slots=True)
class Generator:
    """A replica's source of CSNs: it never goes back and moves past every CSN that it sees.

    `time_s` and `sequence` are those of the last CSN that was given or seen. What it has passed is
    all that it keeps of another clock: behind it, it goes on by sequence until its own has caught
    up. So a clock that was wrong for a moment, its own or another's, is forgotten in time.
    """

    rid: int
    time_s: int = 0
    sequence: int = -1

    @classmethod
    def behind(cls, rid: int, csn: str | None) -> "Generator":
        """Return the generator of a replica that goes on behind this CSN, if there is one."""
        if not csn:
            return cls(rid)
        parts = parse(csn)
        return cls(rid, parts.time_s, parts.sequence)

    def next(self, clock_s: int) -> tuple[Csn, "Generator"]:
        """Give the next CSN at this clock, and the generator after it."""
        is_later = self.time_s < clock_s <= MAX_TIME_S
        time_s, sequence = (clock_s, 0) if is_later else (self.time_s, self.sequence + 1)
        if sequence > MAX_SEQUENCE:
            time_s, sequence = time_s + 1, 0
        return (
            format_csn(CsnParts(time_s, sequence, self.rid, 0)),
            replace(self, time_s=time_s, sequence=sequence),
        )

    def seen(self, csn: str, clock_s: int, max_skew_s: int = MAX_SKEW_S) -> "Generator":
        """Move past a CSN; CsnError when it is too far ahead of the clock to follow.

        A CSN that this generator has passed already is never refused. So a clock that was set back
        does not stop a replica from applying older changes.
        """
        parts = parse(csn)
        if (parts.time_s, parts.sequence) <= (self.time_s, self.sequence):
            return self
        ahead_s = parts.time_s - clock_s
        if ahead_s > max_skew_s:
            raise CsnError(
                f"CSN {csn} is {ahead_s} s ahead of this replica's clock (limit {max_skew_s} s):"
                " correct the clock of the replica that made it"
            )
        return replace(self, time_s=parts.time_s, sequence=parts.sequence)
