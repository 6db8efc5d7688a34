"""What the filters of an agreement make of changelog rows.

A change that leaves a row shown is sent with the columns that are sent, one that leaves it hidden
as its delete; and not at all if the row was surely hidden before. tests/reference/sending.py says
the same of one entry.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.model.change import HUB_RID, Op
from streaming.core.model.row_filter import RowFilter
from streaming.core.state.topology import Subscription
from streaming.stages.checked import Bools, bools, ints
from streaming.stages.log import CHANGE

FILTER_COLUMNS = ("op", "before", "image", "concurrent", "row_csn")
"""The columns of the changelog, besides those of who is sent a row, that a filter asks for."""

_Marks = Callable[[RowFilter, Sequence[str | None]], list[bool]]


def with_filter_columns(columns: Sequence[str], subscription: Subscription) -> list[str]:
    """Return these columns of the changelog, and those that the agreement's filters ask for."""
    more = FILTER_COLUMNS if subscription.rows else () if subscription.sends_deletes else ("op",)
    return [*columns, *(name for name in more if name not in columns)]


def with_shown_columns(rows: pa.Table, table: str, subscription: Subscription) -> pa.Table:
    """Return rows of a table, with their images, as an agreement sends them."""
    known = subscription.cuts.get(table)
    if known is None:
        return rows
    images = pa.array(known.all_shown(rows["image"].to_pylist()), pa.string())
    return rows.set_column(rows.schema.get_field_index("image"), "image", images)


def cut(log: pa.Table, subscription: Subscription) -> tuple[Bools, pa.Array]:
    """Mark the rows with an image in which columns are not sent; the images that are sent of them.

    What row filters hide has none.
    """
    there, found = bools(pc.is_valid(log["image"])), np.zeros(log.num_rows, dtype=np.bool_)
    images = dict[int, str | None]()
    for table, known in subscription.cuts.items():
        places = np.flatnonzero(there & bools(pc.equal(log["table"], table)))
        shown = known.all_shown(log["image"].take(pa.array(places)).to_pylist())
        images |= zip(places.tolist(), shown, strict=True)
        found[places] = True
    return found, pa.array([images[place] for place in sorted(images)], pa.string())


class LogImages:
    """Changelog rows whose images are asked each condition once, whoever has it.

    `log`: FILTER_COLUMNS, if an agreement has conditions, and those of who is sent a row.
    """

    def __init__(self, log: pa.Table) -> None:
        self._log = log
        self._hidden: dict[tuple[tuple[str, str], ...], Bools] = {}
        self._left_out: dict[tuple[tuple[str, str], ...], Bools] = {}

    def hidden(self, subscription: Subscription) -> Bools:
        """Mark the rows whose image the agreement does not show; they are sent as deletes."""
        conditions = _conditions(subscription)
        if conditions not in self._hidden:
            there = bools(pc.is_valid(self._log["image"]))
            self._hidden[conditions] = self._marked("image", there, subscription, _not_shown)
        return self._hidden[conditions]

    def deletes(self, subscription: Subscription) -> Bools:
        """Mark the rows that are a delete to the agreement's consumer."""
        ops = pa.array([Op.DELETE.value, Op.TRUNCATE.value], pa.string())
        gone = bools(pc.is_in(self._log["op"], ops))
        return gone | self.hidden(subscription) if subscription.rows else gone

    def left_out(self, subscription: Subscription) -> Bools:
        """Mark the changes that an agreement is not sent, for the row was and is hidden.

        The before-image of a change that is not concurrent is the row as it was. Nobody vouches for
        that of the hub's own changes, which put right what differs.
        """
        conditions = _conditions(subscription)
        if conditions not in self._left_out:
            self._left_out[conditions] = self._stays_hidden(subscription)
        return self._left_out[conditions]

    def _stays_hidden(self, subscription: Subscription) -> Bools:
        log, is_hidden = self._log, self.hidden(subscription)
        change = bools(pc.equal(log["kind"], CHANGE)) & (ints(log["rid"]) != HUB_RID)
        change &= ~bools(pc.fill_null(log["concurrent"], True))  # noqa: FBT003 - the value
        change &= is_hidden | bools(pc.equal(log["op"], Op.DELETE.value))
        insert = change & bools(pc.equal(log["op"], Op.INSERT.value))
        first = insert & bools(pc.is_null(log["row_csn"]))
        was_hidden = self._marked("before", change & ~insert, subscription, _surely_hidden)
        return np.asarray(first | was_hidden, dtype=np.bool_)

    def _marked(
        self, column: str, among: Bools, subscription: Subscription, marks: _Marks
    ) -> Bools:
        """Mark, among these rows, those of filtered tables that the filter marks by an image."""
        log = self._log
        found = np.zeros(log.num_rows, dtype=np.bool_)
        for table, row_filter in subscription.rows.items():
            places = np.flatnonzero(among & bools(pc.equal(log["table"], table)))
            if len(places):
                found[places] = marks(row_filter, log[column].take(pa.array(places)).to_pylist())
        return found


def _conditions(subscription: Subscription) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((table, str(one)) for table, one in subscription.rows.items()))


def _not_shown(row_filter: RowFilter, images: Sequence[str | None]) -> list[bool]:
    return [not is_shown for is_shown in row_filter.shown(images)]


def _surely_hidden(row_filter: RowFilter, images: Sequence[str | None]) -> list[bool]:
    return row_filter.surely_hidden(images)
