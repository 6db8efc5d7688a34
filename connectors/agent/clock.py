"""Names clocks that are wrong, by the CSNs that they made, before the hub refuses those."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from streaming.core.model.csn import MAX_SKEW_S, is_skewed, rid_of, time_of
from streaming.core.text.wording import as_count

AHEAD_S = 60
"""How far a CSN may be ahead of this machine's clock before it is worth a word."""


@dataclass(slots=True)
class ClockWatch:
    """Compares CSNs with this machine's clock; it says each finding once, until it is over.

    `skew_s`: how far a CSN may be ahead of its record's time before the hub refuses it. `said`: rid
    -> whether the CSNs of this replica were too far ahead when it last had something to say.
    """

    rid: int
    skew_s: int = MAX_SKEW_S
    said: dict[int, bool] = field(default_factory=dict)

    def look(self, csns: Iterable[str | None], clock_ms: int) -> list[str]:
        """Return what is new about the clocks that made these CSNs, a sentence for each."""
        largest: dict[int, int] = {}
        for csn in csns:
            if csn is not None:
                rid = rid_of(csn)
                largest[rid] = max(largest.get(rid, 0), time_of(csn))
        found = (self._finding(rid, time_s - clock_ms // 1000) for rid, time_s in largest.items())
        return [text for text in found if text is not None]

    def is_any_refused(self, csns: Iterable[str], largest: str, clock_ms: int) -> bool:
        """Return whether the hub refuses one of these own CSNs as skewed, if it comes now.

        Each is behind the one before, the first behind `largest`, which is in the topic.
        """
        for csn in csns:
            if is_skewed(csn, largest, clock_ms, self.skew_s):
                return True
            largest = max(largest, csn)
        return False

    def _finding(self, rid: int, ahead_s: int) -> str | None:
        if ahead_s <= AHEAD_S:
            self.said.pop(rid, None)
            return None
        is_refused = ahead_s > self.skew_s
        if self.said.get(rid) == is_refused:
            return None
        self.said[rid] = is_refused
        if rid == self.rid:
            return self._own(ahead_s, is_refused)
        return (
            f"the clock of replica {rid} is {_span(ahead_s)} ahead of this machine's:"
            " correct the one that is wrong"
        )

    def _own(self, ahead_s: int, is_refused: bool) -> str:  # noqa: FBT001
        refused = (
            "; the hub puts such changes into quarantine as `skew`, unless they go on behind one"
            " that it has accepted"
            if is_refused
            else ""
        )
        return (
            f"the changes of this replica are dated {_span(ahead_s)} ahead of this machine's clock,"
            f" because its clock or that of another replica was ahead: correct it{refused}"
        )


def renumbered_text(changes: int) -> str:
    """What is said of changes that got new CSNs because a clock was wrong."""
    return (
        f"{as_count(changes, 'change')} not published yet had a CSN too far ahead, because the"
        " clock of this machine was wrong at the time of writing: new CSNs are given by its present"
        " time, in the same order"
    )


def _span(seconds: int) -> str:
    """A span of time in its largest unit."""
    for unit_s, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= unit_s:
            return f"{seconds // unit_s} {unit}"
    return f"{seconds} s"
