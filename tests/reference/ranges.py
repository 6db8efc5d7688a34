"""The measure of hub/batch/page_ranges.py: the rows that stand in the ranges of a page."""

from collections.abc import Collection

from streaming.core.batch.batch_judge import UNKNOWN_ROW, BatchJudge
from streaming.core.batch.left_out import is_left_out, kept_in
from streaming.core.batch.sending import RangeRefresh
from streaming.core.batch.vouching import is_vouched
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.tracking.ranges import KeyRange, key_order
from streaming.core.tracking.resync import PageRows, ResyncPage


def send_ranges(
    judge: BatchJudge,
    page: ResyncPage,
    consumer: int,
    covers: int,
    uncarried: Collection[RowKey] = (),
) -> None:
    """Enter the ranges of a page with all rows in them, as they stand now.

    `covers`: what the consumer had before the resync; `uncarried`: the rows that are listed so
    there.
    """
    replica = judge.replicas[consumer]
    left = {key for key in uncarried if is_left_out(_as_stored(judge, key), replica, covers)}
    whole = (one for one in page.parts if one.kind.is_whole)
    vouches = is_vouched(replica, covers)
    judge.entries.extend(
        _range(judge, one, consumer, left)._replace(is_vouched=vouches) for one in whole
    )


def _as_stored(judge: BatchJudge, key: RowKey) -> RowState:
    return judge.changed.get(key) or judge.truncated(key, judge.rows.get(key, UNKNOWN_ROW))


def _range(
    judge: BatchJudge, one: PageRows, consumer: int, left: Collection[RowKey]
) -> RangeRefresh:
    """The rows that stand in a range of keys, in the order of keys, but those left out."""
    table, after, upto = one.part
    order, keys = key_order(judge.topology.tables[table]), KeyRange(table, after, upto)
    kept = kept_in(keys, left, judge.topology.tables[table])
    names = {name for of, name in (*judge.rows, *judge.changed) if of == table} - {*kept}
    inside = sorted((name for name in names if keys.holds(name, order)), key=order)
    rows = [(name, judge.row((table, name))) for name in inside]
    there = tuple((name, row) for name, row in rows if row.exists)
    return RangeRefresh(consumer, keys, there, tuple(kept))
