"""What an agreement is sent: live, page by page, or an empty batch that moves its covers."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.batch.sending import (
    EpochMark,
    Refresh,
    SendingView,
    SendPlan,
    plan,
    wants_batch,
)
from streaming.core.conflict.judge import Cause, Judged, Verdict
from streaming.core.model.change import Op
from streaming.core.model.row import Arrived, RowState
from streaming.core.model.ruv import NOTHING_KNOWN, Element, Ruv
from streaming.core.model.statuses import AgreementStatus
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Item, ItemType
from streaming.core.state.agreement_state import AgreementState
from tests.harness.builders import change, csn, send_range
from tests.reference.sending import is_for, item

RUV = Ruv("g", {1: Element(csn(1, 1), csn(9, 1))})
INTERVAL_MS = 1_000
IN_SYNC, CATCHING_UP = AgreementStatus.IN_SYNC, AgreementStatus.CATCHING_UP
GREETED = AgreementState("a2", 2, CATCHING_UP, session="2-1")


def in_step(covers: int, sent_ms: int = 0) -> AgreementState:
    """An agreement that was sent everything up to `covers`."""
    return replace(
        GREETED,
        status=IN_SYNC,
        sent_epoch=covers,
        sent_covers=covers,
        scanned=covers,
        sent_ms=sent_ms,
    )


def view(
    previous: int, hub_epoch: int, clock_ms: int = 10_000, *, nudged: bool = False, entries: int = 1
) -> SendingView:
    """The hub behind a batch that went from one hub epoch to another; RUVs by their epoch."""

    def marks(after: int, to: int) -> list[EpochMark]:
        epochs = range(after + 1, min(to, hub_epoch) + 1)
        return [EpochMark(h, entries, {DEFAULT_DATASET: ruv_at(h)}) for h in epochs]

    return SendingView(
        previous,
        hub_epoch,
        {DEFAULT_DATASET: ruv_at(hub_epoch)},
        clock_ms,
        nudged,
        marks,
    )


def ruv_at(hub_epoch: int) -> Ruv:
    """The RUV after this hub epoch: one change an epoch."""
    return Ruv("g", {1: Element(csn(1, 1), csn(hub_epoch, 1))})


def planned(
    agreement: AgreementState, seen: SendingView, *, has_items: bool = True, page_items: int = 2
) -> SendPlan:
    """The agreement after the batch, and what it is sent."""
    return plan(
        agreement,
        seen,
        DEFAULT_DATASET,
        has_items=has_items,
        page_items=page_items,
        covers_interval_ms=INTERVAL_MS,
    )


def range_of(plan: SendPlan) -> tuple[int, int, int] | None:
    """(after, to, prev) of what is published; None: nothing."""
    one = plan.to_send
    return None if one is None else (one.after, one.to, one.prev)


def test_a_live_agreement_is_sent_the_batch_itself() -> None:
    """It costs nothing but the batch."""
    after, to_send, _ = planned(in_step(4), view(4, 5))

    assert to_send == send_range(4, 5, 4, in_step(4).sent_ruv, ruv_at(5))
    assert (after.sent_covers, after.sent_ruv, after.status) == (5, ruv_at(5), IN_SYNC)
    assert after.sent_ms == 10_000


@pytest.mark.parametrize(
    ("clock_ms", "nudged", "expected"),
    [
        pytest.param(1_999, False, None, id="just told"),
        pytest.param(2_000, False, (5, 5, 4), id="now and then"),
        pytest.param(1_001, True, (5, 5, 4), id="somebody waits"),
    ],
)
def test_covers_that_lags_is_moved_by_an_empty_batch(
    *, clock_ms: int, nudged: bool, expected: tuple[int, int, int] | None
) -> None:
    """Rate limited, unless somebody waits for it."""
    agreement = in_step(4, sent_ms=1_000)

    after = planned(agreement, view(4, 5, clock_ms, nudged=nudged), has_items=False)

    assert range_of(after) == expected
    assert after.agreement.scanned == 5
    assert after.agreement.sent_covers == (5 if expected else 4)


def test_what_was_scanned_is_not_read_again() -> None:
    """Epochs with nothing for it lie between what was sent and what is sent next."""
    caught_up = replace(in_step(4, sent_ms=9_999), status=CATCHING_UP)
    quiet = planned(caught_up, view(4, 5), has_items=False)

    after = planned(quiet.agreement, view(5, 6))

    assert quiet.agreement.status == IN_SYNC
    assert range_of(after) == (5, 6, 4)


def test_a_page_without_a_hub_epoch_to_send_leaves_the_agreement() -> None:
    """Otherwise a position would move over epochs that nobody has read."""
    without = replace(view(5, 6), marks=lambda *_: [])

    assert planned(in_step(2), without) == SendPlan(in_step(2))


@pytest.mark.parametrize(
    ("entries", "page_items", "to"),
    [
        pytest.param(1, 2, 2, id="as many whole epochs as fit"),
        pytest.param(5, 2, 1, id="one that is larger than a page goes alone"),
        pytest.param(1, 100, 6, id="all of it: live again"),
    ],
)
def test_a_page_ends_on_a_hub_epoch(entries: int, page_items: int, to: int) -> None:
    """The position behind it is that epoch's RUV."""
    after = planned(GREETED, view(5, 6, entries=entries), page_items=page_items)

    assert range_of(after) == (0, to, 0)
    assert after.agreement.sent_ruv == ruv_at(to)
    assert after.agreement.status == (IN_SYNC if to == 6 else CATCHING_UP)


@given(st.integers(0, 9), st.integers(1, 5), st.lists(st.integers(0, 2), max_size=8))
def test_pages_follow_one_another_without_gap_or_overlap(
    start: int, page_items: int, rises: list[int]
) -> None:
    """From any position, while the hub goes on, until it is live and beyond."""
    agreement = replace(GREETED, sent_epoch=start, sent_covers=start, scanned=start)
    hub_epoch, sent = 10, [start]
    for rise in [*rises, *[0] * 20]:
        previous, hub_epoch = hub_epoch, hub_epoch + rise
        agreement, to_send, _ = planned(agreement, view(previous, hub_epoch), page_items=page_items)
        if to_send is not None:
            assert to_send.after == to_send.prev == sent[-1]
            assert to_send.to > sent[-1] or to_send.to == hub_epoch
            sent.append(to_send.to)

    assert agreement.sent_covers == hub_epoch
    assert agreement.status == IN_SYNC


@pytest.mark.parametrize(
    "agreement",
    [AgreementState("a2", 2), replace(in_step(1), status=AgreementStatus.HUB_BEHIND)],
    ids=["no hello", "stopped"],
)
def test_who_said_no_hello_or_stopped_is_sent_nothing(agreement: AgreementState) -> None:
    """It needs no batch."""
    assert range_of(planned(agreement, view(4, 5))) is None
    assert not wants_batch(agreement, 5, 10_000, INTERVAL_MS, nudged=True)


def test_a_batch_forgets_what_the_last_one_sent() -> None:
    """Else a restart would publish it again."""
    sent = planned(in_step(4), view(4, 5))

    for clock_ms in (10_000, 99_000):
        assert range_of(planned(sent.agreement, view(5, 5, clock_ms), has_items=False)) is None


@pytest.mark.parametrize(
    ("agreement", "clock_ms", "nudged", "expected"),
    [
        pytest.param(in_step(5), 10_000, True, False, id="level"),
        pytest.param(replace(in_step(3), scanned=5), 500, False, False, id="not due yet"),
        pytest.param(replace(in_step(3, 9_500), scanned=5), 10_000, False, False, id="just sent"),
        pytest.param(replace(in_step(3), scanned=5), 500, True, True, id="somebody waits"),
        pytest.param(replace(in_step(3), scanned=5), 1_000, False, True, id="due"),
        pytest.param(in_step(3), 0, False, True, id="a page is left"),
    ],
)
def test_a_batch_without_input_is_made_only_where_there_is_something_to_say(
    *, agreement: AgreementState, clock_ms: int, nudged: bool, expected: bool
) -> None:
    """An idle hub writes nothing (docs/traps.md, Every acknowledgement is answered)."""
    assert wants_batch(agreement, 5, clock_ms, INTERVAL_MS, nudged=nudged) is expected


def judged(*, rid: int = 1, verdict: Verdict = Verdict.ACCEPTED) -> Judged:
    """A judged change with CSN 5 of its replica."""
    one = Arrived(change(5, rid=rid), "content", "1-1", 0, 0, 0, 0)
    row = RowState(rid, 3, csn(5, rid), exists=True, image='{"k":"k","v":"v"}')
    cause = Cause.AUTHOR if verdict is Verdict.REJECTED else None
    return Judged(one, verdict, cause, 0, RowState(), row)


REFRESH = Refresh(2, "t", '{"k":"k"}', RowState(1, 3, csn(5, 1), exists=True, image="{}"), "late")

MEANT = {
    "an accepted change of another": (judged(), NOTHING_KNOWN, True),
    "its own": (judged(rid=2), NOTHING_KNOWN, False),
    "a rejected one": (judged(verdict=Verdict.REJECTED), NOTHING_KNOWN, False),
    "one that it knows": (judged(), RUV, False),
    "a refresh for it": (REFRESH, NOTHING_KNOWN, True),
    "a refresh for it, of a winner that it knows": (REFRESH, RUV, True),
    "a refresh for another": (REFRESH._replace(to=1), NOTHING_KNOWN, False),
}


@pytest.mark.parametrize("case", MEANT.values(), ids=MEANT.keys())
def test_who_is_sent_what(case: tuple[Judged | Refresh, Ruv, bool]) -> None:
    """A RUV skips no refresh (docs/traps.md, A refresh carries an old CSN)."""
    entry, ruv, expected = case

    assert is_for(entry, 2, {"t"}, ruv) is expected


def test_a_table_outside_the_agreement_is_not_sent() -> None:
    """A refresh of it is: its replica wrote there."""
    assert not is_for(judged(), 2, {"other"}, NOTHING_KNOWN)
    assert is_for(REFRESH, 2, {"other"}, NOTHING_KNOWN)


def test_an_item_holds_the_row_as_it_stood_at_its_place() -> None:
    """A change merged over what it left out, a refresh as an upsert or a delete."""
    gone = REFRESH._replace(row=RowState(1, 3, csn(5, 1)))
    member = judged()
    member = member._replace(arrived=member.arrived._replace(change=change(5, tx=4)))

    assert item(judged()) == Item(
        ItemType.CHANGE, "t", '{"k":"k"}', Op.UPDATE, '{"k":"k","v":"v"}', csn(5, 1), 1
    )
    assert item(REFRESH) == Item(
        ItemType.REFRESH, "t", '{"k":"k"}', Op.UPDATE, "{}", csn(5, 1), 1, None, "late"
    )
    assert item(member) == replace(item(judged()), prim_csn=csn(4))
    assert item(gone).op == Op.DELETE
    assert item(gone).after is None
