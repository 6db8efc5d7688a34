"""What a row is behind an entry of the changelog: the log says all that the hub's memory holds."""

from streaming.core.model.row import Realign, RowState, realigned


def after_change(
    row: RowState, rid: int, hub_epoch: int, csn: str, *, exists: bool, image: str | None = None
) -> RowState:
    """Return the row behind an accepted change; what realigned it realigns it still."""
    return RowState(rid, hub_epoch, csn, exists, image, row.realign)


def after_refresh(row: RowState, sent: RowState, realign: Realign) -> RowState:
    """Return the row behind a refresh; `sent`: as it was sent, for a row that no entry wrote."""
    base = row if row.csn else sent._replace(realign=row.realign)
    return realigned(base, realign)
