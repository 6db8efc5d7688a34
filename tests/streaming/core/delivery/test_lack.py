"""What a consumer lacks: the cases of the document, and that exactly what is lacking is sent."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.core.delivery.lack import (
    Anchor,
    Lack,
    LackReason,
    LogGap,
    SendingRefused,
    epochs_purged,
    lack,
    own_counted,
    refused,
)
from streaming.core.model.csn import CsnParts, format_csn, rid_of
from streaming.core.model.ruv import Element, Ruv
from tests.harness.builders import csn
from tests.reference.lack import must_send
from tests.streaming.core.delivery.logs import RIDS, History, histories, ruv_of

A, B, C = 1, 2, 258
NOTHING_PURGED = Ruv()


def known(**upto: tuple[int, int]) -> Ruv:
    """A RUV from a=(min, max) and so on."""
    rids = {"a": A, "b": B, "c": C}
    spans = {rids[name]: span for name, span in upto.items()}
    return Ruv(
        elements={rid: Element(csn(low, rid), csn(high, rid)) for rid, (low, high) in spans.items()}
    )


def sent(log: Sequence[str], lacking: Lack) -> list[str]:
    """What goes out when the log is read from the anchor on."""
    anchor = lacking.anchor
    if anchor is None:
        return []
    return [
        c
        for c in log
        if (c > anchor.csn or anchor.at) and c >= anchor.csn and must_send(lacking, c)
    ]


@pytest.mark.parametrize(
    ("supplier", "consumer", "anchor", "needs"),
    [
        (known(a=(1, 5)), known(a=(1, 5)), None, {A: LackReason.LEVEL}),
        (known(a=(1, 5)), known(a=(1, 7)), None, {A: LackReason.LEVEL}),
        (known(a=(1, 5)), known(a=(1, 3)), Anchor(csn(3, A), at=False), {A: LackReason.BEHIND}),
        (known(a=(1, 5)), Ruv(), Anchor(csn(1, A), at=True), {A: LackReason.NEVER_SEEN}),
        (Ruv(), known(a=(1, 5)), None, {A: LackReason.STRANGER}),
        (Ruv(elements={A: Element()}), known(a=(1, 5)), None, {A: LackReason.NO_CHANGE}),
        (
            known(a=(1, 5)),
            Ruv(elements={A: Element(url="ldap://a")}),
            Anchor(csn(1, A), at=True),
            {A: LackReason.NEVER_SEEN},
        ),
        (
            known(a=(1, 5), b=(2, 9)),
            known(a=(1, 3), c=(0, 1)),
            Anchor(csn(2, B), at=True),
            {A: LackReason.BEHIND, B: LackReason.NEVER_SEEN, C: LackReason.STRANGER},
        ),
        (
            known(a=(1, 5), b=(4, 9)),
            known(a=(1, 3)),
            Anchor(csn(3, A), at=False),
            {A: LackReason.BEHIND, B: LackReason.NEVER_SEEN},
        ),
        (
            known(a=(1, 5), b=(2, 9)),
            known(a=(1, 5), b=(2, 8)),
            Anchor(csn(8, B), at=False),
            {A: LackReason.LEVEL, B: LackReason.BEHIND},
        ),
    ],
)
def test_sending_starts_at_the_smaller_of_both_minima(
    supplier: Ruv, consumer: Ruv, anchor: Anchor | None, needs: dict[int, LackReason]
) -> None:
    """A known replica is where sending starts after, an unknown one's min where it starts at."""
    lacking = lack(supplier, consumer)

    assert lacking.anchor == anchor
    assert lacking.needs == needs


@given(histories())
def test_exactly_what_the_consumer_lacks_is_sent(history: History) -> None:
    """Nothing twice, nothing left out, in CSN order, whoever knows how much of whom."""
    supplier, consumer = history.known(history.supplier), history.known(history.consumer)

    lacking = lack(ruv_of(supplier), ruv_of(consumer))

    assert sent(history.log, lacking) == [c for c in supplier if c not in consumer]


@given(histories())
def test_afterwards_the_consumer_covers_the_supplier(history: History) -> None:
    """A level consumer lacks nothing: the state of rest."""
    supplier, consumer = (
        ruv_of(history.known(history.supplier)),
        ruv_of(history.known(history.consumer)),
    )
    for each in sent(history.log, lack(supplier, consumer)):
        consumer = consumer.with_csn(each)

    assert consumer.covers_all(supplier)
    assert lack(supplier, consumer).anchor is None


@given(histories(), st.integers(1, 5))
def test_pages_that_are_calculated_anew_send_the_same(history: History, page: int) -> None:
    """The position after a page is all that the next page needs to know."""
    log = history.log
    supplier, consumer = (
        ruv_of(history.known(history.supplier)),
        ruv_of(history.known(history.consumer)),
    )
    at_once = sent(log, lack(supplier, consumer))

    in_pages: list[str] = []
    while now := sent(log, lack(supplier, consumer))[:page]:
        in_pages += now
        for each in now:
            consumer = consumer.with_csn(each)

    assert in_pages == at_once


@given(histories())
def test_helper_records_and_unknown_replicas_are_never_sent(history: History) -> None:
    """389 keeps counts and RUVs among the changes, with rid 0 and times 111, 222 and 333."""
    helpers = [format_csn(CsnParts(time_s, 0, 0, 0)) for time_s in (111, 222, 333, 2**32 - 1)]
    strangers = [csn(number, 77) for number in range(0, 40, 7)]
    supplier, consumer = history.known(history.supplier), history.known(history.consumer)

    lacking = lack(ruv_of(supplier), ruv_of(consumer))

    log = sorted([*helpers, *strangers, *history.log])
    assert sent(log, lacking) == [c for c in supplier if c not in consumer]


def test_a_change_beyond_the_stop_waits_for_the_next_calculation() -> None:
    """Also one that follows directly: anchor, stop and data are of one hub epoch."""
    lacking = lack(known(a=(1, 4)), known(a=(1, 3)))

    assert [must_send(lacking, csn(number, A)) for number in (3, 4, 5)] == [False, True, False]


@given(histories(), st.sampled_from(RIDS))
def test_own_changes_are_not_sent_back(history: History, own: int) -> None:
    """The hub's own max is what the consumer is counted to have of itself, less or more."""
    supplier, consumer = history.known(history.supplier), history.known(history.consumer)
    hub = ruv_of(supplier)

    lacking = lack(hub, own_counted(ruv_of(consumer), own, hub.max_of(own)))

    assert sent(history.log, lacking) == [
        c for c in supplier if c not in consumer and rid_of(c) != own
    ]


@given(histories(), st.sampled_from(RIDS), st.data())
def test_after_a_loss_own_changes_behind_the_reported_one_are_given_back(
    history: History, rid: int, data: st.DataObject
) -> None:
    """What the hello calls `own` is the last of its changes that the database still has."""
    supplier = history.known(history.supplier)
    hub = ruv_of(supplier)
    mine = [c for c in supplier if rid_of(c) == rid]
    kept = data.draw(st.integers(0, len(mine)))
    own = mine[kept - 1] if kept else None

    lacking = lack(hub, own_counted(hub, rid, own))

    assert sent(history.log, lacking) == mine[kept:]


def refusal(
    supplier: Ruv, consumer: Ruv, *, log: Sequence[str], purged: Ruv = NOTHING_PURGED
) -> SendingRefused | None:
    """Why nothing may be sent from this log."""
    return refused(lack(supplier, consumer), purged, set(log).__contains__)


def test_an_anchor_that_is_in_the_log_may_be_entered() -> None:
    """The ordinary case."""
    assert refusal(known(a=(1, 5)), known(a=(1, 3)), log=[csn(n, A) for n in (3, 4, 5)]) is None


def test_a_level_consumer_is_never_refused() -> None:
    """It needs nothing from a log that was purged altogether."""
    level = known(a=(1, 5))

    assert refusal(level, level, log=[], purged=known(a=(5, 5))) is None


@pytest.mark.parametrize(
    ("purged", "gap"),
    [
        (known(a=(4, 4)), LogGap.PURGED),
        (known(a=(2, 2)), LogGap.MISSING),
        (known(a=(1, 2)), LogGap.MISSING),
        (NOTHING_PURGED, LogGap.PURGED),
        (Ruv(elements={A: Element(url="ldap://a")}), LogGap.PURGED),
    ],
)
def test_the_purge_ruv_tells_purged_from_missing(purged: Ruv, gap: LogGap) -> None:
    """Purged up to beyond it, or never logged since it came with the initial load: purged."""
    outcome = refusal(known(a=(1, 9)), known(a=(1, 3)), log=[csn(9, A)], purged=purged)

    assert outcome == SendingRefused(Anchor(csn(3, A), at=False), A, gap)


def test_a_consumer_that_stands_at_the_purge_edge_lacks_nothing_that_is_gone() -> None:
    """Purging goes up to what the slowest has; that one must not be the first to be refused."""
    supplier, consumer, purged = known(a=(1, 9)), known(a=(1, 3)), known(a=(1, 3))

    assert refusal(supplier, consumer, log=[csn(n, A) for n in (4, 9)], purged=purged) is None


def test_a_min_above_what_was_purged_is_no_start() -> None:
    """The min is in the log, and the gap is below it (docs/traps.md, A start above a hole)."""
    log = [csn(n, A) for n in (5, 6)]

    outcome = refusal(known(a=(5, 6)), Ruv(), log=log, purged=known(a=(1, 4)))

    assert outcome == SendingRefused(Anchor(csn(5, A), at=True), A, LogGap.PURGED)


def test_a_min_that_is_not_in_the_log_was_purged() -> None:
    """389 never moves its min; the log begins behind it."""
    outcome = refusal(known(a=(1, 6)), Ruv(), log=[csn(6, A)], purged=known(a=(4, 4)))

    assert outcome == SendingRefused(Anchor(csn(1, A), at=True), A, LogGap.PURGED)


def test_a_hole_behind_another_replicas_anchor_is_found() -> None:
    """The anchor of one replica does not reveal another's gap; never send over a gap."""
    supplier, consumer = known(a=(1, 9), b=(2, 9)), known(a=(1, 3), b=(2, 4))
    log = [csn(3, A), csn(9, A), csn(9, B)]

    outcome = refusal(supplier, consumer, log=log, purged=known(b=(2, 6)))

    assert outcome == SendingRefused(Anchor(csn(4, B), at=False), B, LogGap.PURGED)


def test_a_start_that_is_in_the_log_was_not_purged_whatever_the_purge_ruv_says() -> None:
    """After losing its helper record 389 calls the smallest CSN that it has its purge RUV."""
    supplier, consumer = known(a=(1, 9), b=(2, 9)), known(b=(2, 4))
    log = [csn(n, A) for n in (1, 9)] + [csn(n, B) for n in (4, 9)]

    assert refusal(supplier, consumer, log=log, purged=known(a=(1, 1), b=(2, 6))) is None


@given(histories(), st.data())
def test_what_is_sent_has_no_gap_or_nothing_is_sent(history: History, data: st.DataObject) -> None:
    """Whatever was purged (never a replica's largest): all that is lacking, or a refusal."""
    supplier, consumer = history.known(history.supplier), history.known(history.consumer)
    gone = history.known({r: data.draw(st.integers(0, len(history.of(r)))) for r in RIDS})
    largest = ruv_of(supplier).max_csns().values()
    log = [c for c in supplier if c not in gone or c in largest]
    hub = Ruv(elements={rid_of(c): Element(_first(log, rid_of(c)), c) for c in largest})
    lacking = lack(hub, ruv_of(consumer))

    purged = ruv_of(c for c in supplier if c not in log)
    outcome = refused(lacking, purged, log.__contains__)

    missing = [c for c in supplier if c not in consumer]
    assert (outcome is None) == (set(missing) <= set(log))
    assert outcome is not None or sent(log, lacking) == missing


def _first(log: Sequence[str], rid: int) -> str | None:
    return next((c for c in log if rid_of(c) == rid), None)


@pytest.mark.parametrize(
    ("start", "gap", "text"),
    [
        (
            Anchor(csn(3, A), at=False),
            LogGap.PURGED,
            (
                f"sending would start after CSN {csn(3, A)} of replica 1, which is purged in the"
                " changelog: changes that this consumer lacks were removed or came with the initial"
                " load, so it needs a resync"
            ),
        ),
        (
            Anchor(csn(3, A), at=True),
            LogGap.MISSING,
            (
                f"sending would start at CSN {csn(3, A)} of replica 1, which is missing in the"
                " changelog though it was not purged: the hub's state or the consumer's RUV is not"
                " of this history (restored, or of another hub); find out which of them, then give"
                " the consumer a resync"
            ),
        ),
    ],
)
def test_a_refusal_says_what_to_do(start: Anchor, gap: LogGap, text: str) -> None:
    """Once, clearly: the change, the replica, the reason, and the remedy."""
    assert str(SendingRefused(start, A, gap)) == text


@pytest.mark.parametrize(("covers", "is_refused"), [(4, True), (5, False), (6, False)])
def test_a_consumer_below_the_purge_epoch_is_refused(*, covers: int, is_refused: bool) -> None:
    """It may lack refreshes that are gone; its RUV covers their CSNs and cannot show it."""
    outcome = epochs_purged(covers, 5)

    assert (outcome is not None) == is_refused
    assert outcome is None or f"covers hub epoch {covers}, and the changelog is purged up to" in (
        str(outcome)
    )
