"""Batches of a few records as the stages see them, without Kafka and without Spark."""

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from checkpoints.tables import PENDING
from streaming.core.intake.intake import Intake
from streaming.core.model.change import RowKey
from streaming.core.model.row import RowState, with_image
from streaming.core.model.row_name import text_of
from streaming.core.records.record import ReceivedRecord, Record
from streaming.core.state.hub_state import HubState
from streaming.core.state.pending import Context
from streaming.core.state.topology import Topology
from streaming.core.tracking.resync import ResyncPage
from streaming.stages.checked import CheckedRecords, checked_records
from streaming.stages.intake import TakenRecords, take
from streaming.stages.judge import Verdicts, judge
from streaming.stages.standing import RowsAt
from streaming.stages.window import Window
from tests.harness.carried import facts_from
from tests.streaming.core.intake.speaker import RULES, Speaker, fresh_state

HUB_EPOCH = 5


def records_of(*records: Record, rid: int = 1) -> list[ReceivedRecord]:
    """A hello of the replica and these records behind it."""
    speaker = Speaker(rid)
    return [*speaker.hello(), *speaker.send(*records)]


def checked(*received: ReceivedRecord) -> CheckedRecords:
    """The records of a batch as the driver decides by them."""
    return checked_records(facts_from(received, RULES.tables), RULES.tables)


def nothing_evicted(_: Collection[Context]) -> pa.Table:
    """What table `pending` has where nothing was evicted to it."""
    return PENDING.empty_table()


def taken(
    *received: ReceivedRecord, topology: Topology = RULES, state: HubState | None = None
) -> tuple[TakenRecords, Intake]:
    """What intake makes of a batch of a hub in this state; None: it has had none before."""
    intake = Intake(state or fresh_state(), topology)
    facts = checked_records(facts_from(received, topology.tables), topology.tables)
    return take(intake, facts, nothing_evicted), intake


def judged(
    received: list[ReceivedRecord],
    rows: Mapping[RowKey, RowState],
    taken_under: Topology = RULES,
    state: HubState | None = None,
    judged_under: Topology = RULES,
    pages: Sequence[ResyncPage] = (),
) -> Verdicts:
    """The verdicts of a batch at HUB_EPOCH over these rows, all of which the window holds.

    `pages`: of resyncs, which stand behind what is judged.
    """
    found, intake = taken(*received, topology=taken_under, state=state)
    intake.topology = judged_under
    window = Window()
    window.put({text_of(key): with_image(row, None) for key, row in rows.items()})

    def images(keys: Mapping[RowKey, RowState]) -> Mapping[RowKey, str | None]:
        return {key: rows[key].image for key in keys}

    def look_up(keys: Collection[RowKey]) -> Mapping[RowKey, RowState]:
        return {key: RowState() for key in keys}

    def fetch(places: pa.Table) -> pa.Table:
        raise AssertionError(places)  # the driver has every image

    def beside(_table: str, known: Collection[str]) -> list[RowState]:
        return [row for key, row in rows.items() if key[1] not in known]

    return judge(
        found.eligible,
        intake,
        HUB_EPOCH,
        RowsAt(window, look_up, images),
        beside,
        {},
        fetch,
        pages=pages,
    )
