"""A session page by page: the document's cases, its two theorems, and that nothing is left out."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.core.delivery.lack import Anchor, lack
from streaming.core.model.csn import rid_of
from streaming.core.model.ruv import Element, Ruv
from streaming.core.model.table import DEFAULT_DATASET
from streaming.core.records.record import Commit
from tests.harness.builders import change, csn
from tests.harness.examples import examples
from tests.reference.batch import in_order
from tests.reference.lack import must_send
from tests.streaming.core.delivery.logs import RIDS
from tests.streaming.core.intake.speaker import Speaker, fresh_state, intake_of
from tests.streaming.core.paging import (
    Step,
    Story,
    behind,
    from_scratch,
    in_hub_epochs,
    play,
    stories,
)
from tests.streaming.core.reload import Case, Session, case_of, first_load, read, reload
from tests.vectors.cases import SESSIONS, by_id
from tests.vectors.outcome import Case as Vector
from tests.vectors.sessions import play as played_whole

A, B, C = 1, 2, 258


def known(**upto: tuple[int, int]) -> Ruv:
    """A RUV from a=(min, max) and so on."""
    rids = {"a": A, "b": B, "c": C}
    spans = {rids[name]: span for name, span in upto.items()}
    return Ruv(
        elements={rid: Element(csn(low, rid), csn(high, rid)) for rid, (low, high) in spans.items()}
    )


def at(number: int, rid: int) -> Anchor:
    """Start AT this CSN."""
    return Anchor(csn(number, rid), at=True)


def after(number: int, rid: int) -> Anchor:
    """Start NEXT after this CSN."""
    return Anchor(csn(number, rid), at=False)


def behind_page(supplier: Ruv, consumer: Ruv, buffer: str) -> Session:
    """A session whose page ended on `buffer`, with what the consumer has by then."""
    return replace(first_load(supplier, consumer), buffer=buffer)


# -- the cases -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "now", "there", "case"),
    [
        pytest.param(9, 9, 3, Case.UNCHANGED, id="unchanged, ahead of the page"),
        pytest.param(3, 3, 2, Case.UNCHANGED, id="unchanged, within the page"),
        pytest.param(9, 11, 3, Case.NOT_REACHED, id="grown ahead of the page"),
        pytest.param(5, 6, 4, Case.NOT_REACHED, id="grown, the page ends on the old max"),
        pytest.param(None, 4, None, Case.FIRST_NEVER_SEEN, id="first seen, the consumer has none"),
        pytest.param(None, 4, 2, Case.FIRST_BEHIND, id="first seen, the consumer has less"),
        pytest.param(None, 4, 4, Case.FIRST_LEVEL, id="first seen, the consumer has it all"),
        pytest.param(None, 4, 7, Case.FIRST_LEVEL, id="first seen, the consumer has more"),
        pytest.param(3, 4, 3, Case.PASSED, id="passed, grown within the page"),
        pytest.param(3, 9, 3, Case.PASSED, id="passed, grown beyond the page"),
        pytest.param(3, 9, 8, Case.PASSED, id="passed, the consumer had more than was known here"),
        pytest.param(3, 9, None, Case.PASSED, id="passed, and nothing of it was sent"),
    ],
)
def test_each_replica_is_in_one_case(
    before: int | None, now: int, there: int | None, case: Case
) -> None:
    """By csnPrevMaxSup, csnMaxSup, csnConsumer and where the page ended: here on A's fifth."""
    numbers = [None if number is None else csn(number, A) for number in (before, there)]

    assert case_of(numbers[0], csn(now, A), numbers[1], csn(5, A)) is case


@pytest.mark.parametrize(
    ("before", "now", "there", "start"),
    [
        pytest.param(known(a=(1, 9)), known(a=(1, 9)), known(a=(1, 3)), after(5, B), id="1"),
        pytest.param(known(a=(1, 9)), known(a=(1, 9)), known(a=(1, 9)), None, id="1, level"),
        pytest.param(known(a=(1, 7)), known(a=(1, 9)), known(a=(1, 3)), after(5, B), id="2"),
        pytest.param(Ruv(), known(a=(3, 4)), Ruv(), at(3, A), id="3.1, it has none"),
        pytest.param(Ruv(), known(a=(3, 4)), known(a=(3, 3)), after(3, A), id="3.1, it has less"),
        pytest.param(Ruv(), known(a=(3, 4)), known(a=(3, 4)), None, id="3.1, it has as much"),
        pytest.param(Ruv(), known(a=(3, 4)), known(a=(3, 6)), None, id="3.1, it has more"),
        pytest.param(known(a=(1, 3)), known(a=(1, 4)), known(a=(1, 3)), after(3, A), id="3.2"),
        pytest.param(
            known(a=(1, 3)), known(a=(1, 9)), known(a=(1, 7)), after(7, A), id="3.2, was ignored"
        ),
        pytest.param(known(a=(1, 3)), known(a=(1, 6)), known(a=(1, 6)), None, id="3.2, level"),
        pytest.param(known(a=(1, 3)), known(a=(1, 4)), Ruv(), at(1, A), id="3.2, nothing sent"),
    ],
)
def test_each_case_starts_where_nothing_is_left_out(
    before: Ruv, now: Ruv, there: Ruv, start: Anchor | None
) -> None:
    """NEXT after what is known, AT what is not, and no start where nothing is to be sent."""
    session = reload(behind_page(before, there, csn(5, B)), now)

    assert session.anchor == start
    assert session.is_ended == (start is None)


def test_the_smallest_start_of_all_replicas_is_the_anchor() -> None:
    """The document's second case: a replica that is new, below what was already sent."""
    before, there = known(a=(1, 9)), known(a=(1, 5))

    session = reload(behind_page(before, there, csn(5, A)), known(a=(1, 9), b=(2, 2), c=(7, 8)))

    assert session.cases == {
        A: Case.UNCHANGED,
        B: Case.FIRST_NEVER_SEEN,
        C: Case.FIRST_NEVER_SEEN,
    }
    assert session.lacking.starts == {A: after(5, A), B: at(2, B), C: at(7, C)}
    assert session.anchor == at(2, B)


def test_of_equal_starts_the_one_that_is_sent_counts() -> None:
    """A page ended on the first change of a replica that was not known at its load.

    It was skipped, and NEXT would skip it for good: later ones of its replica would cover it.
    """
    session, sent = read(first_load(known(a=(1, 9)), Ruv()), [csn(1, A), csn(4, C)])
    assert sent == (csn(1, A),)

    session = reload(session, known(a=(1, 9), c=(4, 4)))

    assert session.lacking.starts == {A: after(4, C), C: at(4, C)}
    assert session.anchor == at(4, C)


def test_a_session_ends_when_both_sets_are_empty() -> None:
    """Nothing known at all, level, or only what the supplier does not know."""
    level = known(a=(1, 5))

    assert first_load(Ruv(), Ruv()).is_ended
    assert first_load(level, level).is_ended
    assert first_load(Ruv(), level).is_ended
    assert reload(first_load(level, level), level).is_ended


def test_a_session_that_had_nothing_to_send_can_go_on() -> None:
    """There is no end of a page to start after; the first change is not skipped for it."""
    session = reload(first_load(Ruv(), Ruv()), known(b=(4, 9)))

    assert (session.anchor, session.cases) == (at(4, B), {})


def test_a_session_ends_at_the_end_of_the_log() -> None:
    """A CSN that was covered without a record is never sent; waiting for it would take for ever."""
    session, sent = read(first_load(known(a=(1, 5)), known(a=(1, 4))), [])

    assert (session.is_ended, session.anchor, sent) == (True, after(4, A), ())
    assert not reload(session, known(a=(1, 6))).is_ended


def test_a_page_of_what_the_consumer_has_moves_the_session_on() -> None:
    """A new calculation would start on the same page for ever; the position is csnBuffer."""
    supplier, consumer = known(a=(1, 9), b=(1, 8)), known(a=(1, 1), b=(1, 8))
    session, sent = read(first_load(supplier, consumer), [csn(number, B) for number in (2, 3)])

    session = reload(session, supplier)

    assert (sent, session.anchor) == ((), after(3, B))
    assert lack(supplier, session.consumer).anchor == after(1, A)


def test_what_is_beyond_the_stop_comes_with_the_next_page() -> None:
    """Even a direct neighbour: between the copy of the RUV and the load, others may come in."""
    loaded = [csn(number, A) for number in (2, 3, 4)]
    session, first = read(first_load(known(a=(1, 3)), known(a=(1, 1))), loaded)

    session, second = read(reload(session, known(a=(1, 4))), [csn(4, A)])

    assert (first, second) == ((csn(2, A), csn(3, A)), (csn(4, A),))
    assert session.cases == {A: Case.PASSED}


def test_own_changes_are_covered_however_many_come_in_a_session() -> None:
    """The consumer writes while it is sent to: the one thing that its lock does not hold off."""
    session = first_load(known(a=(1, 9), b=(1, 4)), known(a=(1, 3)), own=B)
    session, _ = read(session, [csn(number, A) for number in (4, 5)])

    session = reload(session, known(a=(1, 9), b=(1, 6)))

    assert session.lacking.starts == {A: after(5, A)}
    assert not must_send(session.lacking, csn(6, B))


@pytest.mark.parametrize("size", [1, 7])
@by_id(SESSIONS)
def test_a_real_servers_session_is_the_same_in_pages(case: Vector, size: int) -> None:
    """Recorded sessions, whose server read its changelog some 8 KB at a time."""
    whole = played_whole(case)
    recorded = whole.session
    found = list[str]()

    session = first_load(recorded.supplier, recorded.consumer)
    while not session.is_ended and not whole.refusal:
        session, sent = read(session, behind(recorded.log, session.anchor)[:size])
        found += sent
        session = session if session.drained else reload(session, recorded.supplier)

    assert tuple(c for c in found if c not in recorded.marks) == whole.sent


# -- the theorems ----------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from((1, 2)), st.booleans()), max_size=24),
    st.data(),
)
@examples(150)
def test_theorem_1_only_a_csn_above_the_max_is_inserted(
    arriving: list[tuple[int, int, bool]], data: st.DataObject
) -> None:
    """The hub itself, whatever comes in whatever order, cut into batches anywhere.

    A page relies on it: below a replica's max, its part of the changelog is finished. A change
    of a transaction stays open until a commit of its number comes, if one ever does.
    """
    speakers = {rid: Speaker(rid) for rid in (1, 2)}
    received = [one for speaker in speakers.values() for one in speaker.hello()]
    for number, rid, is_open in arriving:
        records = [change(number, rid=rid, tx=number if is_open else None)]
        received += speakers[rid].send(*records, *([] if is_open else [Commit(csn(number, rid))]))
    state = fresh_state()
    while received:
        size = data.draw(st.integers(1, len(received)))
        intake, received = intake_of(received[:size], state), received[size:]
        inserted = [a.change.csn for one in in_order(intake.eligible) for a in one]
        for rid in (1, 2):
            of_one = _of(inserted, rid)
            assert of_one == sorted(set(of_one))
            assert all(each > (state.ruv_of(DEFAULT_DATASET).max_of(rid) or "") for each in of_one)
        state = replace(
            state,
            ruvs=intake.ruvs,
            replicas=intake.replicas,
            agreements=intake.agreements,
            open=intake.open,
        )


@given(stories())
@examples(200)
def test_theorem_2_what_comes_while_a_page_is_processed_is_above_its_stop(story: Story) -> None:
    """So a replica whose stop lies ahead of the page cannot have missed anything in it."""
    _, played = play(story)
    for one in played:
        previous = one.loaded.lacking.stop
        assert all(each > (previous.max_of(rid_of(each)) or "") for each in one.received)
        assert not set(one.received) & set(one.sent)


TIE = Story([csn(1, A), csn(9, A)], Ruv(), [Step([csn(4, C)], [], 2)])
"""The first page ends on the first change of a replica that it must not send yet."""


@given(stories())
@example(TIE)
@examples(200)
def test_every_page_sends_what_a_calculation_from_scratch_sends(story: Story) -> None:
    """The document's own question: up to the end of the page, both send the same in one order."""
    supplier, played = play(story)
    for one in played:
        anew = lack(one.loaded.lacking.stop, one.loaded.consumer)

        scratch = [c for c in behind(supplier.log, anew.anchor) if must_send(anew, c)]

        assert list(one.sent) == [c for c in scratch if not one.page or c <= one.page[-1]]


@given(stories(), st.integers(1, 4))
@example(TIE, 1)
@examples(200)
def test_paging_sends_exactly_what_is_lacking_in_each_replicas_order(
    story: Story, page: int
) -> None:
    """Whatever came between the pages: new replicas, below the page or above, several at once."""
    supplier, played = play(story)
    sent = [each for one in played for each in one.sent]
    lacking = [c for c in supplier.log if not story.consumer.covers(c)]

    assert sorted(sent) == lacking
    for rid in RIDS:
        assert _of(sent, rid) == _of(lacking, rid)
    assert _of_each(from_scratch(story, page)) == _of_each(sent)


@given(stories(), st.integers(0, 8), st.integers(1, 5))
@examples()
def test_pages_of_whole_hub_epochs_send_the_same(
    story: Story, covers: int, page_items: int
) -> None:
    """How the hub pages: from an epoch that the consumer covers, each page up to an epoch's RUV."""
    consumer, sent = in_hub_epochs(story, covers, page_items)

    supplier, played = play(replace(story, consumer=consumer))

    assert sorted(sent) == [c for c in supplier.log if not consumer.covers(c)]
    assert _of_each(sent) == _of_each([each for one in played for each in one.sent])


@given(stories(), st.sampled_from(RIDS))
@examples()
def test_own_changes_are_never_sent_back(story: Story, own: int) -> None:
    """And the others are all sent, though the anchor knows nothing of the own ones."""
    supplier, played = play(story, own)
    sent = [each for one in played for each in one.sent]

    lacking = [c for c in supplier.log if not story.consumer.covers(c)]
    assert sorted(sent) == [c for c in lacking if rid_of(c) != own]


def _of(csns: Sequence[str], rid: int) -> list[str]:
    return [c for c in csns if rid_of(c) == rid]


def _of_each(csns: Sequence[str]) -> dict[int, list[str]]:
    return {rid: _of(csns, rid) for rid in RIDS}
