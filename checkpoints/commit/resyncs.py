"""Resyncs, and what else is noted of sending, as a commit row holds them (column `sending`)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from checkpoints.times import ms_of, time_of
from streaming.core.model.ruv import parse_ruv
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.tracking.held import CoveredPosition
from streaming.core.tracking.progress import Accounting, PieceAccount
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.core.tracking.resync import Resync, UnackedPage
from streaming.core.tracking.work import Piece, ResyncMode, WorkKind

Row = Mapping[str, Any]


def sending_row(agreement: AgreementState, to_send: SendRange | None) -> dict[str, object]:
    """What is noted of sending to an agreement besides its positions."""
    position = to_send.position if to_send else None
    return {
        "agreement": agreement.name,
        "published": agreement.published,
        "behind_at": time_of(agreement.behind_ms) if agreement.behind_ms else None,
        "away_at": time_of(agreement.away_ms) if agreement.away_ms else None,
        "full": agreement.is_full,
        "scans": sorted(agreement.scans),
        "resync": _resync_row(agreement.resync) if agreement.resync else None,
        "send_covers": position.covers if position else None,
        "send_covers_ruv": position.ruv.text() if position else None,
        "send_ranges": [range_row(one) for one in to_send.ranges] if to_send else None,
    }


def with_sending(agreement: AgreementState, row: Row | None, hub_epoch: int) -> AgreementState:
    """The agreement with what is noted of sending to it; rows of earlier versions note nothing."""
    if row is None:
        return replace(agreement, published=hub_epoch)
    return replace(
        agreement,
        published=row["published"],
        behind_ms=ms_of(row["behind_at"]) if row["behind_at"] else 0,
        away_ms=ms_of(row["away_at"]) if row["away_at"] else 0,
        is_full=row["full"],
        scans=frozenset(row["scans"]),
        resync=_resync(row["resync"]) if row["resync"] else None,
    )


def position_sent(agreement: Row, row: Row | None) -> tuple[CoveredPosition, tuple[KeyRange, ...]]:
    """The position behind what a batch publishes, and the ranges of keys in it."""
    if row is None:
        return CoveredPosition(agreement["send_to"], parse_ruv(agreement["sent_ruv"])), ()
    position = CoveredPosition(row["send_covers"], parse_ruv(row["send_covers_ruv"]))
    return position, tuple(range_of(one) for one in row["send_ranges"])


def range_row(keys: KeyRange) -> dict[str, str | None]:
    """A range of keys."""
    return {"table": keys.table, "after": keys.after, "upto": keys.to}


def range_of(row: Row) -> KeyRange:
    """The range of keys that a row holds."""
    return KeyRange(row["table"], row["after"], row["upto"])


def realign_row(realign: RangeRealign) -> dict[str, object]:
    """A range of keys that realigns them."""
    return {
        "rid": realign.rid,
        "epoch": realign.epoch,
        "keys": range_row(realign.range),
        "offset": realign.offset,
        "whole": realign.rejects_transaction,
    }


def realign_of(row: Row) -> RangeRealign:
    """The realign of a range that a row holds."""
    return RangeRealign(
        range_of(row["keys"]), row["rid"], row["epoch"], row["offset"], row["whole"]
    )


def _resync_row(resync: Resync) -> dict[str, object]:
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


def _resync(row: Row) -> Resync:
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
