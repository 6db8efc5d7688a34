"""A row that a replica's database did not take (docs/protocol.md, Refused rows)."""

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.core.model.change import RowKey
from streaming.core.model.row import Arrived, RowState

COLUMN = "column"
"""The code of a refusal because the database lacks a column of the row."""

LONGEST_WAIT = 360
"""How many times the first wait the longest wait before the next attempt is."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that a replica refused, as of its last attempt.

    `id`: of its conflict. `hub_epoch`: of the update that held the item; of the row the replica has
    nothing that it was sent up to there. `csn`: the item's. `offset`: of the first attempt's record
    in the replica's topic; what stands behind that was written without the row. `sent_epoch`: the
    hub epoch at which the row was sent again since; 0: it was not. `at_ms`: the hub's clock at the
    batch that changed this last.
    """

    id: str
    rid: int
    row: RowKey
    hub_epoch: int
    csn: str
    code: str
    text: str
    offset: int
    time_ms: int
    attempts: int = 1
    sent_epoch: int = 0
    at_ms: int = 0

    @property
    def lacks_column(self) -> bool:
        """Return whether it was refused because the database lacks a column of the row."""
        return self.code == COLUMN

    def is_due(self, at_ms: int, first_ms: int) -> bool:
        """Return whether it is time to send the row again by itself.

        `first_ms`: how long after the first attempt; each attempt waits twice as long as the one
        before, LONGEST_WAIT times that at most. A row that lacked its column waits no longer than
        the first: that the column is there now, its replica has said.
        """
        waits = 1 if self.lacks_column else min(2 ** min(self.attempts - 1, 30), LONGEST_WAIT)
        wait_ms = first_ms * waits
        return not self.sent_epoch and at_ms >= self.at_ms + wait_ms

    def hides(self, row: RowState, arrived: Arrived) -> bool:
        """Return whether the replica lacked this row state when it made the change.

        What it reflects says nothing of a row that it refused, until it reflects a refresh of it
        that was sent later.
        """
        return row.hub_epoch <= self.hub_epoch and self.leaves(row, arrived)

    def leaves(self, row: RowState, arrived: Arrived) -> bool:
        """Return whether the replica had what it refused to replace when it made the change.

        So it is until the replica wrote the row, or reflects what it was sent of it later.
        """
        if self.offset >= arrived.offset:
            return False
        if row.hub_epoch > self.hub_epoch and row.author == self.rid:
            return False
        return not any(
            self.hub_epoch < epoch <= arrived.mre
            for epoch in (row.hub_epoch, *_refreshes(row, self.rid))
        )


def sent_last(row: RowState, rid: int, *, is_seen: bool = True) -> int:
    """The last hub epoch at which this replica was sent the row, or wrote it.

    `is_seen`: its agreement has the table; otherwise it is sent refreshes only.
    """
    return max([row.hub_epoch if is_seen else 0, *_refreshes(row, rid)])


def _refreshes(row: RowState, rid: int) -> list[int]:
    """The hub epochs in which the row itself was sent to a replica, ranges apart."""
    return [one.hub_epoch for one in row.realign if one.rid == rid and not one.is_of_range]


Refusals = Mapping[int, Mapping[RowKey, Refusal]]
"""Rid -> the rows that its database refused and has not taken since."""

Lacking = Mapping[int, frozenset[str]]
"""Rid -> the columns, each as table.column, that its database lacks, as it said last."""
