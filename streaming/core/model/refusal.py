"""A row that a replica's database did not take (docs/protocol.md, Refused rows)."""

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.core.model.change import RowKey
from streaming.core.model.row import Arrived, RowState


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that a replica refused, as of its last attempt.

    `id`: of its conflict. `hub_epoch`: of the update that held the item; of the row the replica has
    nothing that it was sent up to there. `csn`: the item's. `offset`: of the record in the
    replica's topic. `sent_epoch`: the hub epoch at which the row was sent again since; 0: it was
    not.
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

    def hides(self, row: RowState, arrived: Arrived) -> bool:
        """Return whether the replica lacked this row state when it made the change.

        What it reflects says nothing of a row that it refused, until it reflects a refresh of it
        that was sent later.
        """
        if self.offset >= arrived.offset or row.epoch > self.hub_epoch:
            return False
        refreshes = (realign.epoch for realign in row.realign if realign.rid == self.rid)
        return not any(self.hub_epoch < epoch <= arrived.mre for epoch in refreshes)


def sent_last(row: RowState, rid: int, *, is_seen: bool = True) -> int:
    """The last hub epoch at which this replica was sent the row, or wrote it.

    `is_seen`: its agreement has the table; otherwise it is sent refreshes only.
    """
    refreshes = (realign.epoch for realign in row.realign if realign.rid == rid)
    return max([row.epoch if is_seen else 0, *refreshes])


Refusals = Mapping[int, Mapping[RowKey, Refusal]]
"""Rid -> the rows that its database refused and has not taken since."""
