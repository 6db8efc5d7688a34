"""A refusal is opened once for each row, counted, and closed when its replica has the row."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from streaming.core.intake import orders
from streaming.core.intake.intake import Intake
from streaming.core.intake.refused_rows import SENT_AGAIN_AT_ONCE, Ending, due
from streaming.core.model.change import RowKey
from streaming.core.model.column_filter import ColumnFilter
from streaming.core.model.refusal import Refusal
from streaming.core.model.row import Arrived, Realign, RowState
from streaming.core.model.statuses import AgreementStatus
from streaming.core.model.table import OnRefused
from streaming.core.records.arrival import RETRY, Repair
from streaming.core.records.record import PublishedSchema, Reason, Refused
from streaming.core.state.hub_state import HubState
from streaming.core.state.topology import Topology
from tests.harness.builders import change, csn
from tests.streaming.core.intake.speaker import RULES, Speaker, fresh_state

K: RowKey = ("t", '{"k":"x"}')
OTHER: RowKey = ("t", '{"k":"y"}')
SENT = 20


def refused(hub_epoch: int, row: RowKey = K, code: str = "unique") -> Refused:
    """A refusal of what this hub epoch held."""
    return Refused(hub_epoch, csn(hub_epoch, 2), *row, code, "no")


def serving(refusals: Mapping[RowKey, Refusal] | None = None) -> HubState:
    """A hub that has sent replica 1 everything up to SENT."""
    state = fresh_state(hub_epoch=SENT)
    return replace(state, refusals={1: refusals} if refusals else {})


def open_at(hub_epoch: int, sent_epoch: int = 0, row: RowKey = K) -> Refusal:
    """An open refusal of replica 1."""
    return Refusal("r1-3", 1, row, hub_epoch, csn(1, 2), "unique", "no", 3, 0, 1, sent_epoch)


def taken(state: HubState, speaker: Speaker, topology: Topology = RULES) -> Intake:
    """The intake of what a replica said."""
    intake = Intake(state, topology)
    for record in speaker.received:
        intake.take(record)
    return intake


def in_session(covers: int = SENT) -> Speaker:
    """Replica 1 with a session in force."""
    speaker = Speaker()
    speaker.hello(covers=covers)
    return speaker


def test_a_refused_row_stops_nobody() -> None:
    """It is remembered with all that its replica said of it."""
    speaker = in_session()
    speaker.send(refused(5))

    intake = taken(serving(), speaker)

    (one,) = intake.refused.of(1).values()
    assert (one.id, one.row, one.hub_epoch, one.csn, one.attempts) == ("r1-1", K, 5, csn(5, 2), 1)
    assert (one.code, one.text) == ("unique", "no")
    assert not intake.replicas[1].is_stopped
    assert intake.counts["refused"] == 1


def test_a_repeat_is_no_attempt() -> None:
    """An agent that was killed publishes again; a later hub epoch is another attempt."""
    speaker = in_session()
    speaker.send(refused(5), refused(5), refused(4), refused(7, code="check"))

    intake = taken(serving(), speaker)

    (one,) = intake.refused.of(1).values()
    assert (one.id, one.hub_epoch, one.code, one.attempts) == ("r1-1", 7, "check", 2)
    assert (intake.counts["refused"], intake.counts["duplicates"]) == (2, 2)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (refused(SENT + 1), Reason.SESSION),
        (refused(5, ("gone", K[1])), Reason.TABLE),
        (refused(5, ("t", '{"k":null}')), Reason.KEY),
        (refused(5, ("t", "{}")), Reason.KEY),
    ],
)
def test_a_refusal_of_nothing_is_quarantined(record: Refused, reason: Reason) -> None:
    """Nothing can be sent again for it."""
    speaker = in_session()
    speaker.send(record)

    intake = taken(serving(), speaker)

    assert [one.reason for one in intake.quarantined] == [reason]
    assert not intake.refused.of(1)


def test_it_is_closed_when_what_was_sent_again_is_applied() -> None:
    """Its replica would have refused it before the `applied`."""
    speaker = in_session(covers=6)
    later = open_at(5, sent_epoch=8, row=OTHER)
    intake = taken(serving({K: open_at(5, sent_epoch=7), OTHER: later}), speaker)
    intake.agreements["a1"] = replace(intake.agreements["a1"], sent_covers=SENT)

    for record in speaker.applied(1, 7):
        intake.take(record)

    assert list(intake.refused.of(1)) == [OTHER]
    assert [(one.row, how) for one, how in intake.refused.ended] == [(K, Ending.APPLIED)]


def test_a_database_that_was_put_back_is_sent_the_row_anew() -> None:
    """What it refused after the backup it has not refused."""
    intake = taken(serving({K: open_at(5), OTHER: open_at(3, row=OTHER)}), in_session(covers=4))

    assert list(intake.refused.of(1)) == [OTHER]
    assert [(one.row, how) for one, how in intake.refused.ended] == [(K, Ending.REPLACED)]


def test_what_is_sent_again_is_known_by_the_rows_after_the_batch() -> None:
    """A newer version of the row, unless the replica is not sent its table."""
    newer = {K: RowState(author=2, hub_epoch=9, csn=csn(9, 2))}
    sent = dict[bool, int]()
    for is_seen in (True, False):
        rows = taken(serving({K: open_at(5)}), in_session()).refused
        rows.resolve(rows.to_resolve([K]), newer, lambda *_, seen=is_seen: seen, {})
        sent[is_seen] = rows.of(1)[K].sent_epoch

    assert sent == {True: 9, False: 0}


@pytest.mark.parametrize(("name", "rows"), [("r1-3", [K]), ("r1", [K]), ("r2", []), ("1-3", [])])
def test_an_operator_names_one_row_or_all_of_a_replica(name: str, rows: list[RowKey]) -> None:
    """They are refreshed, and what was written behind the refusal is realigned; else nothing is."""
    intake = Intake(serving({K: open_at(5)}), RULES)

    orders.send_again(intake, name)

    assert intake.repairs == [Repair(1, row, 3, RETRY) for row in rows]
    assert intake.counts == {"sent_again" if rows else "unknown_retries": 1}


@pytest.mark.parametrize(
    "without",
    [
        replace(RULES, subscriptions={"a2": RULES.subscriptions["a2"]}),
        replace(RULES, tables={}, subscriptions={}),
    ],
    ids=["replica", "table"],
)
def test_what_is_not_configured_is_not_sent_again(without: Topology) -> None:
    """Its agent would have nobody to send it to."""
    intake = Intake(serving({K: open_at(5)}), without)

    orders.send_again(intake, "r1")

    assert intake.repairs == []


FIRST_MS = 10_000


def refreshing(on_refused: OnRefused = OnRefused.REFRESH) -> Topology:
    """The rules, with what follows a refusal."""
    tables = {n: replace(table, on_refused=on_refused) for n, table in RULES.tables.items()}
    return replace(RULES, tables=tables, refused_again_ms=FIRST_MS)


@pytest.mark.parametrize(
    ("attempts", "wait_ms"),
    [
        (1, FIRST_MS),
        (2, 2 * FIRST_MS),
        (9, 256 * FIRST_MS),
        (10, 360 * FIRST_MS),
        (9_999, 360 * FIRST_MS),
    ],
)
def test_a_refused_row_is_sent_again_at_growing_intervals(attempts: int, wait_ms: int) -> None:
    """A database that never takes it costs a message an hour, not a busy loop."""
    one = replace(open_at(5), attempts=attempts, at_ms=1_000)

    assert due({1: {K: one}}, refreshing(), 1_000 + wait_ms) == [one]
    assert not due({1: {K: one}}, refreshing(), 1_000 + wait_ms - 1)
    assert not due({1: {K: replace(one, sent_epoch=6)}}, refreshing(), 1_000 + wait_ms)
    assert not due({1: {K: one}}, refreshing(OnRefused.SKIP), 1_000 + wait_ms)
    assert not due({1: {K: one}}, refreshing(OnRefused.STOP), 1_000 + wait_ms)
    assert not due({9: {K: replace(one, rid=9)}}, refreshing(), 1_000 + wait_ms)


def test_one_batch_sends_a_bounded_number_again() -> None:
    """Those first that wait longest; the rest follow with the next batches."""
    rows = [("t", f'{{"k":"{n}"}}') for n in range(SENT_AGAIN_AT_ONCE + 2)]
    refusals = {row: replace(open_at(5), row=row, at_ms=-n) for n, row in enumerate(rows)}
    intake = Intake(serving(refusals), refreshing(), at_ms=FIRST_MS)

    orders.send_due(intake)

    assert intake.repairs[0] == Repair(1, rows[-1], 3, RETRY)
    assert {one.row for one in intake.repairs} == set(rows[2:])


def test_the_clock_of_an_attempt_is_the_hubs() -> None:
    """A replica whose clock is wrong is not sent to without end, nor never."""
    speaker = in_session()
    speaker.send(refused(5))
    intake = Intake(serving(), refreshing(), at_ms=77_000)
    for record in speaker.received:
        intake.take(record)

    (one,) = intake.refused.of(1).values()

    assert one.at_ms == 77_000
    assert one.is_due(87_000, FIRST_MS)
    assert not one.is_due(86_999, FIRST_MS)


def test_a_table_that_stops_stops_its_agreement_alone() -> None:
    """What the consumer writes is read on; a new session does not resume it, an operator does."""
    speaker = in_session()
    speaker.send(refused(5))
    speaker.hello(covers=SENT)
    intake = taken(serving(), speaker, refreshing(OnRefused.STOP))
    name = RULES.agreement_of(1) or ""

    stopped = intake.agreements[name]
    orders.resume(intake, name)

    assert stopped.status_text == "refused: t"
    assert not stopped.status.ends_agent
    assert not intake.replicas[1].is_stopped
    assert intake.agreements[name].status is AgreementStatus.CATCHING_UP
    assert intake.repairs == [Repair(1, K, 1, RETRY)]
    assert (intake.counts["resumed"], intake.counts["unknown_resumes"]) == (1, 0)


def test_what_has_not_stopped_is_not_resumed() -> None:
    """A command may come twice, or name an agreement that was removed."""
    intake = taken(serving({K: open_at(5)}), in_session(), refreshing(OnRefused.STOP))

    orders.resume(intake, RULES.agreement_of(1) or "")
    orders.resume(intake, "nobody")

    assert not intake.repairs
    assert intake.counts["unknown_resumes"] == 2


def written(mre: int, offset: int = 4) -> Arrived:
    """A change of K by replica 1, which had reflected this hub epoch."""
    return Arrived(change(9, "x"), "", "1-1", offset, 0, mre, mre)


@pytest.mark.parametrize(
    ("row", "arrived", "is_hidden"),
    [
        (RowState(2, 5), written(5), True),
        (RowState(2, 5), written(5, offset=3), False),
        (RowState(2, 5), written(5, offset=2), False),
        (RowState(2, 6), written(5), False),
        (RowState(2, 5, realign=(Realign(1, 5),)), written(9), True),
        (RowState(2, 5, realign=(Realign(1, 6),)), written(6), False),
        (RowState(2, 5, realign=(Realign(1, 7),)), written(6), True),
        (RowState(2, 5, realign=(Realign(2, 6),)), written(6), True),
    ],
)
def test_a_refused_row_is_hidden_until_a_later_refresh_is_reflected(
    row: RowState, arrived: Arrived, *, is_hidden: bool
) -> None:
    """Of what stands behind the refusal, in hub epochs and in offsets."""
    assert open_at(5).hides(row, arrived) is is_hidden


def test_a_refusal_that_ends_in_a_batch_still_hides_its_row_there() -> None:
    """A change may stand between the refusal and the record that ended it."""
    speaker = in_session(covers=6)
    intake = taken(serving({K: open_at(5, sent_epoch=7), OTHER: open_at(4, row=OTHER)}), speaker)
    intake.agreements["a1"] = replace(intake.agreements["a1"], sent_covers=SENT)
    assert intake.refused.for_judging() is intake.refused.after

    for record in speaker.applied(1, 7):
        intake.take(record)

    assert {row: one.hub_epoch for row, one in intake.refused.for_judging()[1].items()} == {
        K: 5,
        OTHER: 4,
    }


@pytest.mark.parametrize(("acked", "is_open"), [(8, True), (9, False), (10, False)])
def test_what_was_sent_again_and_acknowledged_before_is_closed(
    acked: int, *, is_open: bool
) -> None:
    """Its own write may have become the row, of which there is no update to be refused."""
    rows = taken(serving({K: open_at(5)}), in_session()).refused
    newer = {K: RowState(author=1, hub_epoch=9, csn=csn(9, 1))}

    rows.resolve(rows.to_resolve([K]), newer, lambda *_: True, {1: acked})

    assert (K in rows.of(1)) is is_open
    assert [(one.row, how) for one, how in rows.ended] == ([] if is_open else [(K, Ending.APPLIED)])


def test_a_fresh_refusal_is_settled_though_its_row_did_not_change() -> None:
    """The row may have been sent again by the batch before."""
    speaker = in_session()
    speaker.send(refused(5))
    rows = taken(serving({OTHER: open_at(4, row=OTHER)}), speaker).refused

    assert [one.row for one in rows.to_resolve([])] == [K]
    assert {one.row for one in rows.to_resolve([OTHER])} == {K, OTHER}
    assert {one.row for one in rows.to_resolve([OTHER, ("t", "1"), ("t", "2")])} == {K, OTHER}


@pytest.mark.parametrize(("sent_epoch", "kept"), [(8, 8), (7, 0), (6, 0)])
def test_an_attempt_more_keeps_what_is_on_its_way(sent_epoch: int, kept: int) -> None:
    """A row that was sent after the version that is refused now may be taken still."""
    speaker = in_session(covers=5)
    speaker.send(refused(7))
    state = serving({K: open_at(5, sent_epoch=sent_epoch)})
    intake = Intake(state, RULES)
    intake.take(speaker.received[0])
    intake.agreements["a1"] = replace(intake.agreements["a1"], sent_epoch=SENT)
    intake.take(speaker.received[1])

    (one,) = intake.refused.of(1).values()

    assert (one.attempts, one.hub_epoch, one.sent_epoch) == (2, 7, kept)
    assert one.time_ms == speaker.received[1].time_ms


WAITS = replace(open_at(5), code="column", attempts=9, at_ms=1_000)
LATER = 1_000 + FIRST_MS


def test_a_row_that_lacks_a_column_goes_on_once_the_column_is_there() -> None:
    """Whatever the table says of refused rows, and however often it was refused meanwhile."""
    lacking = {1: frozenset({"t.v"})}
    rules = refreshing(OnRefused.SKIP)

    assert not due({1: {K: WAITS}}, rules, LATER, lacking)
    assert not due({1: {K: WAITS}}, rules, LATER - 1)
    assert due({1: {K: WAITS}}, rules, LATER) == [WAITS]
    assert due({1: {K: WAITS}}, rules, LATER, {1: frozenset({"u.v", "t.other"})}) == [WAITS]
    assert due({1: {K: WAITS}}, rules, LATER, {2: frozenset({"t.v"})}) == [WAITS]
    assert not due({1: {K: replace(WAITS, sent_epoch=7)}}, rules, LATER)


def test_a_column_that_is_not_sent_is_not_waited_for() -> None:
    """As one that the configuration does not name any more."""
    lacking = {1: frozenset({"t.v"})}
    without = ColumnFilter(frozenset({"k"}))
    one = replace(RULES.subscriptions["a1"], columns={"t": without})
    filtered = replace(RULES, subscriptions={**RULES.subscriptions, "a1": one})
    dropped = replace(RULES.tables["t"], columns={"k": RULES.tables["t"].columns["k"]})

    assert due({1: {K: WAITS}}, filtered, LATER, lacking) == [WAITS]
    assert due({1: {K: WAITS}}, replace(RULES, tables={"t": dropped}), LATER, lacking) == [WAITS]


def test_what_a_database_lacks_is_what_its_agent_said_last() -> None:
    """With each schema that it publishes; a hello says nothing of it."""
    speaker = in_session()
    speaker.send(PublishedSchema("d1", "{}", ("t.v",)))
    first = taken(serving(), speaker).lacking
    speaker.hello(covers=SENT)
    second = taken(serving(), speaker).lacking
    speaker.send(PublishedSchema("d2"))

    assert first == second == {1: frozenset({"t.v"})}
    assert taken(serving(), speaker).lacking == {}
