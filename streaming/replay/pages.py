"""The pages of resyncs as they were sent: which keys a page holds is taken from the record.

A page is no verdict. What it does to verdicts is that it realigns its rows, and that is decided
again.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from checkpoints.reading.resync_rows import SORTED
from streaming.core.batch.sending import PAGE
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.model.truncation import Truncations
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.progress import Accounting, PieceAccount, ResyncMode
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import PageRows, PlannedPage, ResyncPage
from streaming.hub.resync.pages import Resyncs
from streaming.stages.log import REFRESH
from streaming.stages.standing import RowsAt

NOTHING_TO_SEND = Accounting(ResyncMode.INCREMENTAL, 0, {})

ANY_EPOCH = 1 << 62
"""The hub epoch in which a key that was sent counts as tracked: it is sent again, however it is."""


@dataclass(slots=True)
class RecordedPages(Resyncs):
    """Pages from the record; `log`: the changelog of a batch, `after`: the agreements behind it."""

    log: pa.Table = field(default_factory=lambda: pa.table({}))
    after: Mapping[str, AgreementState] = field(default_factory=dict)

    def note(self, rows: Iterable[str]) -> None:
        """Nothing is prepared here that could become stale."""

    def resolved(self, page: PlannedPage, state: HubState) -> ResyncPage:
        """A planned page with the rows that were sent of it; none if its resync had ended."""
        agreement = state.agreements[page.agreement]
        known, sent = _accounting(agreement), _accounting(self.after[page.agreement])
        if sent is None:
            return ResyncPage(page.agreement, known or NOTHING_TO_SEND, ())
        before, keys = known or _unsent(sent), self._keys(agreement.consumer)
        parts = []
        for part in page.parts:
            kind = before.accounts[part.table].piece.kind
            rows = sent.accounts[part.table].sent - before.accounts[part.table].sent
            tracked = () if kind.is_whole else tuple((k, ANY_EPOCH) for k in keys[part.table])
            parts.append(PageRows(part, kind, rows, tracked))
        return ResyncPage(page.agreement, before, tuple(parts))

    def tracked_rows(
        self,
        pages: Iterable[ResyncPage],  # noqa: ARG002
        standing: RowsAt,  # noqa: ARG002
    ) -> dict[RowKey, RowState]:
        """None: they are looked up with the other rows of the batch."""
        return {}

    def range_rows(
        self,
        page: ResyncPage,
        now: Callable[[Collection[RowKey]], Mapping[RowKey, RowState]],  # noqa: ARG002
        truncations: Truncations,  # noqa: ARG002
    ) -> Iterator[tuple[KeyRange, pa.Table]]:
        """The ranges of a page; their rows were published, and stand in no log."""
        for one in page.parts:
            if one.kind.is_whole:
                yield one.part, SORTED.empty_table()

    def _keys(self, consumer: int) -> Mapping[str, list[str]]:
        """Table -> the keys that a page sent to this consumer, in hub order."""
        sent = pc.and_(pc.equal(self.log["kind"], REFRESH), pc.equal(self.log["cause"], PAGE))
        here = self.log.filter(pc.and_(sent, pc.equal(self.log["to"], consumer)))
        found = defaultdict[str, list[str]](list)
        for table, key in zip(here["table"].to_pylist(), here["key"].to_pylist(), strict=True):
            found[table].append(key)
        return found


def _accounting(agreement: AgreementState) -> Accounting | None:
    return agreement.resync.accounting if agreement.resync else None


def _unsent(accounting: Accounting) -> Accounting:
    """The accounting before its first page."""
    accounts = {
        name: PieceAccount(one.piece._replace(after=None), one.total, 0, is_closed=False)
        for name, one in accounting.accounts.items()
    }
    return replace(accounting, accounts=accounts)
