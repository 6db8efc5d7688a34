"""Judge a truncate: it is concurrent if it would be so on any row of the table, and then it loses.

No function lets it win: it would take rows that nobody has compared.
"""

from collections.abc import Iterable

from streaming.core.conflict.judge import Cause, ConflictKind, Judged, Verdict
from streaming.core.model.change import NOBODY
from streaming.core.model.row import Arrived, RowState, realigned


def met_by(rid: int, rows: Iterable[RowState]) -> RowState:
    """Return what stands for all rows of a table when this replica truncates it.

    It has the newest version that another replica wrote, and every realign of this replica: the
    truncate is concurrent with it if it is with any of the rows.
    """
    newest, realigns = RowState(), RowState()
    for row in rows:
        if row.author not in (rid, NOBODY) and _version(row) > _version(newest):
            newest = row
        for one in row.realign:
            if one.rid == rid:
                realigns = realigned(realigns, one)
    return newest._replace(image=None, realign=realigns.realign)


def summary(rows: Iterable[RowState]) -> list[RowState]:
    """Return what stands for many rows in `met_by`, whoever truncates them.

    Of each author the newest version that it wrote, and every realign.
    """
    newest, realigns = dict[int, RowState](), RowState()
    for row in rows:
        if row.author != NOBODY and _version(row) > _version(newest.get(row.author, RowState())):
            newest[row.author] = row
        for one in row.realign:
            realigns = realigned(realigns, one)
    return [*(row._replace(image=None, realign=()) for row in newest.values()), realigns]


def _version(row: RowState) -> tuple[int, str]:
    return row.hub_epoch, row.csn or ""


def judged_truncate(
    arrived: Arrived,
    met: RowState,
    hub_epoch: int,
    cause: Cause | None,
    realign_epoch: int,
    *,
    same_epoch_only: bool,
) -> Judged:
    """Return the verdict on a truncate; `met`: of `met_by`, `cause`: why it is concurrent."""
    if cause is None:
        after = RowState(arrived.change.rid, hub_epoch, arrived.change.csn)
        return Judged(arrived, Verdict.ACCEPTED, None, realign_epoch, met, after)
    kind = ConflictKind.TRUNCATE
    rejected = Verdict.REJECTED
    return Judged(arrived, rejected, cause, realign_epoch, met, met, kind, same_epoch_only)
