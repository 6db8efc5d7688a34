"""A position is believed if it was sent and the changelog goes on from it, and only then."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from streaming.core.delivery.lack import EpochsPurged, SendingRefused, lack, own_counted
from streaming.core.delivery.positions import (
    BelievedPosition,
    ClaimedPosition,
    CommittedHub,
    HubBehind,
    OldGeneration,
    PositionGap,
    decide,
    hub_behind,
)
from streaming.core.model.csn import rid_of
from streaming.core.model.ruv import Element, Ruv
from tests.harness.builders import csn
from tests.harness.examples import examples
from tests.streaming.core.delivery.logs import RIDS, History, histories, ruv_of

ME = 9
epochs = st.integers(0, 20)


def whole(known: Sequence[str], generation: int = 1) -> CommittedHub:
    """A hub whose changelog has all that it knows."""
    ruv = ruv_of(known)
    return CommittedHub(generation, ruv, ruv.max_csns())


@examples()
@given(histories(), epochs, epochs)
def test_a_position_that_was_sent_is_believed_as_it_is(
    history: History, covers: int, more: int
) -> None:
    """Below the estimate too: a consumer that was restored from a backup is sent from there."""
    known = history.known(history.supplier)
    had = [c for c in history.known(history.consumer) if c in known]
    claimed = ClaimedPosition(ME, covers, 1, ruv_of(had))

    found = decide(claimed, whole(known), covers + more, known.__contains__)

    assert found == BelievedPosition(covers, ruv_of(had))


@examples()
@given(histories(), epochs, st.integers(1, 5), st.integers(0, 5))
def test_above_what_was_ever_sent_is_never_believed(
    history: History, published: int, more: int, purge_epoch: int
) -> None:
    """Also where the hub has later epochs, which it has not sent there, and where a log is gone."""
    known = history.known(history.supplier)
    hub = replace(whole(known), purge_epoch=purge_epoch)
    claimed = ClaimedPosition(ME, published + more, 1, ruv_of(known))

    found = decide(claimed, hub, published, known.__contains__)

    assert found == HubBehind(f"hub epoch {published + more}", f"hub epoch {published}")
    assert found == hub_behind(claimed, hub, published)


@examples()
@given(histories(), epochs)
def test_a_csn_that_the_hub_has_not_proves_that_it_was_put_back(
    history: History, covers: int
) -> None:
    """Of a replica that it knows; of itself a consumer may know more, and strangers are ignored."""
    known, had = history.known(history.supplier), history.known(history.consumer)
    maxima = ruv_of(known).max_csns()
    me = RIDS[0]

    found = hub_behind(ClaimedPosition(me, covers, 1, ruv_of(had)), whole(known), covers)

    ahead = [c for c in had if c > maxima.get(rid_of(c), c) and rid_of(c) != me]
    assert (found is not None) == bool(ahead)


@examples()
@given(epochs, epochs, epochs)
def test_a_hub_that_was_put_back_believes_what_it_still_knows(
    restored: int, sent_since: int, had: int
) -> None:
    """What the consumer applied since the backup shows, and what it had before does not."""
    assume(had <= restored + sent_since)
    claimed = ClaimedPosition(ME, had, 1, Ruv())

    found = decide(claimed, whole([]), restored, lambda _: False)

    assert isinstance(found, HubBehind) == (had > restored)


@examples()
@given(histories(), st.data())
def test_nothing_is_sent_over_a_gap(history: History, data: st.DataObject) -> None:
    """Believed means: from there the changelog has all that is lacking, refreshes included."""
    known = history.known(history.supplier)
    had = [c for c in history.known(history.consumer) if c in known]
    gone = history.known({r: data.draw(st.integers(0, len(history.of(r)))) for r in RIDS})
    largest = ruv_of(known).max_csns().values()
    log = [c for c in known if c not in gone or c in largest]
    covers, purge_epoch = data.draw(epochs), data.draw(epochs)
    hub = CommittedHub(
        1,
        Ruv(elements={rid_of(c): Element(_first(log, rid_of(c)), c) for c in largest}),
        ruv_of(known).max_csns(),
        purge_epoch,
        ruv_of(c for c in known if c not in log),
    )

    found = decide(ClaimedPosition(ME, covers, 1, ruv_of(had)), hub, 20, log.__contains__)

    missing = {c for c in known if c not in had}
    assert not isinstance(found, HubBehind)
    assert isinstance(found, BelievedPosition) == (covers >= purge_epoch and missing <= set(log))
    if isinstance(found, PositionGap):
        assert isinstance(found, EpochsPurged if covers < purge_epoch else SendingRefused)


def _first(log: Sequence[str], rid: int) -> str | None:
    return next((c for c in log if rid_of(c) == rid), None)


@given(epochs, epochs, st.integers(0, 3), st.integers(1, 3))
def test_generations_are_told_apart(covers: int, published: int, theirs: int, ours: int) -> None:
    """A later one proves a rollback, an earlier one counts other epochs, 0 is of nobody yet."""
    claimed = ClaimedPosition(ME, covers, theirs, Ruv())

    found = decide(claimed, whole([], ours), published, lambda _: False)

    if theirs > ours:
        assert found == HubBehind(f"generation {theirs}", f"generation {ours}")
    elif 0 < theirs < ours:
        assert found == OldGeneration(theirs, ours)
    else:
        assert isinstance(found, BelievedPosition) == (covers <= published)


def test_an_empty_consumer_of_a_purged_hub_needs_a_resync() -> None:
    """It was sent nothing, so it is not ahead of anybody; the changelog's beginning is gone."""
    hub = replace(whole([csn(1), csn(2)]), purge_epoch=7)

    found = decide(ClaimedPosition(ME, 0, 0, Ruv()), hub, 0, lambda _: True)

    assert found == EpochsPurged(0, 7)


def test_lost_changes_of_its_own_are_looked_for_in_the_log() -> None:
    """They are given back like any others, so they must be there."""
    hub = replace(whole([csn(n, ME) for n in (1, 2, 3)]), purge_ruv=ruv_of([csn(2, ME)]))
    log = [csn(3, ME)]
    whole_again = ClaimedPosition(ME, 0, 1, Ruv(), own=csn(3, ME))

    believed = decide(whole_again, hub, 0, log.__contains__)
    lost = decide(whole_again._replace(own=csn(1, ME)), hub, 0, log.__contains__)

    assert isinstance(believed, BelievedPosition)
    assert isinstance(lost, SendingRefused)
    assert lost.rid == ME
    assert lack(hub.ruv, own_counted(Ruv(), ME, csn(1, ME))).starts.keys() == {ME}
