"""The ranges of keys that a batch sends as a whole, with their rows as they stand behind it."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from streaming.core.intake.intake import Intake
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState
from streaming.core.tracking.ranges import KeyRange
from streaming.core.tracking.resync import ResyncPage
from streaming.hub.hub import Hub
from streaming.hub.outcome import rows_after
from streaming.stages.judge import Verdicts


class PageRanges(NamedTuple):
    """The ranges of one page, each with its rows (checkpoints/resync_rows.py: SORTED)."""

    agreement: str
    consumer: int
    ranges: list[tuple[KeyRange, pa.Table]]


def read_ranges(
    hub: Hub, intake: Intake, verdicts: Verdicts, pages: Sequence[ResyncPage]
) -> list[PageRanges]:
    """Read the ranges of the pages behind what the batch judged."""
    now = partial(_rows_now, hub, verdicts)
    found = [
        PageRanges(
            page.agreement,
            intake.agreements[page.agreement].consumer,
            list(hub.resyncs.range_rows(page, now, verdicts.tables.truncations)),
        )
        for page in pages
    ]
    return [one for one in found if one.ranges]


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
