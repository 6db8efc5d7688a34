"""A consumer that is away: what begins its resync, what a hello makes of it, what is ordered."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from streaming.core.intake import orders
from streaming.core.intake.intake import Intake
from streaming.core.intake.sessions import after_applied, after_hello, sent_again
from streaming.core.model.change import RowKey
from streaming.core.model.command import ResyncOrder
from streaming.core.model.refusal import Refusal
from streaming.core.model.ruv import Ruv
from streaming.core.model.statuses import AgreementStatus, AwayReason, Stop, StopReason
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.arrival import RETRY, Repair
from streaming.core.records.record import Applied, Heartbeat, Hello, Reason, ReceivedRecord, Record
from streaming.core.state.agreement_state import AgreementState
from streaming.core.state.hub_state import HubState
from streaming.core.tracking.progress import Accounting, Piece, ResyncMode, WorkKind, begin
from streaming.core.tracking.ranges import KeyRange, RangeRealign
from streaming.core.tracking.resync import CoveredPosition, Resync, UnackedPage
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import (
    RULES,
    Speaker,
    fresh_state,
    intake_of,
    numbers,
    reasons,
)

HUB_EPOCH = 20
NOW_MS = 77_000
K: RowKey = ("t", '{"k":"x"}')
ACKED = CoveredPosition(6, Ruv("g").with_csn(csn(2, 2)))
SILENT = AgreementState(
    "a1",
    1,
    AgreementStatus.CHANGE_TRACKING,
    AwayReason.SILENT.value,
    "1-0",
    sent_epoch=15,
    sent_covers=15,
    scanned=15,
    published=15,
    acked_covers=ACKED.covers,
    acked_ruv=ACKED.ruv,
)
PAUSED = replace(SILENT, detail=AwayReason.PAUSED.value)
IN_STEP = replace(SILENT, status=AgreementStatus.IN_SYNC, detail="")
SCAN = Piece("t", WorkKind.SCAN, 9)
BEGUN = begin(ResyncMode.INCREMENTAL, 1, [SCAN])
AFTER_A_PAGE = BEGUN.page_sent(SCAN.table, 4, K[1], is_last=False)
FINISHED = AFTER_A_PAGE.page_sent(SCAN.table, 5, None, is_last=True)


def resyncing() -> AgreementState:
    """An agreement in its resync, whose end is 10 and which has sent ranges in 11 and 13."""
    before = [tuple(one.accounts.values()) for one in (BEGUN, AFTER_A_PAGE)]
    unacked = (UnackedPage(11, before[0]), UnackedPage(13, before[1]))
    resync = Resync(10, ACKED, 1, FINISHED, unacked, last_page=13)
    return replace(IN_STEP, status=AgreementStatus.RESYNC, resync=resync)


def begun(agreement: AgreementState) -> Resync:
    """The resync that begins with this batch."""
    assert agreement.status_text == "resync"
    assert agreement.begins_resync
    assert agreement.resync is not None
    return agreement.resync


# -- a hello ---------------------------------------------------------------------------------


def greeted(
    agreement: AgreementState, covers: int, reached: int | None = None, *, lost: bool = False
) -> AgreementState:
    """The agreement after a hello."""
    hello = Hello(3, covers, 1, ruv_at(covers), None, lost=lost, reached=reached)
    received = ReceivedRecord(1, 5, 9_000, "1-1", hello)
    return after_hello(agreement, received, hello, NOW_MS)


def ruv_at(covers: int) -> Ruv:
    """What a consumer knows that covers this hub epoch."""
    return Ruv("g").with_csn(csn(covers, 2))


def test_a_hello_of_who_was_away_begins_a_resync_from_its_position() -> None:
    """Not from the estimate: nothing proves what came through while it was silent."""
    found = greeted(SILENT, covers=4)

    assert begun(found) == Resync(None, CoveredPosition(4, ruv_at(4)), NOW_MS)
    assert (found.session, found.acked_covers, found.sent_covers) == ("1-1", 4, 4)


def test_a_hello_of_who_is_paused_moves_its_position_and_no_more() -> None:
    """Only an operator brings it back."""
    found = greeted(PAUSED, covers=4)

    assert found.status_text == "change_tracking: paused"
    assert (found.session, found.acked_covers, found.acked_ruv) == ("1-1", 4, ruv_at(4))
    assert found.resync is None


@pytest.mark.parametrize("ordered", [{"is_full": True}, {"scans": frozenset("t")}])
def test_what_was_ordered_before_a_hello_begins_with_it(ordered: dict[str, object]) -> None:
    """Until then the hub does not know what the consumer has."""
    waiting = AgreementState("a1", 1, **ordered)  # type: ignore[arg-type]

    assert begun(greeted(waiting, covers=4)).held.covers == 4
    assert greeted(AgreementState("a1", 1), covers=4).status is AgreementStatus.CATCHING_UP


@pytest.mark.parametrize(
    ("reached", "accounting", "last_page"),
    [
        pytest.param(13, FINISHED, 13, id="all of it: its last page stays the last one"),
        pytest.param(12, AFTER_A_PAGE, 0, id="a range is missing: it is read anew"),
        pytest.param(10, BEGUN, 0, id="no page at all"),
    ],
)
def test_a_resync_goes_on_behind_what_its_consumer_reached(
    reached: int, accounting: Accounting, last_page: int
) -> None:
    """What it has is not sent twice; its position is held where its hello says that it is."""
    found = greeted(resyncing(), covers=6, reached=reached)

    assert found.status is AgreementStatus.RESYNC
    assert (found.scanned, found.sent_epoch, found.sent_covers) == (reached, 6, 6)
    held = CoveredPosition(6, ruv_at(6))
    assert found.resync == Resync(10, held, 1, accounting, (), last_page)


@pytest.mark.parametrize(
    ("reached", "lost"), [(9, False), (None, False), (13, True)], ids=["below", "old agent", "lost"]
)
def test_a_resync_begins_again_for_a_consumer_that_lacks_what_came_before(
    reached: int | None, *, lost: bool
) -> None:
    """Its pages count as not delivered."""
    found = greeted(resyncing(), covers=6, reached=reached, lost=lost)

    assert begun(found) == Resync(None, CoveredPosition(6, ruv_at(6)), NOW_MS)


@pytest.mark.parametrize("reached", [13, 15, None])
def test_a_hello_that_covers_the_last_page_ends_the_resync(reached: int | None) -> None:
    """Its `applied` may be lost with the session; an order to scan is carried out."""
    found = greeted(replace(resyncing(), is_full=True, scans=frozenset("t")), 13, reached)

    assert found.status is AgreementStatus.CATCHING_UP
    assert (found.resync, found.is_full, found.scans) == (None, False, frozenset())
    assert (found.scanned, found.acked_covers) == (13, 13)


def test_a_second_hello_in_the_batch_that_begins_a_resync_begins_it_anew() -> None:
    """It has no end yet, so nothing of it was sent."""
    first = greeted(SILENT, covers=4, reached=15)

    assert begun(greeted(first, covers=3, reached=15)).held.covers == 3


# -- an applied ------------------------------------------------------------------------------


def acknowledged(
    agreement: AgreementState, covers: int, reached: int | None = None
) -> AgreementState:
    """The agreement after an `applied`."""
    applied = Applied(4, covers, 1, ruv_at(covers), reached)
    return after_applied(agreement, ReceivedRecord(1, 6, 9_500, "1-0", applied), applied)


def test_an_applied_in_a_resync_makes_room_for_pages_and_holds_the_position() -> None:
    """Its covers lags; the batch that it applied last is what it has reached."""
    found = acknowledged(resyncing(), covers=6, reached=11)

    assert found.status is AgreementStatus.RESYNC
    assert found.resync is not None
    assert [page.hub_epoch for page in found.resync.unacked] == [13]
    assert (found.acked_covers, found.acked_ms) == (6, 9_500)


@pytest.mark.parametrize(("covers", "is_over"), [(12, False), (13, True), (14, True)])
def test_a_resync_is_over_when_its_last_page_is_acknowledged(covers: int, *, is_over: bool) -> None:
    """Until then a hello may take it back, and what was ordered stays ordered."""
    found = acknowledged(replace(resyncing(), is_full=True), covers)

    assert (found.resync is None, found.is_full) == (is_over, not is_over)


@pytest.mark.parametrize("reached", [14, 15])
def test_whoever_acknowledges_something_is_not_silent(reached: int) -> None:
    """The time-out begins anew with the next batch; a lagging covers does not count."""
    found = acknowledged(replace(resyncing(), behind_ms=500), 6, reached)

    assert found.behind_ms == 0


def test_a_late_applied_takes_nothing_back_and_counts_as_a_sign_of_life() -> None:
    """In a resync, the covers of an earlier batch may be above those that are held."""
    found = acknowledged(replace(IN_STEP, behind_ms=5), covers=5, reached=12)

    assert (found.acked_covers, found.acked_ruv, found.behind_ms) == (6, ACKED.ruv, 0)


def test_an_updates_topic_that_is_made_anew_begins_a_resync_again() -> None:
    """Its pages may have been in the topic that is gone; who is away is sent nothing anyhow."""
    assert begun(sent_again(resyncing(), NOW_MS)) == Resync(None, ACKED, NOW_MS)
    assert sent_again(SILENT, NOW_MS) is SILENT
    assert sent_again(PAUSED, NOW_MS) is PAUSED


# -- what brings it back ---------------------------------------------------------------------


def serving(agreement: AgreementState, refusals: Iterable[Refusal] = ()) -> HubState:
    """A hub whose replica 1 is in its session, with this agreement."""
    speaker = Speaker()
    first = intake_of(speaker.hello(), fresh_state(HUB_EPOCH))
    state = first.state
    return replace(
        state,
        ruvs={DEFAULT_DATASET: Ruv("g")},
        replicas=first.replica_states(),
        agreements={**state.agreements, "a1": replace(agreement, session="1-1")},
        refusals={1: {one.row: one for one in refusals}},
    )


def heard(agreement: AgreementState, *received: ReceivedRecord) -> Intake:
    """The intake of a batch at NOW_MS in which replica 1 says this."""
    intake = Intake(serving(agreement), RULES, at_ms=NOW_MS)
    for record in received:
        intake.take(record)
    return intake


def speaking() -> Speaker:
    """Replica 1 behind its hello."""
    speaker = Speaker()
    speaker.hello()
    return speaker


@pytest.mark.parametrize(
    "record",
    [Heartbeat(4), change(10), Applied(4, 6, 1, ACKED.ruv, 6)],
    ids=["heartbeat", "change", "applied"],
)
def test_the_next_record_of_a_replica_brings_its_consumer_back(
    record: Record,
) -> None:
    """From the position that it acknowledged last; no hello is needed."""
    intake = heard(SILENT, *speaking().send(record))

    assert begun(intake.agreements["a1"]) == Resync(None, ACKED, NOW_MS)
    assert intake.agreements["a2"] == intake.state.agreements["a2"]


def test_a_run_of_plain_changes_brings_it_back_too() -> None:
    """The columns take them at once."""
    intake = heard(SILENT)

    intake.take_run((DEFAULT_DATASET, 1), csn(10), csn(12), None, NOW_MS, 3)

    assert begun(intake.agreements["a1"]).held == ACKED


def test_a_record_of_an_old_session_brings_nobody_back() -> None:
    """Another agent runs under its name, or did."""
    intake = heard(SILENT, speaking().quote(Heartbeat(4), session="1-0"))

    assert intake.agreements["a1"].status_text == "change_tracking: silent"
    assert reasons(intake) == [Reason.SESSION]


def test_who_is_paused_is_read_and_not_brought_back() -> None:
    """What it writes is judged like any other's."""
    intake = heard(PAUSED, *speaking().send(Heartbeat(4), change(10)))

    assert intake.agreements["a1"].status_text == "change_tracking: paused"
    assert numbers(intake) == [10]


def test_who_was_unwritable_is_brought_back_when_its_topic_may_be_written() -> None:
    """At once, from what it acknowledged; by nothing that it says itself before its time."""
    unwritable = replace(SILENT, detail=AwayReason.UNWRITABLE.value, away_ms=NOW_MS)
    intake = heard(unwritable, *speaking().send(Heartbeat(4)))
    assert intake.agreements["a1"].status_text == "change_tracking: unwritable"

    orders.note_writable(intake, "a1")

    assert begun(intake.agreements["a1"]) == Resync(None, ACKED, NOW_MS)


@pytest.mark.parametrize("agreement", [PAUSED, IN_STEP, SILENT], ids=lambda one: one.status_text)
def test_a_topic_that_may_be_written_again_brings_nobody_else_back(
    agreement: AgreementState,
) -> None:
    """An operator may have paused the consumer, or a resync may have begun before."""
    intake = heard(agreement)
    before = dict(intake.agreements)

    orders.note_writable(intake, "a1")
    orders.note_writable(intake, "no such agreement")

    assert intake.agreements == before


def test_a_replica_that_stops_with_its_next_record_stays_stopped() -> None:
    """A resync of it would be sent to an agent that ends."""
    intake = heard(SILENT, *speaking().applied(1, HUB_EPOCH + 1))

    assert intake.agreements["a1"].status is AgreementStatus.HUB_BEHIND
    assert intake.agreements["a1"].resync is None


# -- an operator -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "agreement",
    [PAUSED, SILENT, IN_STEP, resyncing(), IN_STEP.refused("t")],
    ids=["paused", "silent", "in sync", "in a resync", "refused"],
)
def test_an_operator_begins_a_resync_whatever_the_agreement_does(
    agreement: AgreementState,
) -> None:
    """From the acked position: what is on its way may not arrive."""
    intake = heard(agreement)

    orders.resync(intake, ResyncOrder("a1"))

    assert begun(intake.agreements["a1"]) == Resync(None, ACKED, NOW_MS)
    assert intake.counts == {"resyncs": 1}


def test_what_orders_ask_for_adds_up() -> None:
    """A second order takes nothing of the first back; tables of other agreements are left out."""
    intake = heard(IN_STEP)

    orders.resync(intake, ResyncOrder("a1", tables=frozenset(("t", "other"))))
    orders.resync(intake, ResyncOrder("a1", is_full=True))
    orders.resync(intake, ResyncOrder("a1"))

    agreement = intake.agreements["a1"]
    assert (agreement.is_full, agreement.scans) == (True, frozenset("t"))


@pytest.mark.parametrize(
    "before",
    [
        AgreementState("a1", 1, published=HUB_EPOCH),
        AgreementState("a1", 1, published=HUB_EPOCH).away(AwayReason.PAUSED, 9_000),
    ],
    ids=["waiting", "paused"],
)
def test_a_resync_of_who_said_no_hello_begins_with_it(before: AgreementState) -> None:
    """An order that a pause outlived would never be carried out."""
    state = fresh_state(HUB_EPOCH)
    state = replace(state, agreements={**state.agreements, "a1": before})
    intake = Intake(state, RULES, at_ms=NOW_MS)

    orders.resync(intake, ResyncOrder("a1", is_full=True))
    waiting = intake.agreements["a1"]
    for record in Speaker().hello(covers=4):
        intake.take(record)

    assert (waiting.status, waiting.resync) == (AgreementStatus.WAITING_FOR_HELLO, None)
    assert begun(intake.agreements["a1"]).held.covers == 4


@pytest.mark.parametrize(
    "stopped",
    [
        IN_STEP.stopped(Stop(StopReason.HUB_BEHIND)),
        IN_STEP.retired(),
        IN_STEP.retired_for_good(),
    ],
)
def test_an_agreement_that_is_stopped_is_neither_resynced_nor_paused(
    stopped: AgreementState,
) -> None:
    """Another remedy is needed; a command may come twice, or name what was removed."""
    intake = heard(stopped)

    orders.resync(intake, ResyncOrder("a1", is_full=True))
    orders.resync(intake, ResyncOrder("nobody"))
    orders.pause(intake, "a1")
    orders.pause(intake, "nobody")

    assert intake.agreements == intake.state.agreements
    assert intake.counts == {"unknown_resyncs": 2, "unknown_pauses": 2}


def test_a_pause_ends_a_resync_and_keeps_what_was_ordered() -> None:
    """What it has sent is not proved; the next resync starts from the acked position."""
    intake = heard(replace(resyncing(), is_full=True, behind_ms=5))

    orders.pause(intake, "a1")

    paused = intake.agreements["a1"]
    assert paused.status_text == "change_tracking: paused"
    assert (paused.resync, paused.behind_ms, paused.is_full) == (None, 0, True)
    assert (paused.acked_covers, intake.counts) == (6, {"pauses": 1})


REFUSAL = Refusal("r1-3", 1, K, 5, csn(5, 2), "unique", "no", 3, 0)


def test_a_resync_sends_what_its_consumer_refused() -> None:
    """In the batch that begins it: the row may be older than all that the consumer lacks."""
    ordered = Intake(serving(SILENT, [REFUSAL]), RULES, at_ms=NOW_MS)
    spoke = Intake(serving(SILENT, [REFUSAL]), RULES, at_ms=NOW_MS)
    new_session = Intake(serving(SILENT, [REFUSAL]), RULES, at_ms=NOW_MS)
    speaker = speaking()

    orders.resync(ordered, ResyncOrder("a1"))
    for record in speaker.send(Heartbeat(4)):
        spoke.take(record)
    for record in speaker.hello(covers=6):
        new_session.take(record)

    for intake in (ordered, spoke, new_session):
        assert intake.repairs == [Repair(1, K, 3, RETRY)]


@pytest.mark.parametrize(("reached", "is_open"), [(4, False), (13, True)])
def test_a_resync_that_goes_on_keeps_what_was_refused_in_it(reached: int, *, is_open: bool) -> None:
    """Up to what it reached the consumer is sent nothing again; otherwise the row comes anew."""
    at_12 = replace(REFUSAL, hub_epoch=12)
    intake = Intake(serving(resyncing(), [at_12]), RULES, at_ms=NOW_MS)
    speaker = speaking()

    hello = Hello(3, 6, 1, Ruv("g"), None, lost=False, reached=reached)
    speaker.session = "1-2"
    for record in speaker.send(hello):
        intake.take(record)

    assert (K in intake.refused.of(1)) is is_open
    assert intake.repairs == []


@pytest.mark.parametrize(
    ("reached", "reinit", "scans"),
    [(7, False, {"t"}), (8, False, set()), (7, True, set())],
    ids=["put back", "has it", "emptied"],
)
def test_a_hello_of_a_database_that_lacks_a_range_begins_a_scan(
    reached: int, scans: set[str], *, reinit: bool
) -> None:
    """A range is in no log, so sending goes on without it; an emptied database has no strangers."""
    of_table = [RangeRealign(KeyRange(name), 1, 8) for name in ("t", "hidden")]
    state = replace(serving(IN_STEP, []), ranges=(*of_table, RangeRealign(KeyRange("t"), 2, 9)))
    speaker = speaking()
    hello = Hello(3, 6, 1, Ruv("g"), None, lost=False, reached=reached, reinit=reinit)
    speaker.session = "1-2"

    found = intake_of(speaker.send(hello), state).agreements["a1"]

    assert found.scans == scans
    assert found.begins_resync is bool(scans)


def test_a_hello_that_reached_more_than_the_hub_has_stops_the_replica() -> None:
    """Its covers may be held far below: only what it applied last shows the older state."""
    speaker = speaking()
    hello = Hello(3, 6, 1, Ruv("g"), None, lost=False, reached=HUB_EPOCH + 1)
    speaker.session = "1-2"

    intake = heard(resyncing(), *speaker.send(hello))

    assert intake.agreements["a1"].status is AgreementStatus.HUB_BEHIND
