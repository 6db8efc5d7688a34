"""What a commit row holds of resyncs is read back."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from checkpoints.commit.epochs import Checkpoint, Plan, checkpoint_of, commit_row, plan_of, plan_row
from checkpoints.store import rows_of
from checkpoints.tables import TableName
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.state.agreement_state import AgreementState, SendRange
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.progress import Accounting, Piece, PieceAccount, ResyncMode, WorkKind
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.core.tracking.resync import CoveredPosition, PlannedPage, Resync, UnackedPage
from tests.checkpoints.written_state import START_S, agreement, replica, ruv
from tests.harness.examples import examples

EPOCHS = st.integers(0, 2**40)
TIMES_MS = st.integers(1, 2**41)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
KEYS = st.none() | TEXTS
POSITIONS = st.builds(
    CoveredPosition, EPOCHS, st.sampled_from([NOTHING_KNOWN, ruv(r1=2), ruv(r1=2, r2=9)])
)
RANGES = st.builds(KeyRange, TEXTS, KEYS, KEYS)


@st.composite
def accounts(draw: st.DrawFn) -> PieceAccount:
    """A table's work as far as it is sent."""
    total = draw(EPOCHS)
    piece = Piece(draw(TEXTS), draw(st.sampled_from(WorkKind)), total, draw(KEYS))
    return PieceAccount(piece, total, draw(EPOCHS), draw(st.booleans()))


@st.composite
def resyncs(draw: st.DrawFn) -> Resync:
    """A resync, marked or not, with pages on their way."""
    started_ms, accounting = draw(TIMES_MS), None
    if draw(st.booleans()):
        found = draw(st.lists(accounts(), max_size=3, unique_by=lambda one: one.piece.table))
        by_name = {one.piece.table: one for one in found}
        accounting = Accounting(draw(st.sampled_from(ResyncMode)), started_ms // 1000, by_name)
    unacked = st.builds(UnackedPage, EPOCHS, st.lists(accounts(), max_size=2).map(tuple))
    return Resync(
        draw(EPOCHS),
        draw(POSITIONS),
        started_ms,
        accounting,
        tuple(draw(st.lists(unacked, max_size=2))),
        draw(EPOCHS),
    )


@st.composite
def agreements(draw: st.DrawFn) -> AgreementState:
    """An agreement that is away, in a resync, or neither, with what was ordered."""
    statuses = [
        (AgreementStatus.CHANGE_TRACKING, AwayReason.SILENT.value),
        (AgreementStatus.CHANGE_TRACKING, AwayReason.PAUSED.value),
        (AgreementStatus.RESYNC, ""),
        (AgreementStatus.IN_SYNC, ""),
    ]
    status, detail = draw(st.sampled_from(statuses))
    return replace(
        agreement("to-a", 1, 3, ruv(r2=3)),
        status=status,
        detail=detail,
        published=draw(EPOCHS),
        behind_ms=draw(st.just(0) | TIMES_MS),
        resync=draw(st.none() | resyncs()),
        is_full=draw(st.booleans()),
        scans=draw(st.frozensets(TEXTS, max_size=2)),
    )


to_send = st.none() | st.builds(
    SendRange,
    EPOCHS,
    st.integers(1, 2**40),
    EPOCHS,
    st.just(ruv(r2=3)),
    POSITIONS,
    st.lists(RANGES, max_size=2).map(tuple),
)
realigns = st.lists(
    st.builds(RangeRealign, RANGES, st.integers(1, 65_533), EPOCHS), max_size=2
).map(tuple)


def state_of(
    one: AgreementState, sent: SendRange | None = None, ranges: tuple[RangeRealign, ...] = ()
) -> HubState:
    """A hub with this agreement."""
    return HubState(
        generation=2,
        replicageneration="655d1c80000000010000",
        batch=9,
        hub_epoch=4,
        ruvs={"default": ruv(r2=3)},
        purge_ruvs={"default": NOTHING_KNOWN},
        replicas={1: replica(1)},
        agreements={one.name: one},
        to_send={one.name: sent} if sent else {},
        ranges=ranges,
    )


def row_of(state: HubState) -> dict[str, Any]:
    """The commit row, as it comes out of the table."""
    checkpoint = Checkpoint(state, {"t": 7}, {"t": "id"}, 1, at_ms=START_S * 1000)
    row: dict[str, Any] = rows_of(TableName.EPOCHS, [commit_row(checkpoint, "hub")]).to_pylist()[0]
    return row


@examples()
@given(agreements(), to_send, realigns)
def test_a_resync_is_read_back_as_it_was_committed(
    one: AgreementState, sent: SendRange | None, ranges: tuple[RangeRealign, ...]
) -> None:
    """Positions that are held, what was sent of each table, what is ordered, what is realigned."""
    state = state_of(one, sent, ranges)

    found = checkpoint_of(row_of(state)).state

    assert found.agreements == state.agreements
    assert found.to_send == state.to_send
    assert found.ranges == ranges


pages = st.lists(
    st.builds(
        PlannedPage, TEXTS, st.lists(st.builds(KeyRange, TEXTS, KEYS, KEYS), max_size=3).map(tuple)
    ),
    max_size=2,
).map(tuple)


@given(pages)
def test_the_pages_of_a_plan_are_read_back(planned: tuple[PlannedPage, ...]) -> None:
    """A hub that finishes the batch drops them by that, and what was written of them."""
    assert plan_of(planned_row(planned), {}).pages == planned


def planned_row(planned: tuple[PlannedPage, ...]) -> dict[str, Any]:
    """The row of a plan with these pages, as it comes out of the table."""
    plan = Plan(10, START_S * 1000, 1, {"t": 7}, {"t": 9}, pages=planned)
    last = Checkpoint(state_of(agreement("to-a", 1, 3, ruv(r2=3))), {"t": 7}, {"t": "id"}, 1)
    row: dict[str, Any] = rows_of(TableName.EPOCHS, [plan_row(plan, last, "hub")]).to_pylist()[0]
    return row
