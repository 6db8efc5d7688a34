"""The ranges of keys that a batch sends as a whole, with their rows as they stand behind it."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.batch.inputs import covers_before, listed_in
from streaming.core.batch.left_out import is_left_out, kept_in
from streaming.core.batch.vouching import is_vouched
from streaming.core.intake.intake import Intake
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.state.topology import Subscription, Topology
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import ResyncPage
from streaming.hub.batch.hub import Hub
from streaming.hub.batch.outcome import rows_after
from streaming.stages.filtered import with_shown_columns
from streaming.stages.judge import Verdicts
from streaming.stages.publish import RangeRows


class PageRanges(NamedTuple):
    """The ranges of one page, each with its rows (checkpoints/reading/resync_rows.py: SORTED)."""

    agreement: str
    consumer: int
    ranges: list[RangeRows]


def read_ranges(
    hub: Hub, intake: Intake, verdicts: Verdicts, pages: Sequence[ResyncPage]
) -> list[PageRanges]:
    """Read the ranges of the pages behind what the batch judged."""
    now = partial(_rows_now, hub, verdicts)
    found = list[PageRanges]()
    for page in pages:
        consumer = intake.agreements[page.agreement].consumer
        left = _left_out(hub, intake, verdicts, page)
        read = hub.resyncs.range_rows(page, now, verdicts.tables.truncations)
        sent_by = intake.topology.subscriptions[page.agreement]
        vouches = is_vouched(intake.replicas[consumer], covers_before(page, intake))
        ranges = [
            _shown(_without(left, intake, keys, rows), sent_by, intake.topology, vouches=vouches)
            for keys, rows in read
        ]
        found.append(PageRanges(page.agreement, consumer, ranges))
    return [one for one in found if one.ranges]


def _left_out(hub: Hub, intake: Intake, verdicts: Verdicts, page: ResyncPage) -> set[RowKey]:
    """The rows that the page leaves to its consumer, which holds an uncarried write there."""
    listed = listed_in(page, intake)
    if not listed:
        return set()
    replica = intake.replicas[intake.agreements[page.agreement].consumer]
    rows, covers = rows_after(hub, verdicts, listed), covers_before(page, intake)
    return {key for key in listed if is_left_out(rows.get(key, RowState()), replica, covers)}


def _shown(
    there: RangeRows, sent_by: Subscription, topology: Topology, *, vouches: bool
) -> RangeRows:
    """The rows of a range as the consumer is shown them; what else it has there is deleted.

    Unless it is sent no deletes.
    """
    known, rows, deletes = sent_by.rows.get(there.keys.table), there.rows, sent_by.sends_deletes
    if known is not None:
        rows = rows.filter(pa.array(known.shown(rows["image"].to_pylist()), pa.bool_()))
    hidden = there.rows.num_rows - rows.num_rows if vouches and deletes else 0
    cut = with_shown_columns(rows, there.keys.table, sent_by)
    columns = sent_by.columns_of(topology.defaulted[there.keys.table])
    return there._replace(rows=cut, hidden=hidden, deletes=deletes, columns=columns)


def _without(left: Collection[RowKey], intake: Intake, keys: KeyRange, rows: pa.Table) -> RangeRows:
    """A range without the rows that are left out, which it names."""
    kept = kept_in(keys, left, intake.topology.tables[keys.table])
    if kept:
        rows = rows.filter(pc.invert(pc.is_in(rows["key"], pa.array(kept, pa.string()))))
    return RangeRows(keys, rows, kept)


def _rows_now(hub: Hub, verdicts: Verdicts, keys: Collection[RowKey]) -> Mapping[RowKey, RowState]:
    """Rows as they stand behind what the batch judged, with images.

    The batch's own images are in its changes, for the changelog does not have them yet.
    """
    rows = rows_after(hub, verdicts, keys)
    csns = {row.csn: key for key, row in rows.items() if row.exists and row.csn}
    judged = {one.arrived.change.csn: one.after.image for one in verdicts.judged.values()}
    here = verdicts.changes.filter(
        pc.is_in(verdicts.changes["csn"], pa.array(list(csns), pa.string()))
    )
    own = dict(zip(here["csn"].to_pylist(), here["after"].to_pylist(), strict=True))
    images = {csns[csn]: image for csn, image in {**own, **judged}.items() if csn in csns}
    older = {k: row for k, row in rows.items() if row.exists and k not in images and not row.image}
    images |= hub.look_up_images(older) if older else {}
    return {key: row._replace(image=images.get(key, row.image)) for key, row in rows.items()}
