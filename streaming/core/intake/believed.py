"""Clocks that were wrong: which CSNs of a replica are believed, and which are skewed.

A CSN is believed that is not far ahead of its record's own time, or goes on behind a believed one
of its replica, or that an operator released (docs/protocol.md, Clocks that were wrong).
"""

from dataclasses import dataclass

from streaming.core.intake.duplicates import KnownCsns
from streaming.core.model.csn import is_skewed, rid_of, time_of
from streaming.core.records.record import Reason, ReceivedRecord


@dataclass(slots=True)
class BelievedCsns:
    """The largest believed CSN of each replica, in one batch.

    `known`: what is eligible, which is believed. `largest`: rid -> the largest one that this batch
    or an earlier one found, whatever became of its change.
    """

    known: KnownCsns
    largest: dict[int, str]
    max_skew_s: int

    def of(self, rid: int) -> str:
        """The largest CSN of a replica that is believed; empty: there is none."""
        return max(self.known.largest.get(rid, ""), self.largest.get(rid, ""))

    def left_of(self, rid: int) -> str:
        """The same if none as large is eligible or pending, which tell of it; otherwise empty."""
        announced = max(self.known.largest.get(rid, ""), self.known.open.lists.largest_of(rid))
        largest = self.largest.get(rid, "")
        return largest if largest > announced else ""

    def accept(self, csn: str) -> None:
        """Believe a CSN."""
        rid = rid_of(csn)
        self.largest[rid] = max(self.of(rid), csn)

    def check(self, received: ReceivedRecord, csn: str) -> tuple[Reason, str] | None:
        """Believe a CSN of a record, or say why it is skewed.

        It is compared with the record's own time, so that every run gives the same result.
        """
        believed = self.of(received.rid)
        if not is_skewed(csn, believed, received.time_ms, self.max_skew_s):
            self.accept(csn)
            return None
        ahead_ms, allowed_ms = time_of(csn) * 1_000 - received.time_ms, self.max_skew_s * 1_000
        follows = f"go on behind {believed}" if believed else "follow one that was believed"
        return Reason.SKEW, (
            f"field csn: it is {ahead_ms} ms ahead of its record, {allowed_ms} are allowed, and it"
            f" does not {follows}: correct the clock of its replica"
        )
