"""The pages of resyncs in a batch: rows as they stand behind what it judged, realigned."""

from dataclasses import replace

import pytest

from streaming.core.batch.after import resolve_refusals
from streaming.core.batch.batch_judge import BatchJudge
from streaming.core.batch.sending import (
    PAGE,
    EpochMark,
    LogEntry,
    RangeRefresh,
    Refresh,
    SendingView,
)
from streaming.core.conflict.judge import Cause, Judged, Verdict
from streaming.core.intake.intake import Intake
from streaming.core.intake.refused_rows import RefusedRows
from streaming.core.model.change import Op, RowKey
from streaming.core.model.refusal import Refusal, sent_last
from streaming.core.model.row import Arrived, Realign, RowState
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.model.statuses import AgreementStatus, AwayReason
from streaming.core.records.record import Hello, ReceivedRecord, Refused
from streaming.core.state.hub_state import HubState
from streaming.core.state.replica_state import ReplicaState
from streaming.core.tracking.progress import Piece, ResyncMode, WorkKind, begin
from streaming.core.tracking.ranges import KeyRange, RangeRealign, key_order
from streaming.core.tracking.resync import CoveredPosition, PageRows, Resync, ResyncPage
from tests.harness.builders import change, csn
from tests.reference.batch import BatchDecision, decide
from tests.reference.ranges import send_ranges
from tests.streaming.core.intake.speaker import RULES, Speaker, T, fresh_state

END, NOW = 5, 9
CONSUMER = 2
REPLICAS = {rid: ReplicaState(rid) for rid in (1, 2)}


def key(name: str) -> RowKey:
    """The row of this key."""
    return "t", f'{{"k":"{name}"}}'


def row(epoch: int, rid: int = 1, value: str | None = "v") -> RowState:
    """A row that this replica wrote at this hub epoch; no value: its tombstone."""
    image = None if value is None else f'{{"v":"{value}"}}'
    return RowState(rid, epoch, csn(epoch, rid), exists=image is not None, image=image)


def page(*parts: PageRows, started: int = 1) -> ResyncPage:
    """A page of a resync with these parts."""
    pieces = [Piece(one.part.table, one.kind, one.rows) for one in parts]
    return ResyncPage("a2", begin(ResyncMode.INCREMENTAL, started, pieces), parts)


def tracked(**epochs: int) -> PageRows:
    """A part of tracked rows, each with the hub epoch of its version."""
    keys = tuple((key(name)[1], epoch) for name, epoch in epochs.items())
    return PageRows(KeyRange("t"), WorkKind.PAGE, len(keys), keys)


def scanned(after: str | None = None, upto: str | None = None) -> PageRows:
    """A part that is a range."""
    first, last = (None if name is None else key(name)[1] for name in (after, upto))
    return PageRows(KeyRange("t", first, last), WorkKind.SCAN, 0)


def arrived(number: int, name: str, rid: int = 1, mre: int = 0) -> Arrived:
    """A change of a row with its facts."""
    return Arrived(change(number, name, rid=rid), "", "s", 1, 0, mre, mre)


def pages_of(entries: list[LogEntry]) -> list[tuple[str, str | None]]:
    """(key, image) of the refreshes of pages, in hub order."""
    found = [one for one in entries if isinstance(one, Refresh)]
    assert all((one.to, one.cause, one.behind) == (CONSUMER, PAGE, -1) for one in found)
    return [(one.key, one.row.image) for one in found]


# -- tracked rows ----------------------------------------------------------------------------


def test_a_page_sends_tracked_rows_as_they_stand_behind_what_was_judged() -> None:
    """What this batch or a live one wrote since is left out; who has no row is sent its delete."""
    rows = {
        key("kept"): row(3),
        key("deleted"): row(4, value=None),
        key("live"): row(6),
        key("judged"): row(3),
    }
    judge = BatchJudge(rows, NOW, RULES, REPLICAS)
    judge.judge([arrived(40, "judged", mre=3)])
    judge.take_entries()

    judge.send_tracked(page(tracked(kept=3, deleted=4, live=3, judged=3, never=0)), CONSUMER)

    assert pages_of(judge.take_entries()) == [
        (key("kept")[1], '{"v":"v"}'),
        (key("deleted")[1], None),
        (key("never")[1], None),
    ]


def test_a_page_realigns_its_rows_at_its_receiver_alone() -> None:
    """What is in flight there was written without them.

    See docs/traps.md, A page goes out over what is in flight.
    """
    judge = BatchJudge({key("k"): row(3)}, NOW, RULES, REPLICAS)

    judge.send_tracked(page(tracked(k=3)), CONSUMER)

    assert judge.changed == {key("k"): row(3)._replace(realign=(Realign(CONSUMER, NOW),))}


# -- ranges ----------------------------------------------------------------------------------


def test_a_range_holds_all_rows_that_stand_in_it_in_the_order_of_keys() -> None:
    """Those that this batch wrote included; a tombstone is a row that is not there."""
    rows = {
        key("c"): row(3),
        key("a"): row(4),
        key("b"): row(2, value=None),
        key("d"): row(3),
        ("u", key("b")[1]): row(3),
    }
    judge = BatchJudge(rows, NOW, RULES, REPLICAS)
    judge.judge([arrived(40, "bb")])
    judge.take_entries()

    send_ranges(judge, page(scanned("a", "c"), tracked(d=3)), CONSUMER, 0)

    (one,) = judge.take_entries()
    assert isinstance(one, RangeRefresh)
    assert (one.to, one.range) == (CONSUMER, KeyRange("t", key("a")[1], key("c")[1]))
    assert [name for name, _ in one.rows] == [key("bb")[1], key("c")[1]]
    assert [found.hub_epoch for _, found in one.rows] == [NOW, 3]


def test_a_range_leaves_out_the_rows_that_are_uncarried_at_its_consumer() -> None:
    """But for one that it has not seen as it stands; each key counts in its own range only."""
    rows = {key("a"): row(3), key("b"): row(4), key("c"): row(3)}
    judge = BatchJudge(rows, NOW, RULES, REPLICAS)
    listed = [key("a"), key("b"), key("bb"), key("d")]

    send_ranges(judge, page(scanned(None, "c")), CONSUMER, 3, listed)

    (one,) = judge.take_entries()
    assert isinstance(one, RangeRefresh)
    assert [name for name, _ in one.rows] == [key("b")[1], key("c")[1]]
    assert one.kept == (key("a")[1], key("bb")[1])


REALIGNED = RangeRealign(KeyRange("t", key("a")[1], key("m")[1]), CONSUMER, 7)


@pytest.mark.parametrize(
    ("one", "verdict", "cause"),
    [
        pytest.param(arrived(40, "b", CONSUMER, 6), Verdict.REJECTED, Cause.REALIGN, id="in it"),
        pytest.param(arrived(40, "m", CONSUMER, 6), Verdict.REJECTED, Cause.REALIGN, id="last key"),
        pytest.param(arrived(40, "b", CONSUMER, 7), Verdict.ACCEPTED, None, id="reflected"),
        pytest.param(arrived(40, "a", CONSUMER, 6), Verdict.ACCEPTED, None, id="before it"),
        pytest.param(arrived(40, "n", CONSUMER, 6), Verdict.ACCEPTED, None, id="behind it"),
        pytest.param(arrived(40, "b", 1, 6), Verdict.ACCEPTED, None, id="another replica"),
    ],
)
def test_a_range_realigns_every_key_in_it_until_it_is_reflected(
    one: Arrived, verdict: Verdict, cause: Cause | None
) -> None:
    """A key without a row as well: a row that is in flight there is a stranger, and deleted.

    See docs/traps.md, A range deletes what is in flight.
    """
    judge = BatchJudge({}, NOW, RULES, REPLICAS, ranges=[REALIGNED])

    judge.judge([one])

    entry = judge.take_entries()[0]
    assert isinstance(entry, Judged)
    assert (entry.verdict, entry.cause) == (verdict, cause)


def test_a_range_of_a_table_that_is_not_configured_blocks_nothing() -> None:
    """Its keys cannot be compared; nothing of it is judged."""
    gone = replace(REALIGNED, range=KeyRange("gone"))
    judge = BatchJudge({}, NOW, RULES, REPLICAS, ranges=[gone])

    judge.judge([Arrived(change(40)._replace(table="gone"), "", "s", 1, 0, 0, 0)])

    (entry,) = judge.take_entries()
    assert isinstance(entry, Judged)
    assert entry.verdict is Verdict.QUARANTINED


# -- refused rows ------------------------------------------------------------------------------


def refusal(name: str, hub_epoch: int = 6) -> Refusal:
    """A row that the consumer refused."""
    return Refusal(
        f"r2-{name}", CONSUMER, key(name), hub_epoch, csn(hub_epoch), "unique", "no", 3, 0
    )


def test_a_range_sends_the_refused_rows_in_it_again() -> None:
    """Its delete of a stranger may be what is refused, so an absent row counts like any other."""
    names = ("a", "b", "z")
    refusals = {CONSUMER: {key(name): refusal(name) for name in names}}
    refused = RefusedRows(refusals, at_ms=77)
    keys = KeyRange("t", key("a")[1], key("m")[1])

    refused.send_range(CONSUMER, keys, key_order(T), NOW)
    refused.send_range(1, keys, key_order(T), NOW)
    refused.send_range(CONSUMER, KeyRange("u"), key_order(T), NOW)

    after = refused.of(CONSUMER)
    assert [after[key(name)].sent_epoch for name in names] == [0, NOW, 0]
    assert after[key("b")].at_ms == 77


def test_a_row_that_was_refused_in_the_range_itself_is_not_sent_again_by_it() -> None:
    """A batch that is cut short takes the refusal before it plans the next range."""
    refused = RefusedRows({CONSUMER: {key("b"): refusal("b", NOW)}})

    refused.send_range(CONSUMER, KeyRange("t"), key_order(T), NOW)

    assert refused.of(CONSUMER)[key("b")].sent_epoch == 0


def test_a_joined_range_says_nothing_of_when_a_row_was_sent() -> None:
    """Its epoch is that of its last page; the row may have been refused in an earlier one.

    See docs/traps.md, A joined range hides a refusal.
    """
    of_range = Realign(CONSUMER, 8, is_of_range=True)
    ranged, refreshed = (
        row(3)._replace(realign=(one,)) for one in (of_range, Realign(CONSUMER, 8))
    )
    later = arrived(40, "b", CONSUMER, 8)._replace(offset=4)

    assert refusal("b").hides(ranged, later)
    assert not refusal("b").hides(refreshed, later)
    assert sent_last(ranged, CONSUMER) == 3
    assert sent_last(refreshed, CONSUMER) == 8


def test_the_pages_of_a_batch_settle_what_was_refused() -> None:
    """A tracked row by its refresh, a row of a range by the range."""
    state = replace(
        fresh_state(NOW - 1),
        refusals={CONSUMER: {key(name): refusal(name) for name in ("paged", "ranged", "other")}},
    )
    intake = Intake(state, RULES)
    judge = BatchJudge({key("paged"): row(3)}, NOW, RULES, REPLICAS)
    sent = [page(tracked(paged=3), scanned("q", "s"))]
    judge.send_tracked(sent[0], CONSUMER)

    resolve_refusals(intake, judge.changed, lambda _: judge.changed, sent, NOW)

    after = intake.refused.of(CONSUMER)
    assert {name: one.sent_epoch for (_, name), one in after.items()} == {
        key("paged")[1]: NOW,
        key("ranged")[1]: NOW,
        key("other")[1]: 0,
    }


# -- a whole batch -----------------------------------------------------------------------------


def in_resync() -> tuple[HubState, Speaker]:
    """A hub whose replica 2 is in a resync that has sent nothing; and its topic."""
    speaker = Speaker(CONSUMER)
    greeted = batch(fresh_state(END), *speaker.hello(covers=3)).state
    held = CoveredPosition(3, NOTHING_KNOWN)
    agreement = replace(
        greeted.agreements["a2"],
        status=AgreementStatus.RESYNC,
        scanned=greeted.hub_epoch,
        resync=Resync(END, held, 1),
    )
    return replace(greeted, agreements={**greeted.agreements, "a2": agreement}), speaker


def batch(
    state: HubState, *received: ReceivedRecord, pages: tuple[ResyncPage, ...] = ()
) -> BatchDecision:
    """A batch of these records, with these pages."""

    def marks(after: int, to: int) -> list[EpochMark]:
        return [EpochMark(n, 1, {}) for n in range(after + 1, min(to, state.hub_epoch) + 1)]

    view = SendingView(0, 0, {}, 10_000, nudged=False, marks=marks)
    rows = {key("k"): row(3)}
    return decide(state, received, rows, RULES, view, pages=pages)


def test_a_page_makes_a_hub_epoch_and_the_last_one_ends_the_resync() -> None:
    """Its commit closes the account, so a hub that dies knows what it has sent."""
    state, _ = in_resync()

    found = batch(state, pages=(page(tracked(k=3), started=1),))

    after = found.state.agreements["a2"]
    assert found.hub_epoch == state.hub_epoch + 1
    assert [type(one) for one in found.entries] == [Refresh]
    assert after.status is AgreementStatus.IN_SYNC
    assert after.resync is not None
    assert after.resync.last_page == found.hub_epoch
    assert found.state.to_send["a2"].position.covers == found.hub_epoch
    assert found.state.to_send["a2"].ranges == ()


def test_an_empty_page_that_is_the_last_one_is_sent() -> None:
    """It moves the covers that was held, so the batch is not left out."""
    state, _ = in_resync()

    found = batch(state, pages=(page(),))

    assert found.hub_epoch == state.hub_epoch + 1
    assert found.state.to_send["a2"].position.covers == found.hub_epoch


def test_the_ranges_of_a_batch_are_kept_as_realigns_of_its_receiver() -> None:
    """Pages that follow one another are one entry."""
    state, _ = in_resync()
    first = batch(state, pages=(page(scanned(None, "m")),))
    agreement = first.state.agreements["a2"]
    assert agreement.status is AgreementStatus.RESYNC
    assert agreement.resync is not None
    assert agreement.resync.accounting is not None
    second = batch(
        first.state, pages=(ResyncPage("a2", agreement.resync.accounting, (scanned("m"),)),)
    )

    here = KeyRange("t", None, key("m")[1])
    assert first.state.to_send["a2"].ranges == (here,)
    assert first.state.ranges == (RangeRealign(here, CONSUMER, first.hub_epoch),)
    assert second.state.ranges == (RangeRealign(KeyRange("t"), CONSUMER, second.hub_epoch),)


def test_a_table_of_which_a_range_was_sent_stays_to_be_scanned() -> None:
    """Its rows count as the hub's from then on, and the range may be lost with its session."""
    state, _ = in_resync()

    of_range = batch(state, pages=(page(scanned(None, "m")),)).state.agreements["a2"]
    of_rows = batch(state, pages=(page(tracked(k=3)),)).state.agreements["a2"]

    assert of_range.scans == {"t"}
    assert of_range.away(AwayReason.UNWRITABLE, 1).lacks_resync
    assert of_rows.scans == frozenset()


@pytest.mark.parametrize(
    ("reached", "end", "is_sent"),
    [
        pytest.param(0, END + 2, False, id="begins again"),
        pytest.param(END, END, False, id="goes on, with what it lacks first"),
        pytest.param(END + 1, END, True, id="goes on with this page"),
    ],
)
def test_a_page_is_sent_in_the_batch_of_a_hello_only_behind_all_else(
    reached: int, end: int, *, is_sent: bool
) -> None:
    """It was planned for the session that is over, and goes to the new one."""
    state, speaker = in_resync()
    assert state.hub_epoch == END + 1
    speaker.session = "2-2"
    hello = Hello(0, 3, 1, NOTHING_KNOWN, None, lost=False, reached=reached)

    found = batch(state, *speaker.send(hello), pages=(page(tracked(k=3)),))

    agreement = found.state.agreements["a2"]
    assert agreement.resync is not None
    assert (agreement.resync.end, agreement.session) == (end, "2-2")
    assert len(found.entries) == is_sent
    assert (agreement.resync.accounting is not None) is is_sent
    assert agreement.status is (AgreementStatus.IN_SYNC if is_sent else AgreementStatus.RESYNC)


def test_a_page_is_not_sent_to_who_stops_with_its_batch() -> None:
    """Its account stays as it was."""
    state, speaker = in_resync()
    ahead = speaker.applied(1, state.hub_epoch + 9)

    found = batch(state, *ahead, pages=(page(tracked(k=3)),))

    assert (found.entries, found.hub_epoch) == ((), state.hub_epoch)
    assert found.state.agreements["a2"].status is AgreementStatus.HUB_BEHIND


def test_what_is_refused_in_a_page_is_of_the_session() -> None:
    """The covers that is held says nothing of how far the consumer was sent."""
    state, speaker = in_resync()
    sent = batch(state, pages=(page(scanned(None, "m")),)).state
    refused = Refused(sent.hub_epoch, csn(3), *key("k"), "unique", "no")

    found = batch(sent, *speaker.send(refused))

    assert found.intake.quarantined == []
    assert list(found.state.refusals[CONSUMER]) == [key("k")]


def test_what_is_written_behind_a_lost_truncate_is_rejected_in_the_same_batch() -> None:
    """Its replica gets the table back; a row that the batch has changed already is no exception."""
    rows = {key("theirs"): row(3)}
    judge = BatchJudge(rows, NOW, RULES, REPLICAS)
    truncate = change(41, rid=2)._replace(op=Op.TRUNCATE, key="", after=None)

    judge.judge([arrived(40, "mine", rid=2)])
    judge.judge([Arrived(truncate, "", "s", 1, 1, 0, 0)])
    judge.judge([Arrived(change(42, "mine", rid=2), "", "s", 1, 2, 0, 0)])

    judged = [one for one in judge.take_entries() if isinstance(one, Judged)]
    assert [(one.verdict, one.cause) for one in judged] == [
        (Verdict.ACCEPTED, None),
        (Verdict.REJECTED, Cause.AUTHOR),
        (Verdict.REJECTED, Cause.REALIGN),
    ]


@pytest.mark.parametrize(
    ("sent_in", "verdicts"),
    [
        (NOW, [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.ACCEPTED]),
        (NOW - 1, [Verdict.ACCEPTED, Verdict.ACCEPTED, Verdict.REJECTED]),
    ],
)
def test_a_truncate_is_overtaken_by_what_an_earlier_batch_sent(
    sent_in: int, verdicts: list[Verdict]
) -> None:
    """The table that is sent again realigns what stands behind the record that overtook it."""
    back = RowState(2, 1, csn(1), realign=(Realign(2, sent_in, offset=3),))
    judge = BatchJudge({key("sent"): back}, NOW, RULES, REPLICAS)
    truncate = change(41, rid=2)._replace(op=Op.TRUNCATE, key="", after=None)

    judge.judge([Arrived(truncate, "", "s", 1, 1, 0, 0)])
    judge.judge([Arrived(change(42, "before", rid=2), "", "s", 2, 2, 0, 0)])
    judge.judge([Arrived(change(43, "behind", rid=2), "", "s", 4, 4, 0, 0)])

    judged = [one for one in judge.take_entries() if isinstance(one, Judged)]
    assert [one.verdict for one in judged] == verdicts
    assert judge.tables_after().rescans == ({(2, "t")} if sent_in < NOW else set())
