"""Resyncs and ranges of keys, as a commit row holds them."""

from collections.abc import Mapping
from typing import Any

from checkpoints.times import ms_of, time_of
from streaming.core.model.ruv import parse_ruv
from streaming.core.tracking.progress import Accounting, Piece, PieceAccount, ResyncMode, WorkKind
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.core.tracking.resync import CoveredPosition, Resync, UnackedPage

Row = Mapping[str, Any]


def realign_row(realign: RangeRealign) -> dict[str, object]:
    """A range of keys that realigns them."""
    return {
        "rid": realign.rid,
        "hub_epoch": realign.hub_epoch,
        "offset": realign.offset,
        "rejects_transaction": realign.rejects_transaction,
        "keys": realign.range._asdict(),
    }


def realigned_range(row: Row) -> RangeRealign:
    """The realign of a range that a row holds."""
    columns = {name: value for name, value in row.items() if name != "keys"}
    return RangeRealign(KeyRange(**row["keys"]), **columns)


def resync_row(resync: Resync) -> dict[str, object]:
    """A resync."""
    accounting = resync.accounting
    return {
        "end": resync.end,
        "held_covers": resync.held.covers,
        "held_ruv": resync.held.ruv.text(),
        "started_at": time_of(resync.started_ms),
        "mode": accounting.mode.value if accounting else None,
        "pieces": [_piece_row(a) for a in accounting.accounts.values()] if accounting else [],
        "unacked": [
            {"hub_epoch": page.hub_epoch, "before": [_piece_row(a) for a in page.before]}
            for page in resync.unacked
        ],
        "last_page": resync.last_page,
    }


def resync_of(row: Row) -> Resync:
    """The resync that a row holds."""
    started_ms, accounting = ms_of(row["started_at"]), None
    if row["mode"]:
        accounts = [_piece(piece) for piece in row["pieces"]]
        by_table = {account.piece.table: account for account in accounts}
        accounting = Accounting(ResyncMode(row["mode"]), started_ms // 1000, by_table)
    return Resync(
        row["end"],
        CoveredPosition(row["held_covers"], parse_ruv(row["held_ruv"])),
        started_ms,
        accounting,
        tuple(
            UnackedPage(page["hub_epoch"], tuple(_piece(one) for one in page["before"]))
            for page in row["unacked"]
        ),
        row["last_page"],
    )


def _piece_row(account: PieceAccount) -> dict[str, object]:
    return {
        "table": account.piece.table,
        "kind": account.piece.kind.value,
        "after": account.piece.after,
        "total": account.total,
        "sent": account.sent,
        "closed": account.is_closed,
    }


def _piece(row: Row) -> PieceAccount:
    piece = Piece(row["table"], WorkKind(row["kind"]), row["total"], row["after"])
    return PieceAccount(piece, row["total"], row["sent"], row["closed"])
