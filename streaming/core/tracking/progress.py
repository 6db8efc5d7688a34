"""A resync's work on each table, what its committed pages have sent of it, and when it may end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from streaming.core.model.errors import StateError


class ResyncMode(StrEnum):
    """What a resync brings."""

    INCREMENTAL = "incremental"
    """the rows that were tracked, and tables that must be scanned"""
    FULL = "full"
    """all rows of all tables"""


class WorkKind(StrEnum):
    """How a resync brings a table up to date, from the strongest to the weakest."""

    FULL_COPY = "full_copy"
    """every row, because the consumer gets everything anew"""
    SCAN = "scan"
    """every row in ranges of keys; rows that the hub has not are deleted"""
    PAGE = "page"
    """the rows that were tracked"""

    @property
    def is_whole(self) -> bool:
        """Return whether all rows are sent, so that no tracked row is needed."""
        return self is not WorkKind.PAGE


class Piece(NamedTuple):
    """One table's work in a resync; `after`: its last key that was sent, None at the beginning.

    `rows`: how many are expected, for a page the tracked ones.
    """

    table: str
    kind: WorkKind
    rows: int
    after: str | None = None


@dataclass(frozen=True, slots=True)
class PieceAccount:
    """A table's work as far as it is committed: `total` and `sent` in rows.

    `piece.after` is the last key that was sent. `is_closed`: its last page was sent.
    """

    piece: Piece
    total: int
    sent: int = 0
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Accounting:
    """What is committed of a resync; it changes in the commit of a page, and only there.

    `started_s`: when it began, in seconds since 1970. `accounts`: by table.
    """

    mode: ResyncMode
    started_s: int
    accounts: Mapping[str, PieceAccount]

    @property
    def total_rows(self) -> int:
        """Return how many rows are to be sent in all."""
        return sum(account.total for account in self.accounts.values())

    @property
    def sent_rows(self) -> int:
        """Return how many of them are sent and committed."""
        return sum(account.sent for account in self.accounts.values())

    @property
    def tables_left(self) -> int:
        """Return how many tables are not finished."""
        return sum(not account.is_closed for account in self.accounts.values())

    @property
    def is_finished(self) -> bool:
        """Return whether every table's last page is sent."""
        return self.tables_left == 0

    def page_sent(self, table: str, rows: int, after: str | None, *, is_last: bool) -> "Accounting":
        """Return the accounting after the commit of a page; StateError: its table is closed.

        after: the last key of the page. A table that has grown raises the total with what is sent,
        and closing one counts what was left out of its pages (rows that went live, for instance).
        """
        account = self.accounts[table]
        if account.is_closed:
            raise StateError(f"a page of table {table} came after its last: resync it again")
        sent = account.sent + rows
        total = max(sent, account.total)
        piece = account.piece if after is None else account.piece._replace(after=after)
        closed = PieceAccount(piece, total, total if is_last else sent, is_closed=is_last)
        return replace(self, accounts={**self.accounts, table: closed})


def begin(mode: ResyncMode, started_s: int, pieces: Iterable[Piece]) -> Accounting:
    """Return the accounting of a resync that has sent nothing."""
    return Accounting(mode, started_s, {p.table: PieceAccount(p, p.rows) for p in pieces})


def estimated_end(started_s: int, now_s: int, total: int, done: int) -> int | None:
    """Return when a resync that goes on like this ends, in whole seconds; None: it cannot be said.

    total, done: in the same unit. Nothing can be said at the beginning, and nothing at the end.
    """
    if total == 0 or done == 0 or done >= total:
        return None
    return now_s + (now_s - started_s) * (total - done) // done


WHOLE = 10_000
"""All of it, in hundredths of a percent."""


def progress(
    done: int, total: int, estimated_end_s: int | None, *, is_over: bool
) -> tuple[int | None, int | None]:
    """Return the total and the share that are shown of a resync; None: cannot be said yet.

    done, total: in the same unit. The share is in hundredths of a percent, rounded; WHOLE only when
    it is over. Neither is shown as long as no end can be estimated: what is counted first says
    little.
    """
    if is_over:
        return None, WHOLE
    if estimated_end_s is None:
        return None, None
    return total, min(WHOLE - 1, (WHOLE * done + total // 2) // total) if total else None
